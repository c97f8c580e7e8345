"""Takes the texts out of an event, or of a whole answer, and says where in its bytes each stands."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gateway.output_filter.json_spans import Path, Span, decoded, spans
from gateway.output_filter.normal_form import Writing
from gateway.output_filter.scanner import NUMBER_IN_JSON
from gateway.output_filter.shapes import Api, Key, Role, Running, Whole, choice_index, is_free, role_of

_PLAIN_NAME = re.compile(r"[A-Za-z_]{0,40}\Z")
"""What the names of members mostly are; others may be the model's own, in the input of a tool."""
_NUMBER = re.compile(rb"-?[0-9][0-9.eE+-]*")
_LIST = re.compile(rb"\[[-+0-9.eE,\s]*\]")
_TOKENS = frozenset({"token", "tokens", "decoded_token"})
_GROUPS = frozenset({"logprobs", "prompt_logprobs"})
_TIMED = {"words": "word", "segments": "text"}
"""The timed parts of a transcript, and what their texts are called."""
_PARTS = frozenset((name,) for name in _TIMED)
_ID_LISTS = frozenset(
    {("token_ids", ("choices",)), ("token_ids", ("output",)), ("tokens", ("segments",))},
)


class FoundText(NamedTuple):
    """A text and its bytes."""

    text: str
    start: int
    end: int
    role: Running | Whole
    instead: bytes | None = None
    """What stands there if anything in it is edited; None = the edited text."""

    def __repr__(self) -> str:
        """Nothing of what an answer says."""
        return "FoundText(...)"


def texts_of(api: Api, document: object, data: bytes) -> Iterator[FoundText]:
    """The texts of a JSON document, in order.

    The probabilities of tokens spell the text again: they are one text of their own, and go as a whole if any of it
    is edited. Token ids spell it in a way that can't be read here, so they are always left out. The timed parts of a
    transcript are such spellings too.
    """
    tokens: list[str] = []
    for span in spans(data):
        is_spelled = not _GROUPS.isdisjoint(span.path) or (api is Api.TRANSCRIPT and _is_timed(span.path))
        if span.is_string and is_spelled:
            tokens += _spelled(span, data)
        elif span.is_string:
            text = decoded(data[span.start : span.end])
            role = role_of(api, document, span.path, text)
            if role is not None and text:
                yield FoundText(text, span.start, span.end, role)
        elif span.is_name:
            if not is_spelled and not _PLAIN_NAME.match(name := str(span.path[-1])):
                yield FoundText(name, span.start, span.end, Whole(Writing.PLAIN))
        else:
            yield from _numbers(api, document, span, data, tokens)


def _is_timed(path: Path) -> bool:
    """Whether it is the text of a timed part; whatever else such a part holds is text of its own."""
    return len(path) == 3 and (path[0], path[2]) in _TIMED.items()


def _spelled(span: Span, data: bytes) -> list[str]:
    """A token that was written; the alternatives stand under another name. Words of a transcript are apart."""
    text = decoded(data[span.start : span.end])
    if _GROUPS.isdisjoint(span.path):
        return [f" {text.strip()}"]
    names = [part for part in span.path if isinstance(part, str)]
    return [text] if names[-1] in _TOKENS and "top_logprobs" not in names else []


def _numbers(api: Api, document: object, span: Span, data: bytes, tokens: list[str]) -> Iterator[FoundText]:
    """What a number or a list of numbers says, and the tokens of a group that ends there."""
    name = span.path[-1] if span.path else ""
    first = data[span.start : span.start + 1]
    if first == b"[" and (name, span.path[:1]) in _ID_LISTS:
        yield FoundText("", span.start, span.end, Whole(None), b"null" if name == "token_ids" else b"[]")
    elif first == b"[" and is_free((*span.path, 0)) and _LIST.fullmatch(data, span.start, span.end):
        for number in _NUMBER.finditer(data, span.start, span.end):
            yield FoundText(number[0].decode(), *number.span(), Whole(Writing.PLAIN), NUMBER_IN_JSON.encode())
    elif first in b"-0123456789" and is_free(span.path):
        text = data[span.start : span.end].decode()
        yield FoundText(text, span.start, span.end, Whole(Writing.PLAIN), NUMBER_IN_JSON.encode())
    elif (name in _GROUPS or span.path in _PARTS) and first in b"[{" and (text := "".join(tokens)):
        tokens.clear()
        role = _role_of_tokens(api, document, span.path)
        yield FoundText(text, span.start, span.end, role, b"[]" if first == b"[" else b"null")


def _role_of_tokens(api: Api, document: object, path: Path) -> Running | Whole:
    if api is Api.COMPLETIONS and path[0] == "choices" and path[-1] == "logprobs" and len(path) == 3:
        return Running(("choice", choice_index(document, path), "logprobs"), Writing.PLAIN)
    role: Role = role_of(api, document, ("delta",), "")
    if api is Api.RESPONSES and path == ("logprobs",) and isinstance(role, Running):
        key: Key = (*role.key, "logprobs")
        return Running(key, Writing.PLAIN)
    return Whole(Writing.PLAIN)
