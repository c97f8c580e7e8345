"""Filters a plain text that grows, and a whole one."""

from collections import Counter

from gateway.output_filter.masks import Masks
from gateway.output_filter.matcher import Matcher
from gateway.output_filter.normal_form import Writing
from gateway.output_filter.scanner import Edit, Scanner


class TextFilter:
    """Text in, text out; what may still become a value is held back."""

    __slots__ = ("_gone", "_held", "_scanner", "counts")

    def __init__(self, matcher: Matcher, masks: Masks, writing: Writing | None = Writing.PLAIN) -> None:
        self.counts: Counter[str] = Counter()
        """Values by class."""
        self._scanner = Scanner(matcher, masks, writing)
        self._held = ""
        self._gone = 0

    @property
    def held(self) -> int:
        """Characters that wait."""
        return len(self._held)

    def feed(self, text: str) -> str:
        """What can leave after the next piece."""
        self._held += text
        self._scanner.feed(text)
        return self._decided()

    def expire(self) -> str:
        """What leaves when the time of the held text is over."""
        self._scanner.expire()
        return self._decided()

    def finish(self) -> str:
        """The rest."""
        self._scanner.finish()
        return self._decided()

    def _decided(self) -> str:
        upto = self._scanner.decided
        if upto == self._gone:
            return ""
        cut = upto - self._gone
        text, self._held = self._held[:cut], self._held[cut:]
        edits = self._scanner.edits
        if edits:
            text = edited(text, self._gone, edits)
            self.counts.update(edit.name for edit in edits if edit.name)
            edits.clear()
        self._gone = upto
        return text


def edited(text: str, start: int, edits: list[Edit]) -> str:
    """A piece of a text, which begins there in it, with the edits of the text; a mask stands where its value began."""
    pieces: list[str] = []
    at, end = start, start + len(text)
    for edit in edits:
        if edit.end <= start or edit.start >= end:
            continue
        pieces.append(text[at - start : max(edit.start - start, at - start)])
        if edit.start >= start:
            pieces.append(edit.text)
        at = min(edit.end, end)
    pieces.append(text[at - start :])
    return "".join(pieces)


def filter_whole(text: str, matcher: Matcher, masks: Masks, writing: Writing | None = Writing.PLAIN) -> list[Edit]:
    """The edits of a whole text."""
    scanner = Scanner(matcher, masks, writing)
    scanner.feed(text)
    scanner.finish()
    return scanner.edits
