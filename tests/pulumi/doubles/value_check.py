"""Whether values fit the types of the SDK: the strictness that mocks lack."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.pulumi.doubles.sdk_types import Properties, ResourceType, Shape
from tests.pulumi.doubles.wire import SIGNATURE_KEY, UNKNOWN

Failure = tuple[str, str]
"""Path of the property, reason."""
Objects = Mapping[str, Properties]

_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a string"),
    "boolean": ((bool,), "true or false"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
}


def failures(properties: Mapping[str, Any], type_: ResourceType) -> Iterator[Failure]:
    """Everything about some properties that the SDK's types don't allow."""
    yield from _object_failures(properties, type_.inputs, type_.objects, "")


def _object_failures(
    properties: Mapping[str, Any], known: Properties, objects: Objects, path: str
) -> Iterator[Failure]:
    for name, (_, is_required) in known.items():
        if is_required and name not in properties:
            yield _join(path, name), "is required and missing"
    for name, value in properties.items():
        here = _join(path, name)
        if name == "__defaults":
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            yield here, f"is no property here{f'; the nearest is {near[0]}' if near else ''}"
        else:
            yield from _value_failures(value, known[name][0], objects, here)


def _value_failures(value: Any, shape: Shape, objects: Objects, path: str) -> Iterator[Failure]:
    """Why a value doesn't fit a shape; nothing when it fits one of several."""
    if value is UNKNOWN or shape == "any":
        return
    if isinstance(shape, str):
        yield from _scalar_failures(value, shape, path)
        return
    ((kind, inner),) = shape.items()
    yield from _COMPOUND[kind](value, inner, objects, path)


def _one_of_failures(value: Any, options: list[Shape], objects: Objects, path: str) -> Iterator[Failure]:
    yield from min((list(_value_failures(value, option, objects, path)) for option in options), key=len)


def _words_failures(value: Any, words: list[Any], objects: Objects, path: str) -> Iterator[Failure]:
    if value not in words:
        yield path, f"is {value!r}; allowed: {', '.join(map(str, words))}"


def _class_failures(value: Any, reference: str, objects: Objects, path: str) -> Iterator[Failure]:
    if isinstance(value, dict):
        yield from _object_failures(value, objects[reference], objects, path)
    else:
        yield path, f"is {value!r} and must be an object"


def _map_failures(value: Any, item: Shape, objects: Objects, path: str) -> Iterator[Failure]:
    if not isinstance(value, dict):
        yield path, f"is {value!r} and must be an object"
        return
    for key, element in value.items():
        yield from _value_failures(element, item, objects, _join(path, key))


def _list_failures(value: Any, item: Shape, objects: Objects, path: str) -> Iterator[Failure]:
    if not isinstance(value, list):
        yield path, f"is {value!r} and must be a list"
        return
    for index, element in enumerate(value):
        yield from _value_failures(element, item, objects, f"{path}[{index}]")


def _scalar_failures(value: Any, shape: str, path: str) -> Iterator[Failure]:
    if shape == "asset":
        if not (isinstance(value, dict) and SIGNATURE_KEY in value):
            yield path, f"is {value!r} and must be an asset or an archive"
        return
    kinds, words = _SCALARS[shape]
    if not isinstance(value, kinds) or (isinstance(value, bool) and shape != "boolean"):
        yield path, f"is {value!r} and must be {words}"


_COMPOUND: dict[str, Callable[[Any, Any, Objects, str], Iterator[Failure]]] = {
    "list": _list_failures,
    "map": _map_failures,
    "object": _class_failures,
    "one_of": _one_of_failures,
    "words": _words_failures,
}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
