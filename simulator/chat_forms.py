"""Requests in the form of responses or of Anthropic's messages, as the chats that engines make of them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.api_errors import wrong_field
from simulator.generation_request import Endpoint
from simulator.request_body import Body

_TEXTS = frozenset({"text", "input_text", "output_text", "thinking"})
_IMAGES = frozenset({"image", "image_url", "input_image"})
_COMMON = ("model", "temperature", "seed", "cache_salt", "ignore_eos", "stream", "structured_outputs")
_CHOICES = {"any": "required", "auto": "auto", "none": "none", "required": "required"}


def as_chat(body: Body, endpoint: Endpoint) -> Body:
    """The body of a chat that asks for the same."""
    match endpoint:
        case Endpoint.RESPONSES:
            return Body({**_common(body), **_of_response(body)})
        case Endpoint.MESSAGES:
            return Body({**_common(body), **_of_messages(body)})
        case _:
            return body


def _common(body: Body) -> dict[str, Any]:
    return {name: body.fields[name] for name in _COMMON if name in body.fields}


def _of_response(body: Body) -> dict[str, Any]:
    body.need("input")
    given, instructions = body.fields["input"], body.text("instructions")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(_messages(given, "body.input"))
    if instructions:
        messages.insert(0, {"role": "system", "content": instructions})
    chat: dict[str, Any] = {"messages": messages, "max_tokens": body.whole("max_output_tokens")}
    form = body.part("text").part("format").fields
    if form.get("type") == "json_schema":
        chat["response_format"] = {"type": "json_schema", "json_schema": {"schema": form.get("schema", {})}}
    chat["tools"] = [{"type": "function", "function": tool} for tool in body.items("tools") if isinstance(tool, dict)]
    choice = body.fields.get("tool_choice")
    chat["tool_choice"] = {"type": "function", "function": choice} if isinstance(choice, Mapping) else choice
    return chat


def _of_messages(body: Body) -> dict[str, Any]:
    body.need("messages")
    messages = list(_messages(body.items("messages"), "body.messages"))
    if system := body.fields.get("system"):
        messages.insert(0, {"role": "system", "content": _content(system)})
    chat: dict[str, Any] = {"messages": messages, "max_tokens": body.whole("max_tokens")}
    chat["stop"] = body.items("stop_sequences") or None
    chat["tools"] = [
        {"type": "function", "function": {"name": tool.get("name"), "parameters": tool.get("input_schema", {})}}
        for tool in body.items("tools")
        if isinstance(tool, dict)
    ]
    choice = body.part("tool_choice").fields
    if choice.get("type") == "tool":
        chat["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif choice:
        chat["tool_choice"] = _CHOICES.get(str(choice.get("type")))
    return chat


def _messages(given: object, location: str) -> Iterator[dict[str, Any]]:
    if not isinstance(given, list):
        raise wrong_field(location, "list_type", "Input should be a valid list", given)
    for item in given:
        if not isinstance(item, Mapping):
            raise wrong_field(location, "dict_type", "Input should be a valid dictionary", item)
        if item.get("type") in {"function_call", "function_call_output"}:
            yield {"role": "tool", "content": json.dumps(item.get("output", item.get("arguments")))}
        else:
            yield {"role": item.get("role"), "content": _content(item.get("content"))}


def _content(content: object) -> object:
    if not isinstance(content, list):
        return content
    return [_part(part) for part in content]


def _part(part: object) -> object:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(part, Mapping) and kind in _TEXTS:
        return {"type": "text", "text": part.get("text", "")}
    if kind in _IMAGES:
        return {"type": "image_url"}
    if isinstance(part, Mapping) and kind in {"tool_use", "tool_result"}:
        return {"type": "text", "text": json.dumps(part.get("input", part.get("content")))}
    return part
