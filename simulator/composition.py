"""Composes the whole answer of one choice before it is decoded: its pieces and how it ends."""

import itertools
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from simulator.api_errors import bad_request
from simulator.regex_text import RegexError, text_for_regex
from simulator.schema_value import SchemaError, value_for_schema
from simulator.tokens import pieces_of
from simulator.words import natural_length, text_pieces


class Finish(StrEnum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"


class Constraint(StrEnum):
    """What a structured output must be."""

    CHOICE = "choice"
    REGEX = "regex"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class Forced:
    """A structured output: one of the choices, a regular expression, or a JSON schema."""

    constraint: Constraint
    value: object


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the request names or requires, with the schema of its arguments."""

    name: str
    parameters: object
    was_named: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """One decoded token: its visible text, and how the choice ends if it is the last one."""

    text: str
    finish: Finish | None = None
    is_end_token: bool = False
    stop_text: str | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What decides the text of one choice."""

    prompt: str
    seed: int
    max_tokens: int
    min_tokens: int = 0
    ignores_end: bool = False
    stops: tuple[str, ...] = ()
    forced: Forced | None = None
    tool: ToolCall | None = None


def compose(wish: Wish) -> tuple[Piece, ...]:
    """Return the pieces of one choice; the last one says why it ended."""
    if wish.tool is not None:
        arguments = json.dumps(_schema_value(wish.tool.parameters, wish.seed), ensure_ascii=False)
        return _until_end(("", *pieces_of(arguments)), wish.max_tokens)
    if wish.forced is not None:
        return _until_end(pieces_of(_forced_text(wish.forced, wish.seed)), wish.max_tokens)
    texts = tuple(itertools.islice(text_pieces(wish.seed, wish.prompt), wish.max_tokens))
    length = max(natural_length(wish.seed), wish.min_tokens)
    if not wish.ignores_end and length < wish.max_tokens:
        texts = texts[:length]
    return _cut_at_stop(texts, wish) or _until_end(texts, wish.max_tokens)


def _until_end(texts: Sequence[str], max_tokens: int) -> tuple[Piece, ...]:
    if len(texts) >= max_tokens:
        *most, last = texts[:max_tokens]
        return (*(Piece(text) for text in most), Piece(last, Finish.LENGTH))
    return (*(Piece(text) for text in texts), Piece("", Finish.STOP, is_end_token=True))


def _cut_at_stop(texts: Sequence[str], wish: Wish) -> tuple[Piece, ...] | None:
    whole = "".join(texts)
    earliest = len("".join(texts[: wish.min_tokens]))
    found = [(at, stop) for stop in wish.stops if stop and (at := whole.find(stop, earliest)) >= 0]
    if not found:
        return None
    cut, stop = min(found)
    return tuple(_visible(texts, cut, cut + len(stop), stop))


def _visible(texts: Iterable[str], cut: int, end: int, stop: str) -> Iterable[Piece]:
    at = 0
    for text in texts:
        shown = text[: max(0, cut - at)]
        at += len(text)
        if at >= end:
            yield Piece(shown, Finish.STOP, stop_text=stop)
            return
        yield Piece(shown)


def _forced_text(forced: Forced, seed: int) -> str:
    source = random.Random(seed)  # noqa: S311 - a simulation, nothing secret
    match forced.constraint:
        case Constraint.CHOICE:
            choices = forced.value if isinstance(forced.value, tuple) else (forced.value,)
            return str(source.choice(choices))
        case Constraint.REGEX:
            try:
                return text_for_regex(str(forced.value), source)
            except RegexError as error:
                raise bad_request(f"Grammar error: {error}") from error
        case Constraint.SCHEMA:
            return json.dumps(_schema_value(forced.value, seed), ensure_ascii=False, separators=(",", ":"))


def _schema_value(schema: object, seed: int) -> object:
    try:
        return value_for_schema(schema, random.Random(seed))  # noqa: S311 - a simulation, nothing secret
    except (SchemaError, RegexError) as error:
        raise bad_request(f"Grammar error: {error}") from error
