"""The decision as comment lines of a pinned file: what was taken and why, and the first reason against each other."""

from collections.abc import Iterator

from fleet.placement.decision import Candidate, Choice

MAX_CHARACTERS = 160
"""Of one line; the whole reasons are in ``enginehouse pin -o json``."""


def decision_lines(choice: Choice) -> tuple[str, ...]:
    """Stable lines without a leading ``#``; the same choice gives the same lines."""
    lines = ["Made by 'enginehouse pin'; change the written manifest and pin again, not this file."]
    if choice.chosen is not None:
        lines += _taken(choice.chosen, choice.considered)
    lines += _against(choice)
    lines += [f"note: {note}" for note in choice.notes]
    return tuple(_one_line(line) for line in lines)


def _taken(chosen: Candidate, considered: int) -> Iterator[str]:
    where = "" if chosen.split is None else f" on {chosen.instance_type} as {chosen.split}"
    among = f", best of {considered} candidates" if considered > 1 else ""
    yield f"{chosen.engine} {chosen.version}{where}: score {chosen.total:.2f}{among}"
    for score in chosen.scores:
        yield f"  {score.name} {score.value:.2f} x {score.weight:.2f}: {score.reason}"


def _against(choice: Choice) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for item in choice.rejections:
        if (item.engine, item.rule) not in seen:
            seen.add((item.engine, item.rule))
            what = " ".join(
                filter(None, (item.engine, item.version, item.instance_type and f"on {item.instance_type}"))
            )
            yield f"not {what} ({item.rule}): {item.reason}"


def _one_line(text: str) -> str:
    plain = " ".join(text.split()) if not text.startswith("  ") else "  " + " ".join(text.split())
    return plain if len(plain) <= MAX_CHARACTERS else f"{plain[: MAX_CHARACTERS - 3]}..."
