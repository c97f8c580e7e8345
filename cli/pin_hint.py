"""What mends a manifest that leaves its engine open, in one go."""

from collections.abc import Iterable, Mapping

FOUR_PINS = "four-pins"
"""The rule that a written manifest breaks as long as nobody has pinned it."""


def pin_hint(violations: Iterable[Mapping[str, object]], file: str = "FILE") -> list[str]:
    """The line that names the command, where it helps: revision, batch and hardware are for people to give."""
    pointers = [str(item.get("pointer") or "") for item in violations if item.get("rule") == FOUR_PINS]
    if any(pointer.startswith("/spec/engine") for pointer in pointers):
        command = f"enginehouse pin {file} --write"
        return [f"'{command}' chooses what is open of the engine and writes the pinned manifest beside the file"]
    return []
