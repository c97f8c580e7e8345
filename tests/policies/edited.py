"""Recorded programs that can be changed in one place, as somebody would who makes a mistake."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from infra.program import build
from infra.program_inputs import NOTHING, Inputs
from sources.environment import Environment
from tests.infra.recording import Options, Recorded, Recording, record
from tests.infra.stacks import VARIANTS, config_of


@lru_cache(maxsize=16)
def recorded(variant: str, *, preview: bool = False) -> Recording:
    """What the real program registers for a variant; recorded once in a test run."""
    config = VARIANTS[variant]
    inputs = Inputs(Environment(), NOTHING, None)
    return record(lambda: build(config, inputs), config=config_of(config), stack=config.environment, preview=preview)


class Program:
    """The resources of a program. Names are those of the program without ``enginehouse-<env>-``.

    A resource is named ``Type name`` with the last part of its type (``*`` = any of that type); a place in it is
    ``key.key.0.key``, or ``key|key`` where keys have points.
    """

    def __init__(self, resources: Sequence[Recorded]) -> None:
        self._found = list(resources)
        self._touched: set[str] = set()

    @property
    def resources(self) -> tuple[Recorded, ...]:
        """All of them, as they are now."""
        return tuple(self._found)

    @property
    def changed(self) -> tuple[Recorded, ...]:
        """Those that are not as they were, and those whose provider is not."""
        return tuple(
            item
            for item in self._found
            if item.urn in self._touched or item.provider.rpartition("::")[0] in self._touched
        )

    def get(self, name: str, path: str = "") -> Any:
        """A value, or all inputs."""
        found: Any = self._one(name).inputs
        for key in _keys(path):
            found = found[key]
        return found

    def id(self, name: str) -> str:
        """The id of a resource."""
        return self._one(name).id

    def put(self, name: str, path: str, value: Any, *, of: Mapping[str, Sequence[str]] | None = None) -> None:
        """Write a value; ``of`` says for properties from which resources they come now."""
        item = self._one(name)
        inputs, outputs = copy.deepcopy(dict(item.inputs)), copy.deepcopy(dict(item.outputs))
        for values in (inputs, outputs):
            _write(values, _keys(path), value)
        sources = {prop: frozenset(self._one(other).urn for other in names) for prop, names in (of or {}).items()}
        self._replace(item, inputs, outputs, {**item.property_dependencies, **sources})

    def drop(self, name: str, path: str) -> None:
        """Take a value out, and with a whole property what it came from."""
        item, keys = self._one(name), _keys(path)
        inputs, outputs = copy.deepcopy(dict(item.inputs)), copy.deepcopy(dict(item.outputs))
        for values in (inputs, outputs):
            _remove(values, keys)
        sources = {prop: urns for prop, urns in item.property_dependencies.items() if len(keys) > 1 or prop != keys[0]}
        self._replace(item, inputs, outputs, sources)

    def retype(self, old: str, new: str) -> None:
        """Let the resources of a type be of another one."""
        for index, item in enumerate(self._found):
            if item.type == old:
                self._found[index] = replace(item, type=new)
                self._touched.add(item.urn)

    def remove(self, name: str) -> None:
        """Take a resource out."""
        self._found.remove(self._one(name))

    def add(
        self,
        type_: str,
        name: str,
        inputs: Mapping[str, Any],
        *,
        of: Mapping[str, Sequence[str]] | None = None,
        parent: str = "",
    ) -> None:
        """Put a resource in."""
        root = self._found[0].urn.split("::")
        urn = f"{'::'.join(root[:2])}::{type_}::{name}"
        sources = {prop: frozenset(self._one(other).urn for other in names) for prop, names in (of or {}).items()}
        item = Recorded(
            type=type_, name=name, urn=urn, inputs=inputs, is_custom=True,
            parent=self._one(parent).urn if parent else "", provider="",
            depends_on=frozenset().union(*sources.values()), property_dependencies=sources, options=Options(),
            id=f"id-of-{name}", outputs=inputs, secret_inputs=frozenset(),
        )  # fmt: skip
        self._found.append(item)
        self._touched.add(urn)

    def _one(self, name: str) -> Recorded:
        kind, _, short = name.partition(" ")
        of_kind = [item for item in self._found if item.type.rsplit(":", 1)[-1] == kind]
        found = of_kind[:1] if short == "*" else [item for item in of_kind if _short(item.name) == short]
        if len(found) != 1:
            known = sorted(f"{item.type.rsplit(':', 1)[-1]} {_short(item.name)}" for item in self._found)
            raise LookupError(f"{len(found)} resources are called {name!r}; there are {known}")
        return found[0]

    def _replace(
        self, item: Recorded, inputs: dict[str, Any], outputs: dict[str, Any], sources: Mapping[str, frozenset[str]]
    ) -> None:
        changed = replace(item, inputs=inputs, outputs=outputs, property_dependencies=sources)
        self._found[self._found.index(item)] = changed
        self._touched.add(item.urn)


def program(variant: str = "prod", *, preview: bool = False) -> Program:
    """A copy of a variant's program to change."""
    return Program(recorded(variant, preview=preview).resources)


def _short(name: str) -> str:
    parts = name.split("-", 2)
    return parts[2] if parts[0] == "enginehouse" and len(parts) == 3 else name


def _keys(path: str) -> tuple[str | int, ...]:
    return tuple(_split(path)) if path else ()


def _split(path: str) -> Iterator[str | int]:
    for key in path.split("|" if "|" in path else "."):
        yield int(key) if key.isdigit() else key


def _write(values: Any, keys: Sequence[str | int], value: Any) -> None:
    *head, last = keys
    for key in head:
        values = values[key] if isinstance(key, int) else values.setdefault(key, {})
    if isinstance(last, int) and last == len(values):
        values.append(value)
    else:
        values[last] = value


def _remove(values: Any, keys: Sequence[str | int]) -> None:
    *head, last = keys
    for key in head:
        values = values[key]
    del values[last]
