"""The known name that a mistyped one is nearest to."""

import difflib
from collections.abc import Iterable

SHORTEST_PREFIX = 2
MOST_NAMED = 3
"""More names than this that begin alike are no hint: the caller's list of all says more."""
LIKENESS = 0.7
"""From which share of common letters on a guess is worth a question."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest of the known names, or ``None`` when none is close."""
    return next(iter(_meant(word, list(known))), None)


def closest(word: str, known: Iterable[str], *, most: int) -> tuple[str, ...]:
    """The close ones of the known names, closest first."""
    return tuple(difflib.get_close_matches(word, list(known), n=most, cutoff=0.6))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known names that are meant most likely, else nothing."""
    meant = _meant(word, list(known))
    return f"; did you mean {' or '.join(repr(str(name)) for name in meant)}?" if meant else ""


def spelled(word: str, known: Iterable[str]) -> str:
    """The known name that a word is but for its capitals, else the word."""
    return next((str(name) for name in known if name.casefold() == word.casefold()), word)


def _meant(word: str, known: list[str]) -> list[str]:
    """The same word in other capitals, else names that begin with it, else the name that is most alike."""
    plain = word.casefold()
    same = [name for name in known if name.casefold() == plain]
    if same:
        return same[:1]
    begun = [name for name in known if name.casefold().startswith(plain)]
    if len(plain) >= SHORTEST_PREFIX and 0 < len(begun) <= MOST_NAMED:
        return begun
    folded = {name.casefold(): name for name in known}
    return [folded[name] for name in difflib.get_close_matches(plain, folded, n=1, cutoff=LIKENESS)]
