"""What a change would do: the plan that a dry run answers with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from control_plane.records import Document

Verb = Literal["create", "replace", "unchanged", "delete"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place that differs; ``None`` stands for "not there"."""

    pointer: str
    before: Any
    after: Any

    def document(self) -> Document:
        """The difference as it crosses the API."""
        return {"pointer": self.pointer, "before": self.before, "after": self.after}


def verb_of(before: Document | None, after: Document) -> Verb:
    """What storing a document would be."""
    if before is None:
        return "create"
    return "unchanged" if before == after else "replace"


def differences(before: Document | None, after: Document | None) -> tuple[Difference, ...]:
    """Every place where two documents differ, by JSON pointer."""
    return tuple(_walk("", before or {}, after or {}))


def _walk(pointer: str, before: Any, after: Any) -> Iterator[Difference]:  # noqa: ANN401 - any JSON value
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            escaped = name.replace("~", "~0").replace("/", "~1")
            yield from _walk(f"{pointer}/{escaped}", before.get(name), after.get(name))
    elif before != after:
        yield Difference(pointer, before, after)
