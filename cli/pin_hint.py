"""What mends a manifest that leaves one of its four parts open, in one go."""

from collections.abc import Iterable, Mapping

FOUR_PINS = "four-pins"
"""The rule that a written manifest breaks as long as nobody has pinned it."""


def pin_hint(violations: Iterable[Mapping[str, object]], file: str = "FILE") -> list[str]:
    """The line that names the command, where it helps."""
    if any(item.get("rule") == FOUR_PINS for item in violations):
        return [f"'enginehouse pin {file} --write' fixes what is left open and writes the pinned manifest beside it"]
    return []
