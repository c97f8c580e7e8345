"""Where in a stack's configuration something stands: its key as people write it, and what is there."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from fleet.spec import NAME_PATTERN
from fleet.value import Value
from infra.stack_config import StackConfig

KEY = "enginehouse:stack"
LONGEST_SHOWN = 80
Location = Sequence[int | str]
OF_A_MAPPING = "[key]"
"""How pydantic says that a mapping's key is wrong, not its value."""


class _Nothing:
    """Stands for a value that is not there."""


NOTHING: Final = _Nothing()


@dataclass(frozen=True, slots=True)
class Place:
    """One place in a configuration."""

    key: str
    """``pools.h100.zone``; an item without a name by its number: ``cluster.admins[0]``."""
    value: object
    """What stands there; `NOTHING` = the key is not there."""
    model: type[Value] | None
    """The section that the key belongs to; ``None`` = a mapping or a list."""
    field: str
    """The key's own name."""

    @property
    def shown(self) -> str:
        """The value for a message; empty = nothing stands there."""
        return shown(self.value)


def place_of(location: Location, content: object) -> Place:
    """The place that pydantic means: without the parts by which it tells members of a union apart."""
    kind: Any = StackConfig
    holder: type[Value] | None = None
    key, field = "", ""
    for part in location:
        if part == OF_A_MAPPING:
            break
        is_tag, below = _step(kind, part)
        if not is_tag:
            holder = kind if _is_model(kind) else None
            key, field = _joined(key, part, content), str(part)
            content = _below(content, part)
        kind = below
    return Place(key or KEY, content, holder, field)


def model_at(location: Location) -> type[Value] | None:
    """The section at a location; ``None`` = none is known there."""
    kind: Any = StackConfig
    for part in location:
        kind = _step(kind, part)[1]
    return kind if _is_model(kind) else None


def shown(value: object) -> str:
    """A value for a message: one line, and not longer than it helps."""
    if value is NOTHING:
        return ""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, Mapping):
        return "a mapping"
    text = _plain(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _plain(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**LONGEST_SHOWN:
        return f"a number of more than {LONGEST_SHOWN} digits"
    text = str(value)
    return text if text.isprintable() and text else repr(text)


def _step(kind: Any, part: int | str) -> tuple[bool, Any]:  # noqa: ANN401 - any annotation of a model
    """Whether a part only names a member of a union, and what stands below it."""
    if _is_model(kind):
        found = kind.model_fields.get(part)
        return False, _bare(found.annotation) if found else None
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        return False, _bare(parts[0])
    if origin is dict:
        return False, _bare(parts[1])
    members = [item for item in parts if _is_model(item)]
    return True, next((item for item in members if part in _tags(item)), None)


def _bare(annotation: Any) -> Any:  # noqa: ANN401 - any annotation of a model
    """Without what stands beside a type, and without ``None``."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return _bare(parts[0]) if len(parts) == 1 else annotation
    return annotation


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Value)


def _tags(model: type[Value]) -> tuple[str, ...]:
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation) if kind and get_origin(kind.annotation) is Literal else ()


def _joined(key: str, part: int | str, content: object) -> str:
    if isinstance(part, int):
        name = _name_of(content, part)
        return f"{key}[{part}]" if name is None else f"{key}.{name}"
    text = _plain(part)
    return f"{key}.{text}" if key else text


def _name_of(items: object, index: int) -> str | None:
    """The name of a list's item, where it has one of its own."""
    if not isinstance(items, list):
        return None
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    name = names[index] if index < len(names) else None
    is_name = isinstance(name, str) and re.fullmatch(NAME_PATTERN, name) is not None and names.count(name) == 1
    return str(name) if is_name else None


def _below(content: object, part: int | str) -> object:
    if isinstance(content, Mapping):
        return content.get(part, NOTHING)
    if isinstance(content, list) and isinstance(part, int) and part < len(content):
        return content[part]
    return NOTHING
