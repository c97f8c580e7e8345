"""The known name that a mistyped one is nearest to."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest of the known names, or ``None`` when none is close."""
    return next(iter(closest(word, known, most=1)), None)


def closest(word: str, known: Iterable[str], *, most: int) -> tuple[str, ...]:
    """The close ones of the known names, closest first."""
    return tuple(difflib.get_close_matches(word, list(known), n=most, cutoff=0.6))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known name, else nothing."""
    match = nearest(word, known)
    return f"; did you mean '{match}'?" if match else ""
