"""vLLM's wire format, field by field as captured from 0.31.0 and 0.32.0."""

import hashlib
from collections.abc import Sequence

from simulator.answer import Choice, Delta, Head, Json, Timing, Usage, finish_reason, token_logprobs
from simulator.api_errors import ApiError
from simulator.generation_request import Endpoint
from simulator.identifiers import fresh_id
from simulator.settings import EngineSettings

BUSY = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."


class VllmWire:
    """Writes what `vllm serve` writes."""

    opens_all_choices_at_once = True

    def chat(self, head: Head, choices: Sequence[Choice], usage: Usage, timing: Timing | None) -> Json:
        """Return the body of a complete chat."""
        return {
            **_base(head, "chat.completion"),
            "choices": [_chat_choice(head, choice) for choice in choices],
            "service_tier": None,
            "system_fingerprint": fingerprint(head.settings),
            "usage": _full_usage(head, usage),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "prompt_text": None,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": timing.as_json() if timing else None,
        }

    def completion(self, head: Head, choices: Sequence[Choice], usage: Usage, timing: Timing | None) -> Json:
        """Return the body of a complete completion."""
        return {
            **_base(head, "text_completion"),
            "choices": [_completion_choice(choice) for choice in choices],
            "service_tier": None,
            "system_fingerprint": fingerprint(head.settings),
            "usage": _full_usage(head, usage),
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": timing.as_json() if timing else None,
        }

    def opening(self, head: Head, index: int, usage: Usage) -> Json | None:
        """Return the chunk with the role; completions have none."""
        if head.request.endpoint is Endpoint.COMPLETION:
            return None
        delta = {"role": "assistant", "content": ""}
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        chunk = {**_base(head, "chat.completion.chunk"), "choices": [choice]}
        if head.request.usage_in_every_chunk:
            chunk["usage"] = _running_usage(usage)
        return {**chunk, "prompt_token_ids": None, "prompt_text": None}

    def chunks(self, head: Head, delta: Delta) -> Sequence[Json]:
        """Return the one chunk of a token; the last one names the engine when no usage chunk follows."""
        if head.request.endpoint is Endpoint.CHAT:
            chunk = {**_base(head, "chat.completion.chunk"), "choices": [_chat_delta(head, delta)]}
        else:
            chunk = {**_base(head, "text_completion"), "choices": [_completion_delta(delta)]}
        if head.request.usage_in_every_chunk:
            chunk["usage"] = _running_usage(delta.usage)
        if delta.is_last_of_all and not head.request.includes_usage:
            chunk["system_fingerprint"] = fingerprint(head.settings)
        return (chunk,)

    def closing(self, head: Head, usage: Usage, timing: Timing | None) -> Json:
        """Return the usage chunk."""
        counts: Json = _totals(usage)
        if head.settings.api.reports_cached_tokens:
            counts["prompt_tokens_details"] = _cache_details(head, usage)
        is_chat = head.request.endpoint is Endpoint.CHAT
        chunk = {
            **_base(head, "chat.completion.chunk" if is_chat else "text_completion"),
            "choices": [],
            "usage": counts,
            "system_fingerprint": fingerprint(head.settings),
        }
        return {**chunk, "metrics": timing.as_json()} if timing else chunk

    def error(self, error: ApiError) -> Json:
        """Return the error object."""
        return {
            "error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.status},
        }

    def busy(self) -> ApiError:
        """Return the 503 of admission control."""
        return ApiError(503, "Service Unavailable", BUSY)

    def models(self, settings: EngineSettings, started: int) -> Json:
        """Return base models, then adapters."""
        api = settings.api
        base = [_model(name, settings.model, None, settings, started) for name in api.served_names]
        adapters = [_model(name, name, api.served_names[0], settings, started) for name in api.adapters]
        return {"object": "list", "data": [*base, *adapters]}


def fingerprint(settings: EngineSettings) -> str:
    """Return the fingerprint: engine, version, and a hash of what was configured."""
    configured = repr((settings.model, settings.limits, settings.cache, settings.api.served_names))
    return f"vllm-{settings.version}-{hashlib.blake2b(configured.encode(), digest_size=4).hexdigest()}"


def _base(head: Head, kind: str) -> Json:
    return {"id": head.answer_id, "object": kind, "created": head.created, "model": head.request.model}


def _totals(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt,
        "total_tokens": usage.prompt + usage.completion,
        "completion_tokens": usage.completion,
    }


def _running_usage(usage: Usage) -> Json:
    return {**_totals(usage), "completion_tokens_details": None}


def _cache_details(head: Head, usage: Usage) -> Json:
    return {"cached_tokens": usage.cached, "created_cache_tokens": usage.written(head.settings.cache)}


def _full_usage(head: Head, usage: Usage) -> Json:
    details = {**_cache_details(head, usage), "multimodal_tokens": None}
    shown = details if head.settings.api.reports_cached_tokens else None
    return {**_totals(usage), "prompt_tokens_details": shown, "completion_tokens_details": None}


def _chat_choice(head: Head, choice: Choice) -> Json:
    tool = head.request.tool
    message: Json = {
        "role": "assistant",
        "content": "" if tool else choice.text,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
    }
    if tool:
        function = {"name": tool.name, "arguments": choice.text}
        message["tool_calls"] = [{"id": fresh_id("chatcmpl-tool-"), "type": "function", "function": function}]
    alternatives = head.request.top_logprobs
    return {
        "index": choice.index,
        "message": {**message, "reasoning": None},
        "logprobs": None if alternatives is None else token_logprobs(choice.pieces, alternatives),
        "finish_reason": finish_reason(head.request, choice.last),
        "stop_reason": choice.last.stop_text,
        "token_ids": None,
        "routed_experts": None,
    }


def _completion_choice(choice: Choice) -> Json:
    return {
        "index": choice.index,
        "text": choice.text,
        "logprobs": None,
        "finish_reason": choice.last.finish,
        "stop_reason": choice.last.stop_text,
        "token_ids": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "routed_experts": None,
    }


def _chat_delta(head: Head, delta: Delta) -> Json:
    piece, alternatives = delta.piece, head.request.top_logprobs
    content: Json = {} if piece.is_end_token else {"content": piece.text}
    if head.request.tool and not piece.is_end_token:
        content = {"content": None, "tool_calls": [_tool_delta(head, delta)]}
    shows_logprobs = alternatives is not None and not piece.is_end_token
    choice: Json = {
        "index": delta.index,
        "delta": content,
        "logprobs": token_logprobs([piece], alternatives or 0) if shows_logprobs else None,
        "finish_reason": finish_reason(head.request, piece),
    }
    if piece.finish is not None:
        choice["stop_reason"] = piece.stop_text
    return {**choice, "token_ids": None}


def _tool_delta(head: Head, delta: Delta) -> Json:
    if delta.is_first and head.request.tool:
        named = {"name": head.request.tool.name}
        return {"id": fresh_id("chatcmpl-tool-"), "type": "function", "index": 0, "function": named}
    return {"index": 0, "function": {"arguments": delta.piece.text}}


def _completion_delta(delta: Delta) -> Json:
    return {
        "index": delta.index,
        "text": delta.piece.text,
        "logprobs": None,
        "finish_reason": delta.piece.finish,
        "stop_reason": delta.piece.stop_text,
        "prompt_token_ids": None,
        "token_ids": None,
    }


def _model(name: str, root: str, parent: str | None, settings: EngineSettings, started: int) -> Json:
    permission = {
        "id": fresh_id("modelperm-"),
        "object": "model_permission",
        "created": started,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": started,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": settings.limits.max_model_len,
        "permission": [permission],
    }
