"""Whether values fit the types of the SDK: the strictness that mocks lack."""

import collections.abc
import difflib
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi import Archive, Asset
from pulumi._types import is_input_type

from tests.pulumi.doubles.sdk_types import Property, is_enum, options_of, properties_of
from tests.pulumi.doubles.wire import SIGNATURE_KEY, UNKNOWN

Failure = tuple[str, str]
"""Path of the property, reason."""

_WORDS: dict[type, str] = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}


def failures(properties: Mapping[str, Any], known: Mapping[str, Property], path: str = "") -> Iterator[Failure]:
    """Everything about some properties that the SDK's types don't allow."""
    for name, property_ in known.items():
        if property_.is_required and name not in properties:
            yield _join(path, name), "is required and missing"
    for name, value in properties.items():
        here = _join(path, name)
        if name == "__defaults":
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            yield here, f"is no property here{f'; the nearest is {near[0]}' if near else ''}"
        else:
            yield from value_failures(value, known[name].type, here)


def value_failures(value: Any, hint: Any, path: str) -> Iterator[Failure]:
    """Why a value doesn't fit a type; nothing when it fits one of several."""
    if value is UNKNOWN:
        return
    first: list[Failure] = []
    for option in options_of(hint):
        found = list(_option_failures(value, option, path))
        if not found:
            return
        first = first or found
    yield from first


def _option_failures(value: Any, option: Any, path: str) -> Iterator[Failure]:
    origin = typing.get_origin(option)
    if option is Any or option is object:
        return
    if origin in (collections.abc.Sequence, list):
        yield from _list_failures(value, typing.get_args(option)[0], path)
    elif origin in (collections.abc.Mapping, dict):
        yield from _map_failures(value, typing.get_args(option)[1], path)
    elif origin is typing.Literal or is_enum(option):
        allowed = typing.get_args(option) if origin else tuple(member.value for member in option)
        if value not in allowed:
            yield path, f"is {value!r}; allowed: {', '.join(map(str, allowed))}"
    elif isinstance(option, type) and is_input_type(option):
        if isinstance(value, dict):
            yield from failures(value, properties_of(option), path)
        else:
            yield path, f"is {value!r} and must be an object"
    else:
        yield from _scalar_failures(value, option, path)


def _list_failures(value: Any, item: Any, path: str) -> Iterator[Failure]:
    if not isinstance(value, list):
        yield path, f"is {value!r} and must be a list"
        return
    for index, element in enumerate(value):
        yield from value_failures(element, item, f"{path}[{index}]")


def _map_failures(value: Any, item: Any, path: str) -> Iterator[Failure]:
    if not isinstance(value, dict):
        yield path, f"is {value!r} and must be an object"
        return
    for key, element in value.items():
        yield from value_failures(element, item, _join(path, key))


def _scalar_failures(value: Any, option: Any, path: str) -> Iterator[Failure]:
    if option in (Asset, Archive):
        if not (isinstance(value, dict) and SIGNATURE_KEY in value):
            yield path, f"is {value!r} and must be an asset or an archive"
        return
    if option not in _WORDS:
        yield path, f"has the type {option!r}, which the double does not know"
        return
    fits = isinstance(value, float | int) if option is float else isinstance(value, option)
    if not fits or (isinstance(value, bool) and option is not bool):
        yield path, f"is {value!r} and must be {_WORDS[option]}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
