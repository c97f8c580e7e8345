"""Which field of a request reaches a code path that is closed: a defect is kept out at the door while a pin rolls out.

Names of fields are those that vLLM, SGLang and TensorRT-LLM read (their request models; a field that an engine doesn't
know does no harm when it is refused). Kinds of content parts are closed by default: one that isn't known to be text
counts as media.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

MULTIMODAL, MEDIA_SSRF = "multimodal", "media-ssrf"
STRUCTURED, TOOLS, TEMPLATE = "structured-output", "tool-parser", "chat-template"
EMBEDS, PROCESSORS = "prompt-embeds", "weight-endpoints"

_MEDIA_FIELDS = frozenset(
    {
        "mm_processor_kwargs", "media_io_kwargs", "multi_modal_data", "multi_modal_uuids", "image_data", "video_data",
        "audio_data", "mm_payload", "return_mm_kwargs", "modalities", "audio", "file",
    }
)  # fmt: skip
_MEMBERS: Mapping[str, frozenset[str]] = {
    MULTIMODAL: _MEDIA_FIELDS,
    MEDIA_SSRF: frozenset({"image_data", "video_data", "audio_data", "multi_modal_data", "mm_payload", "url"}),
    STRUCTURED: frozenset(
        {
            "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
            "guided_decoding_backend", "guided_whitespace_pattern", "json_schema", "regex", "ebnf", "grammar",
            "structural_tag", "output_config", "output_format",
        }
    ),
    TOOLS: frozenset({"tools", "tool_choice", "functions", "function_call", "parallel_tool_calls"}),
    TEMPLATE: frozenset({"chat_template", "chat_template_kwargs"}),
    EMBEDS: frozenset({"prompt_embeds", "input_embeds", "prompt_embeddings"}),
    PROCESSORS: frozenset({"custom_logit_processor", "custom_params", "logits_processors", "vllm_xargs"}),
}  # fmt: skip
"""Code path -> members of a request that reach it by being there with a value."""
CLOSABLE = frozenset(_MEMBERS)
"""The code paths that a request can reach by a field."""
_TEXT_PARTS = frozenset(
    {
        "text", "input_text", "output_text", "refusal", "thinking", "redacted_thinking", "reasoning", "summary_text",
        "reasoning_text", "tool_use", "tool_result", "message", "function_call", "function_call_output",
    }
)  # fmt: skip
_MEDIA_MEMBERS = (
    "image", "image_url", "image_pil", "image_embeds", "input_image", "video", "video_url", "video_embeds", "audio",
    "audio_url", "audio_embeds", "input_audio", "prompt_embeds", "file", "file_url", "file_data", "file_id",
)  # fmt: skip
"""By these some engines find media in a part, whatever type it states."""
_MESSAGES = frozenset({"messages", "input"})
"""Holders whose items may be messages; a part of a message is none, also if it states a role."""
_HOLDERS = ("messages", "input", "prompt", "system", "documents", "query", "queries", "content", "output")
"""Members whose values hold content parts."""
_FREE_CHOICES = frozenset({"auto", "none"})


class ClosedField(NamedTuple):
    """The first field of a request that may not be there."""

    pointer: str
    """A JSON pointer, of names of fields and numbers alone."""
    path: str
    """The code path that is closed."""


def closed_field(document: Mapping[str, object], closed: Collection[str]) -> ClosedField | None:
    """The first field that reaches a closed code path; ``None`` = there is none."""
    paths = [path for path in _MEMBERS if path in closed]
    if not paths:
        return None
    return next((found for path in paths for found in _fields(document, path)), None)


def _fields(document: Mapping[str, object], path: str) -> Iterator[ClosedField]:
    for name in _MEMBERS[path]:
        value = document.get(name)
        if value is not None and not _is_harmless(name, value):
            yield ClosedField(f"/{name}", path)
    if path == STRUCTURED:
        yield from _other_grammars(document)
    if path in {MULTIMODAL, MEDIA_SSRF}:
        for holder in _HOLDERS:
            yield from _media(document.get(holder), f"/{holder}", path, is_message=holder in _MESSAGES)


def _is_harmless(name: str, value: object) -> bool:
    """What is there and asks for nothing."""
    if name == "response_format":
        return isinstance(value, Mapping) and value.get("type") == "text"
    if name == "output_config":
        return isinstance(value, Mapping) and value.get("format") is None
    if name == "modalities":
        return value == ["text"]
    if name == "tool_choice":
        return _kind_of_choice(value) == "none"
    return value in ([], {}, False)


def _other_grammars(document: Mapping[str, object]) -> Iterator[ClosedField]:
    """Grammars that engines make by themselves: a forced tool call, a strict tool, the format of a response's text."""
    choice = document.get("tool_choice")
    if choice is not None and _kind_of_choice(choice) not in _FREE_CHOICES:
        yield ClosedField("/tool_choice", STRUCTURED)
    text = document.get("text")
    form = text.get("format") if isinstance(text, Mapping) else None
    if form is not None and not (isinstance(form, Mapping) and form.get("type") == "text"):
        yield ClosedField("/text/format", STRUCTURED)
    tools = document.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        if isinstance(tool, Mapping) and (_is_strict(tool) or _is_strict(tool.get("function"))):
            yield ClosedField(f"/tools/{index}", STRUCTURED)


def _kind_of_choice(choice: object) -> object:
    """OpenAI's word, or the type of Anthropic's object; ``None`` = something else, such as a tool by its name."""
    kind = choice.get("type") if isinstance(choice, Mapping) else choice
    return kind if isinstance(kind, str) else None


def _is_strict(holder: object) -> bool:
    return isinstance(holder, Mapping) and bool(holder.get("strict"))


def _media(value: object, pointer: str, path: str, *, is_message: bool = False) -> Iterator[ClosedField]:
    """Parts that are no text, at any depth; for fetching, those that name a place to fetch from."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _media(item, f"{pointer}/{index}", path, is_message=is_message)
    elif isinstance(value, Mapping):
        if _may_be_media(value, is_message=is_message) and (path == MULTIMODAL or _names_a_place(value)):
            yield ClosedField(pointer, path)
        for name in ("content", "output"):
            yield from _media(value.get(name), f"{pointer}/{name}", path)


def _may_be_media(value: Mapping[str, object], *, is_message: bool) -> bool:
    if any(value.get(name) is not None for name in _MEDIA_MEMBERS):
        return True
    kind = value.get("type")
    return not (is_message and "role" in value) and not (isinstance(kind, str) and kind in _TEXT_PARTS)


def _names_a_place(value: object) -> bool:
    """Whether some text in a part is anything but inline data."""
    if isinstance(value, str):
        return ":" in value and not value.lstrip().lower().startswith("data:")
    if isinstance(value, Mapping):
        return any(_names_a_place(item) for name, item in value.items() if name != "type")
    return isinstance(value, list) and any(map(_names_a_place, value))
