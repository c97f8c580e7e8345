"""What stands in an object, read without trust: the wrong kind of value is nothing, and never a fault of the reader."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Plain: TypeAlias = Mapping[str, Any]


def as_map(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever stands in an object
    """A mapping, else an empty one."""
    return dict(value) if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:  # noqa: ANN401 - whatever stands in an object
    """A list, else an empty one."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def as_maps(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - whatever stands in an object
    """The mappings of a list."""
    return [dict(item) for item in as_list(value) if isinstance(item, Mapping)]


def as_flag(value: object) -> bool | None:
    """Whether something is on, also where a boolean is written as text; ``None`` = it can't be read."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def as_whole(value: object) -> int | None:
    """A whole number; ``None`` = it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def kind_and_part(item: Plain) -> tuple[str, bool]:
    """The kind that an object is of, and whether it is a patch, which says a part of one."""
    kind = str(item.get("kind") or "")
    stem = kind.removesuffix("Patch")
    return (stem, True) if stem and stem != kind else (kind, False)


def each_object(item: Plain) -> list[Plain]:
    """An object by itself, or those of a list; what a list's members leave out, its own kind says."""
    kind = str(item.get("kind") or "")
    members = item.get("items")
    if not kind.endswith("List") or not isinstance(members, Sequence) or isinstance(members, str):
        return [item]
    version = item.get("apiVersion")
    head = {"apiVersion": version, "kind": kind.removesuffix("List")}
    return [{**head, **{key: value for key, value in found.items() if value}} for found in as_maps(members)]


def object_id(kind: str, item: Plain, *, name: str = "") -> str:
    """``namespace/Kind/name`` of an object, or of one beside it."""
    head = as_map(item.get("metadata"))
    return f"{head.get('namespace') or 'default'}/{kind}/{name or head.get('name') or ''}"
