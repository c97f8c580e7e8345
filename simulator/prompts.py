"""The chat template of the simulated engines: messages and tools become one text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.api_errors import wrong_field

IMAGE_TOKENS = 64
"""How many tokens one image counts."""


def chat_text(messages: Sequence[Any], tools: Sequence[Any]) -> tuple[str, int]:
    """Return the prompt of a conversation and the number of images in it."""
    parts = [f"<tools>{json.dumps(tools, sort_keys=True)}</tools>\n"] if tools else []
    images = 0
    for position, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise wrong_field(f"body.messages.{position}.role", "missing", "Field required", "...")
        text, found = _content(message.get("content"), f"body.messages.{position}.content")
        images += found
        parts.append(f"<|{message['role']}|>\n{text}\n")
    parts.append("<|assistant|>\n")
    return "".join(parts), images


def _content(content: object, location: str) -> tuple[str, int]:
    if content is None:
        return "", 0
    if isinstance(content, str):
        return content, 0
    if not isinstance(content, list):
        raise wrong_field(location, "string_type", "Input should be a valid string", content)
    texts: list[str] = []
    images = 0
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif kind in {"image_url", "image"}:
            images += 1
            texts.append("#" * IMAGE_TOKENS)
        else:
            raise wrong_field(f"{location}.type", "literal_error", "Input should be 'text' or 'image_url'", kind)
    return "".join(texts), images
