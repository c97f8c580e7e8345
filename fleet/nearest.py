"""The known name that a mistyped one is nearest to."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest of the known names, or ``None`` when none is close."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known name, else nothing."""
    match = nearest(word, known)
    return f"; did you mean '{match}'?" if match else ""
