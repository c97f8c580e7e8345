"""Reading properties: absent is ``None``, unknown raises, and so does what is of another kind than the cloud's."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies.adapter import Props

_TRUE, _FALSE = ("true", "1"), ("false", "0", "")
_SHOWN = 80


class Unreadable(ValueError):
    """A property holds a value that none of its kind is."""

    def __init__(self, path: Sequence[str], value: object, wanted: str) -> None:
        shown = repr(plain(value))
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        key = "'" + ".".join(path) + "'"
        super().__init__(f"{key} is {shown}, and {wanted} belongs there")
        self.value = value
        self.without_value = f"{key} is {_kind(value)}, and {wanted} belongs there"
        """For a person who must not see the value."""


def at(props: Props, *path: str) -> Any:  # noqa: ANN401 what a property holds is the provider's business
    """What stands at a path, or ``None``."""
    value: Any = props
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def has(props: Props, key: str) -> bool:
    """Whether something is said, known or not (``in`` would read the value)."""
    return any(key == name for name in props)


def text(props: Props, *path: str) -> str | None:
    """The text at a path; nothing and the empty text are ``None``."""
    value = at(props, *path)
    return str(value) if value not in (None, "") else None


def number(props: Props, *path: str) -> int | None:
    """The whole number at a path; text that is one counts."""
    value = at(props, *path)
    whole = _whole(value)
    if whole is None and value is not None:
        raise Unreadable(path, value, "a whole number")
    return whole


def flag(props: Props, *path: str) -> bool:
    """Whether something is on; some providers write booleans as text."""
    value = at(props, *path)
    said = "" if value is None else str(value).lower()
    if not isinstance(value, bool | str | int | float | None) or said not in (*_TRUE, *_FALSE, "1.0", "0.0"):
        raise Unreadable(path, value, "true or false")
    return said in (*_TRUE, "1.0")


def parts(props: Props, *path: str) -> tuple[Props, ...]:
    """The objects of the list at a path; a single one is a list of one, and an empty place is none."""
    value = at(props, *path)
    if isinstance(value, Mapping):
        return (value,)
    return tuple(item for item in _members(path, value, "a list of objects") if _is_object(path, item))


def texts(props: Props, *path: str) -> tuple[str, ...]:
    """The texts of the list at a path."""
    value = at(props, *path)
    if isinstance(value, str):
        return (value,)
    return tuple(_text(path, item) for item in _members(path, value, "a list of texts") if item is not None)


def count(props: Props, *path: str) -> int:
    """How long the list at a path is; its members may be unknown."""
    value = at(props, *path)
    return len(value) if isinstance(value, Sequence) and not isinstance(value, str) else 0


def labels(props: Props, *path: str) -> dict[str, str]:
    """The mapping of texts at a path."""
    value = at(props, *path)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Unreadable(path, value, "an object of texts")
    return {str(key): str(item) for key, item in value.items()}


def document(props: Props, *path: str) -> dict[str, Any] | None:
    """The JSON object in the text at a path, or ``None`` where there is none."""
    found = json_at(props, *path)
    return found if isinstance(found, dict) else None


def json_at(props: Props, *path: str) -> Any:  # noqa: ANN401 any JSON value
    """What the JSON text at a path says; a text that is no JSON stays what it is."""
    value = plain(at(props, *path))
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def plain(value: Any) -> Any:  # noqa: ANN401 any JSON value
    """A value without the framework's proxies, read to its last leaf."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else "true or false"
    if isinstance(value, str | int | float):
        return "a text" if isinstance(value, str) else "a number"
    return "an object" if isinstance(value, Mapping) else "a list"


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value) else None
    return int(value) if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else None


def _members(path: Sequence[str], value: object, wanted: str) -> Iterator[Any]:
    if value is None:
        return
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise Unreadable(path, value, wanted)
    yield from value


def _is_object(path: Sequence[str], item: object) -> bool:
    if item is not None and not isinstance(item, Mapping):
        raise Unreadable(path, item, "an object")
    return item is not None


def _text(path: Sequence[str], item: object) -> str:
    if isinstance(item, Mapping) or (isinstance(item, Sequence) and not isinstance(item, str)):
        raise Unreadable(path, item, "a text")
    return str(item)
