"""Cuts a growing text into sentences that something else judges; text waits until its sentence may pass."""

import re
from dataclasses import dataclass, field

_ENDS = re.compile(r"[.!?\u2026][\"')\]\u201d]{0,3}\s|[\u3002\uff01\uff1f]|\n")
_LONGEST_END = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A sentence to be judged, as the client would see it."""

    number: int
    text: str = field(repr=False)


@dataclass(slots=True)
class _Sentence:
    start: int
    end: int
    may_pass: bool | None = None


class SentenceGate:
    """The sentences of one text, in its own characters.

    Law: for every chunking the sentences are the same: one ends where a mark of its end is, else at the last space of
    the window, else with the window; the last one with the text.
    """

    __slots__ = ("_cut", "_sentences", "_text", "_window", "passed")

    def __init__(self, window: int) -> None:
        self.passed = 0
        """The characters from the beginning whose sentences may pass, or that something worse than waiting ends."""
        self._window = window
        self._text = ""  # what is not cut yet
        self._cut = 0  # where it begins
        self._sentences: list[_Sentence] = []  # not passed yet

    def feed(self, text: str) -> None:
        """The next piece."""
        self._text += text

    def cut(self, decided: int, *, is_end: bool) -> list[tuple[int, int, str]]:
        """The next sentences of the text before a place: where each begins and ends, and its text."""
        found: list[tuple[int, int, str]] = []
        while (length := self._next(decided - self._cut, is_end=is_end)) > 0:
            found.append((self._cut, self._cut + length, self._text[:length]))
            self._sentences.append(_Sentence(self._cut, self._cut + length))
            self._text = self._text[length:]
            self._cut += length
        return found

    def judge(self, start: int, *, may_pass: bool) -> None:
        """The verdict on the sentence that begins there; they may come in any order."""
        for sentence in self._sentences:
            if sentence.start == start:
                sentence.may_pass = may_pass
        while self._sentences and self._sentences[0].may_pass is not None:
            self.passed = self._sentences.pop(0).end

    @property
    def asked(self) -> int:
        """The characters from the beginning that are cut into sentences."""
        return self._cut

    def _next(self, known: int, *, is_end: bool) -> int:
        """How long the next sentence is; 0 = not yet known."""
        end = _ENDS.search(self._text, 0, known)
        if end is not None and end.end() <= self._window:
            return end.end()
        if known >= self._window + _LONGEST_END or (is_end and known > self._window):
            space = self._text.rfind(" ", 0, self._window)
            return space + 1 if space > 0 else self._window
        return known if is_end else 0
