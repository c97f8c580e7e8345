"""What a request may come to, from its document alone: its input, estimated on the high side, and its bounded output.

Token ids are counted exactly. Whatever a tokenizer would make of the rest, an engine's own figures count in the end:
the estimate decides how much is held until then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway.paths import Operation
from gateway.prompt_parts import PartTokens, plain_tokens, prompt_tokens, upload_tokens
from gateway.reservations import Demand

MOST_TOKENS = 2**31 - 1
"""Engines keep these figures in 32 bits; what is above is a mistake or a trick."""
MOST_SEQUENCES = 128
"""As OpenAI bounds ``n``."""
_SHOWN_BELOW = 10**20


class Dialect(StrEnum):
    """Whose words a request is in: they differ in the field that bounds the output."""

    CHAT = "chat"
    COMPLETION = "completion"
    RESPONSES = "responses"
    MESSAGES = "messages"
    INPUT_ONLY = "input-only"
    """Embeddings, rerank: nothing is written."""
    UPLOAD = "upload"
    """A form with a file of sound; what is written is short, and the sound is what counts."""
    NOTHING = "nothing"
    """Counting tokens: no model runs."""


_DIALECTS = {
    Operation.CHAT: Dialect.CHAT,
    Operation.COMPLETION: Dialect.COMPLETION,
    Operation.RESPONSES: Dialect.RESPONSES,
    Operation.MESSAGES: Dialect.MESSAGES,
    Operation.EMBEDDING: Dialect.INPUT_ONLY,
    Operation.RERANK: Dialect.INPUT_ONLY,
    Operation.TRANSCRIPTION: Dialect.UPLOAD,
    Operation.TOKENIZE: Dialect.NOTHING,
    Operation.COUNT_TOKENS: Dialect.NOTHING,
}


def dialect_of(operation: Operation) -> Dialect:
    """Whose words a request for an operation is in."""
    return _DIALECTS[operation]


_OUTPUT_FIELDS: Mapping[Dialect, tuple[str, ...]] = {
    Dialect.CHAT: ("max_completion_tokens", "max_tokens"),
    Dialect.COMPLETION: ("max_tokens",),
    Dialect.RESPONSES: ("max_output_tokens",),
    Dialect.MESSAGES: ("max_tokens",),
}
_SEQUENCE_FIELDS: Mapping[Dialect, tuple[str, ...]] = {Dialect.CHAT: ("n",), Dialect.COMPLETION: ("n", "best_of")}


@dataclass(frozen=True, slots=True)
class BadField:
    """A field whose value can't be meant."""

    name: str
    message: str
    """For the client: the value if it is a number, else its kind, and what would be right."""


class TokenEstimate(NamedTuple):
    """What the request says about its size."""

    input_tokens: int
    sequences: int
    """Answers that are written; 0 = none is."""
    stated_output_tokens: int | None
    """The most that one of them may have; ``None`` = the client leaves it open."""

    def demand(self, most_output_tokens: int, default_output_tokens: int | None = None) -> Demand:
        """What to hold, given what the model can write and what the tenant gets where it states nothing.

        A default holds only if it is written into the request; `Reservation.output_tokens` divided by `sequences` is
        the figure to write.
        """
        stated = self.stated_output_tokens
        each = stated if stated is not None else default_output_tokens
        bounded = most_output_tokens if each is None else min(each, most_output_tokens)
        return Demand(self.input_tokens, bounded * self.sequences, is_output_stated=stated is not None)


_PARTS = PartTokens()


def estimate(
    document: Mapping[str, object], dialect: Dialect, parts: PartTokens = _PARTS, texts: Sequence[str] | None = None
) -> TokenEstimate | BadField:
    """What a request may come to, or the field that is wrong; ``texts`` = of a chat that is nothing else.

    Where two fields bound the output the larger counts: engines differ on which one they obey.
    """
    if dialect is Dialect.NOTHING:
        return TokenEstimate(0, 0, None)
    if dialect is Dialect.UPLOAD:
        return TokenEstimate(upload_tokens(document, parts), 0, None)
    output_tokens = _largest(document, _OUTPUT_FIELDS.get(dialect, ()), 0, MOST_TOKENS)
    if isinstance(output_tokens, BadField):
        return output_tokens
    sequences = _largest(document, _SEQUENCE_FIELDS.get(dialect, ()), 1, MOST_SEQUENCES)
    if isinstance(sequences, BadField):
        return sequences
    if sequences is None:
        sequences = 1 if dialect in _OUTPUT_FIELDS else 0
    input_tokens, prompts = prompt_tokens(document, parts) if texts is None else (plain_tokens(texts), 1)
    return TokenEstimate(input_tokens, sequences * prompts, output_tokens)


def _largest(document: Mapping[str, object], names: Sequence[str], least: int, most: int) -> int | BadField | None:
    """The largest figure of some fields; ``None`` = none is stated."""
    largest: int | None = None
    for name in names:
        if name not in document:
            continue
        figure = _figure(document, name, least, most)
        if isinstance(figure, BadField):
            return figure
        if figure is not None and (largest is None or figure > largest):
            largest = figure
    return largest


def _figure(document: Mapping[str, object], name: str, least: int, most: int) -> int | BadField | None:
    """A whole number of a field; ``None`` = it is absent or null."""
    value = document.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    right = f"give a whole number from {least} to {most}, or leave it out"
    if isinstance(value, bool) or not isinstance(value, int):
        return BadField(name, f"The field '{name}' is {_kind(value)}; {right}.")
    if not least <= value <= most:
        shown = str(value) if abs(value) < _SHOWN_BELOW else "a number of more than 20 digits"
        return BadField(name, f"The field '{name}' is {shown}; {right}.")
    return value


_KINDS = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "no whole number")
