"""The prompt in a request's document, as the bytes that a chat template would put one after the other. Pure.

Instructions and tools stand first, then the messages in their order, so that the next turn of a chat begins with all
bytes of the turn before it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

_FIRST = ("tools", "functions", "instructions", "system")
"""What templates put before the messages."""
_TEXT_TYPES = ("text", "input_text", "output_text")
"""No set: what is looked for in it is whatever a client wrote, lists among it."""
_LARGEST_TOKEN = 2**32


def prompt_tokens_given(document: Mapping[str, object]) -> Sequence[int] | None:
    """The token ids of a prompt that was given as such, the first of several; ``None`` when it is text."""
    prompt = document.get("prompt", document.get("input"))
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], list):
        prompt = prompt[0]
    if not isinstance(prompt, list) or not prompt:
        return None
    return prompt if all(type(token) is int and 0 <= token < _LARGEST_TOKEN for token in prompt) else None


def prompt_text(document: Mapping[str, object]) -> bytes:
    """The text of a prompt; of several prompts in one request the first counts."""
    return b"".join(_pieces(document))


def _pieces(document: Mapping[str, object]) -> Iterator[bytes]:
    for name in _FIRST:
        if document.get(name) is not None:
            yield _framed(name, _content(document[name]))
    messages = document.get("messages", document.get("input"))
    if isinstance(messages, list) and any(isinstance(message, dict) for message in messages):
        for message in messages:
            yield _message(message)
        return
    prompt = document.get("prompt", document.get("query") if messages is None else messages)
    yield _encoded(prompt[0] if isinstance(prompt, list) and prompt else prompt)


def _message(message: object) -> bytes:
    if not isinstance(message, dict):
        return _framed("", _encoded(message))
    rest = {name: value for name, value in message.items() if name not in ("role", "content") and value is not None}
    role = message.get("role")
    extra = _encoded(rest) if rest else b""
    return _framed(role if isinstance(role, str) else "", _content(message.get("content")) + extra)


def _content(content: object) -> bytes:
    """A text and a list with that text as its only part are the same to a template."""
    if isinstance(content, list):
        return b"".join(map(_part, content))
    return b"" if content is None else _encoded(content)


def _part(part: object) -> bytes:
    if isinstance(part, dict) and part.get("type") in _TEXT_TYPES and isinstance(part.get("text"), str):
        return _encoded(part["text"])
    # An image or a file may be megabytes of base64; its digest stands for it.
    return hashlib.blake2b(_encoded(part), digest_size=16).digest()


def _framed(role: str, content: bytes) -> bytes:
    return b"\0" + _encoded(role) + b"\0" + content


def _encoded(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError, TypeError):
        return b""
