"""Remembers what short pieces of prose come to, since a model writes the same ones again and again."""

from typing import NamedTuple

from gateway.output_filter.quiet_text import LETTERS, Quiet

MOST = 8_192
"""Pieces that are remembered at once, of all answers of a policy; then it begins anew."""
LONGEST = 24
"""Characters of a piece that is remembered; models write tokens."""


class Glance(NamedTuple):
    """A piece of prose."""

    text: str
    rest: str
    """The letters at its end after the character before them: the word that goes on. Empty = it is letters alone."""
    held: int
    """How many letters these are."""


class Glances(dict[bytes, Glance | None]):
    """Pieces as they stand in JSON, without the quotation marks; none that may be, or be part of, a value but letters.

    What a piece comes to is the same after every prose that does not end in a chain of words.
    """

    def __init__(self, quiet: Quiet) -> None:
        super().__init__()
        self._quiet = quiet

    def __missing__(self, literal: bytes) -> Glance | None:
        if not 0 < len(literal) <= LONGEST or b'"' in literal or not literal.isascii():
            return None
        text = literal.decode()
        if text[0].isupper() or not text.isprintable() or not self._quiet.is_prose(text):
            return None
        held = len(text) - len(text.rstrip(LETTERS))
        start = len(text) - held
        if start and text[start - 1] in self._quiet.joints:
            return None
        if len(self) >= MOST:
            self.clear()
        glance = self[literal] = Glance(text, text[start - 1 :] if start else "", held)
        return glance
