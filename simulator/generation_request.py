"""A chat or completion request, parsed and checked against the engine's limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from simulator.api_errors import ApiError, bad_request, wrong_field
from simulator.composition import Constraint, Forced, ToolCall
from simulator.prompts import chat_text
from simulator.request_body import Body, unsupported
from simulator.settings import ApiSettings, Dialect, EngineSettings
from simulator.tokens import pieces_of, token_ids


class Endpoint(StrEnum):
    """The ways to ask for text."""

    CHAT = "chat"
    COMPLETION = "completion"
    RESPONSES = "responses"
    """OpenAI's newer form of a chat."""
    MESSAGES = "messages"
    """Anthropic's."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as text and as tokens."""

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What a client asked for, with every default filled in."""

    endpoint: Endpoint
    model: str
    prompts: tuple[Prompt, ...]
    max_tokens: int
    min_tokens: int
    choices_per_prompt: int
    seed: int | None
    is_repeatable: bool
    stops: tuple[str, ...]
    ignores_end: bool
    streams: bool
    includes_usage: bool
    usage_in_every_chunk: bool
    cache_salt: str | None
    adapter: str | None
    forced: Forced | None
    tool: ToolCall | None
    offers_tools: bool
    echoes: bool
    top_logprobs: int | None
    """How many alternatives each token shows; `None` shows no probabilities at all."""


def read_request(body: Body, endpoint: Endpoint, settings: EngineSettings) -> GenerationRequest:
    """Parse one request body, or raise the error that the engine would answer with."""
    api = settings.api
    body.need("messages" if endpoint is Endpoint.CHAT else "prompt")
    prompts = _prompts(body, endpoint, settings)
    model = model_of(body, settings)
    options = body.part("stream_options")
    always = api.always_sends_usage
    return GenerationRequest(
        endpoint=endpoint,
        model=model,
        prompts=prompts,
        max_tokens=_max_tokens(body, endpoint, prompts, settings),
        min_tokens=body.whole("min_tokens") or 0,
        choices_per_prompt=_choices(body),
        seed=body.whole("seed"),
        is_repeatable=body.whole("seed") is not None or body.number("temperature") == 0,
        stops=_stops(body),
        ignores_end=body.flag("ignore_eos"),
        streams=body.flag("stream"),
        includes_usage=always or options.flag("include_usage"),
        usage_in_every_chunk=always or (options.flag("include_usage") and options.flag("continuous_usage_stats")),
        cache_salt=body.text("cache_salt"),
        adapter=model if model in api.adapters else None,
        forced=_forced(body),
        tool=_tool(body, api) if endpoint is Endpoint.CHAT else None,
        offers_tools=bool(body.items("tools")),
        echoes=body.flag("echo") and endpoint is Endpoint.COMPLETION,
        top_logprobs=(body.whole("top_logprobs") or 0) if endpoint is Endpoint.CHAT and body.flag("logprobs") else None,
    )


def model_of(body: Body, settings: EngineSettings) -> str:
    """Return the model to answer with: TensorRT-LLM and SGLang take any name, the others only their own."""
    names = settings.api.served_names + settings.api.adapters
    model = body.text("model")
    if model is None or settings.dialect is Dialect.TENSORRT_LLM:
        return names[0]
    if model not in names and settings.dialect is not Dialect.SGLANG:
        aliases = ", ".join(names)
        raise ApiError(
            404, "NotFoundError", f"The model `{model}` does not exist. Valid aliases: {aliases}.", param="model"
        )
    return model


def _prompts(body: Body, endpoint: Endpoint, settings: EngineSettings) -> tuple[Prompt, ...]:
    limit = settings.limits.max_model_len
    if endpoint is Endpoint.CHAT:
        text, images = chat_text(body.items("messages"), body.items("tools"))
        _check_images(images, settings.api)
        prompts: tuple[Prompt, ...] = (_from_text(text, limit),)
    else:
        prompts = _completion_prompts(body.fields["prompt"], limit)
    longest = max(len(prompt.tokens) for prompt in prompts)
    if longest >= limit:
        raise _too_long(longest, settings)
    return prompts


def _check_images(images: int, api: ApiSettings) -> None:
    if not images:
        return
    if api.image_limit is None:
        raise bad_request(f"{api.served_names[0]} is not a multimodal model")
    if images > api.image_limit:
        raise bad_request(
            f"At most {api.image_limit} image(s) may be provided in one prompt. Set `--limit-mm-per-prompt` to "
            "increase this limit. (parameter=image)",
            param="image",
        )


def _completion_prompts(given: object, limit: int) -> tuple[Prompt, ...]:
    several = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    prompts: list[Prompt] = []
    for one in several:
        if isinstance(one, str):
            prompts.append(_from_text(one, limit))
        elif isinstance(one, list) and one and all(isinstance(token, int) and 0 <= token < 1 << 32 for token in one):
            prompts.append(Prompt("", tuple(one)))
        else:
            raise wrong_field("body.prompt", "string_type", "Input should be a valid string", one)
    return tuple(prompts)


def _from_text(text: str, limit: int) -> Prompt:
    """The prompt; one beyond the limit is read just far enough to refuse it."""
    return Prompt(text, token_ids(pieces_of(text, limit + 1)) or (0,))


def _too_long(tokens: int, settings: EngineSettings) -> ApiError:
    limit = settings.limits.max_model_len
    if settings.dialect is Dialect.SGLANG:
        return bad_request(f"The input ({tokens} tokens) is longer than the model's context length ({limit} tokens).")
    return bad_request(
        f"This model's maximum context length is {limit} tokens. However, your prompt contains at least {limit + 1} "
        "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
        f"prompt. (parameter=input_tokens, value={limit + 1})",
        param="input_tokens",
    )


def _max_tokens(body: Body, endpoint: Endpoint, prompts: tuple[Prompt, ...], settings: EngineSettings) -> int:
    limit = settings.limits.max_model_len
    longest = max(len(prompt.tokens) for prompt in prompts)
    asked = body.whole("max_completion_tokens")
    asked = body.whole("max_tokens") if asked is None else asked
    if asked is None:
        return min(16, limit - longest) if endpoint is Endpoint.COMPLETION else limit - longest
    if asked < 1:
        raise bad_request(
            f"max_tokens must be at least 1, got {asked}. (parameter=max_tokens, value={asked})", "max_tokens"
        )
    if asked > limit:
        raise bad_request(
            f"max_tokens={asked} cannot be greater than max_model_len={limit}. Please request fewer output tokens. "
            f"(parameter=max_tokens, value={asked})",
            param="max_tokens",
        )
    if asked + longest > limit:
        raise bad_request(
            f"This model's maximum context length is {limit} tokens. However, you requested {asked} output tokens and "
            f"your prompt contains at least {longest} input tokens, for a total of at least {asked + longest} tokens. "
            "Please reduce the length of the input prompt or the number of requested output tokens. "
            f"(parameter=input_tokens, value={longest})",
            param="input_tokens",
        )
    return asked


def _choices(body: Body) -> int:
    asked = body.whole("n")
    if asked is not None and not 1 <= asked <= 128:
        raise bad_request(f"n must be from 1 to 128, got {asked}. (parameter=n, value={asked})", "n")
    return asked or 1


def _stops(body: Body) -> tuple[str, ...]:
    if isinstance(body.fields.get("stop"), list):
        return tuple(str(stop) for stop in body.items("stop"))
    stop = body.text("stop")
    return (stop,) if stop else ()


def _forced(body: Body) -> Forced | None:
    response_format = body.part("response_format")
    wanted = body.part("structured_outputs")
    kind = response_format.text("type")
    if kind == "json_schema":
        return Forced(Constraint.SCHEMA, response_format.part("json_schema").fields.get("schema", {}))
    if kind == "json_object" or wanted.flag("json_object"):
        return Forced(Constraint.SCHEMA, {"type": "object"})
    choices = wanted.items("choice") or body.items("guided_choice")
    if choices:
        return Forced(Constraint.CHOICE, tuple(choices))
    regex = wanted.text("regex") or body.text("guided_regex") or body.text("regex")
    if regex:
        return Forced(Constraint.REGEX, regex)
    schema = wanted.fields.get("json") or body.fields.get("guided_json")
    if wanted.fields.get("grammar") or body.fields.get("ebnf"):
        raise unsupported("grammars; use a choice, a regex or a JSON schema")
    return Forced(Constraint.SCHEMA, schema) if schema else None


def _tool(body: Body, api: ApiSettings) -> ToolCall | None:
    choice = body.fields.get("tool_choice") or ("auto" if body.items("tools") else "none")
    functions = [tool.get("function", {}) for tool in body.items("tools") if isinstance(tool, Mapping)]
    if choice == "none" or not functions:
        return None
    if choice == "auto":
        if not (api.has_tool_parser and api.has_auto_tools):
            raise bad_request('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
        return None
    if choice == "required":
        named = functions[0]
    else:
        name = Body(choice, "body.tool_choice").part("function").text("name") if isinstance(choice, Mapping) else choice
        named = next((function for function in functions if function.get("name") == name), {"name": name})
    if not api.has_tool_parser:
        asked = "required" if choice == "required" else f'function "{named.get("name")}"'
        raise bad_request(f"tool_choice={asked} requires --tool-call-parser to be set")
    return ToolCall(str(named.get("name")), named.get("parameters", {}), was_named=choice != "required")
