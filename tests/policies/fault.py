"""A planted fault: how a clean program is changed, and which policy has to find it, and no other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.policies.edited import Program

Change = Callable[[Program], None]


@dataclass(frozen=True)
class Fault:
    """One mistake in an otherwise clean program."""

    name: str
    policy: str
    change: Change
    variant: str = "prod"

    def __str__(self) -> str:
        return f"{self.name} ({self.policy})"


def put(name: str, path: str, value: Any, *, of: Mapping[str, list[str]] | None = None) -> Change:
    """Write a value."""
    return lambda program: program.put(name, path, value, of=of)


def drop(name: str, path: str) -> Change:
    """Take a value out."""
    return lambda program: program.drop(name, path)


def remove(name: str) -> Change:
    """Take a resource out."""
    return lambda program: program.remove(name)


def add(type_: str, name: str, inputs: Mapping[str, Any], **others: Any) -> Change:
    """Put a resource in."""
    return lambda program: program.add(type_, name, inputs, **others)


def chart(name: str, values: Mapping[str, Any] | None = None) -> Change:
    """Install a chart."""
    return add("kubernetes:helm.sh/v3:Release", name, {"chart": name, "values": values or {}})


def all_of(*changes: Change) -> Change:
    """Several changes that make one mistake together."""

    def change(program: Program) -> None:
        for each in changes:
            each(program)

    return change
