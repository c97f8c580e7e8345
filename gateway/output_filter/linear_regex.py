"""RE2 on encoded text: time linear in the text for every pattern, and places counted in characters."""

import re2  # type: ignore[import-untyped]
from re2 import _re2  # re2's own methods take 3 us around each search, which takes 1 us

from fleet.pattern_parser import PatternRefused

MEMORY_BYTES = 32 * 1024 * 1024
"""At most, for what RE2 remembers of one pattern; with too little it works the same things out again and again."""

_ANYWHERE, _HERE = _re2.RE2.Anchor.UNANCHORED, _re2.RE2.Anchor.ANCHOR_START


class EncodedText:
    """A text as UTF-8, which RE2 reads, with its places in characters; they are counted from the last one asked for."""

    __slots__ = ("_byte", "_is_ascii", "_place", "data", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("utf-8", "replace")
        self._is_ascii = len(self.data) == len(text)
        self._place = self._byte = 0

    def byte(self, place: int) -> int:
        """Where a character begins."""
        if self._is_ascii:
            return place
        if place >= self._place:
            self._byte += len(self.text[self._place : place].encode("utf-8", "replace"))
        else:
            self._byte -= len(self.text[place : self._place].encode("utf-8", "replace"))
        self._place = place
        return self._byte

    def char(self, byte: int) -> int:
        """Which character begins there."""
        if self._is_ascii:
            return byte
        if byte >= self._byte:
            self._place += len(self.data[self._byte : byte].decode("utf-8", "replace"))
        else:
            self._place -= len(self.data[byte : self._byte].decode("utf-8", "replace"))
        self._byte = byte
        return self._place


class LinearRegex:
    """One pattern; the leftmost and then longest match counts."""

    __slots__ = ("_match", "_regex")

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        options = re2.Options()
        options.longest_match = True
        options.never_capture = True
        options.log_errors = False
        options.max_mem = MEMORY_BYTES
        options.case_sensitive = not ignore_case
        options.dot_nl = False
        try:
            self._regex = re2.compile(pattern.encode(), options)  # refuses what RE2 does not take
            self._match = _re2.RE2(pattern.encode(), options).Match
        except re2.error as error:
            why = error.args[0] if error.args else "unknown"
            raise PatternRefused(f"RE2 does not take it: {_readable(why)}") from None

    def search(self, text: EncodedText, start: int) -> int | None:
        """Where the first match from a place on begins; what stands before the place is seen by edges."""
        found = self._match(_ANYWHERE, text.data, text.byte(start), len(text.data))[0][0]
        return None if found < 0 else text.char(found)

    def match(self, text: EncodedText, start: int) -> int | None:
        """Where the match that begins at a place ends."""
        found = self._match(_HERE, text.data, text.byte(start), len(text.data))[0][1]
        return None if found < 0 else text.char(found)

    def each(self, text: str) -> list[str]:
        """All matches, one behind the other."""
        return [found.group().decode() for found in self._regex.finditer(text.encode())]


def _readable(why: object) -> str:
    return why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
