"""Remembers what short pieces of prose come to, since a model writes the same ones again and again."""

from typing import NamedTuple

from gateway.output_filter.quiet_text import Quiet

MOST = 8_192
"""Pieces that are remembered at once, of all answers of a policy; then it begins anew."""
LONGEST = 24
"""Characters of a piece that is remembered; models write tokens."""


class Glance(NamedTuple):
    """A piece of prose."""

    text: str
    rest: str
    """The word at its end, after the character before it. Empty = the text is nothing but a piece of a word."""
    held: int
    """How long this word is; of a piece of a word, 0 if it can't begin one."""


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
        start = self._quiet.last_word(text)
        if start and self._quiet.word(text) is None:
            return None
        held = len(text) - start if start else int(text[0].isalpha())
        if len(self) >= MOST:
            self.clear()
        glance = self[literal] = Glance(text, text[start - 1 :] if start else "", held)
        return glance
