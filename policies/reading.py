"""Reading properties: absent is ``None``, unknown raises, and the cloud's whole numbers are whole."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from policies.adapter import Props


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
    """The whole number at a path."""
    value = at(props, *path)
    return None if value is None else int(value)


def flag(props: Props, *path: str) -> bool:
    """Whether something is on; some providers write booleans as text."""
    value = at(props, *path)
    return value is True or (isinstance(value, str) and value.lower() == "true")


def parts(props: Props, *path: str) -> tuple[Props, ...]:
    """The objects of the list at a path."""
    value = at(props, *path)
    if value is None:
        return ()
    return (value,) if isinstance(value, Mapping) else tuple(value)


def texts(props: Props, *path: str) -> tuple[str, ...]:
    """The texts of the list at a path."""
    value = at(props, *path)
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value)


def count(props: Props, *path: str) -> int:
    """How long the list at a path is; its members may be unknown."""
    value = at(props, *path)
    return len(value) if isinstance(value, Sequence) and not isinstance(value, str) else 0


def labels(props: Props, *path: str) -> dict[str, str]:
    """The mapping of texts at a path."""
    value = at(props, *path)
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def document(props: Props, *path: str) -> dict[str, Any] | None:
    """The JSON object in the text at a path, or ``None`` where there is none."""
    value = at(props, *path)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def plain(value: Any) -> Any:  # noqa: ANN401 any JSON value
    """A value without the framework's proxies, read to its last leaf."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
