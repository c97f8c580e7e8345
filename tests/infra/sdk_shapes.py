"""What the SDK's own classes say about inputs, and where a program differs: the engine's mocks look at none of it."""

import types
import typing
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import pulumi
from pulumi import _types

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine writes a value that is not known yet."""
_SIGNATURE = "4dabf18193072939515e22adb298388d"
"""Marks secrets, assets and references on the wire."""


def args_class(type_: object) -> type | None:
    """The SDK's Args class that a property takes, if it takes one."""
    return next((item for item in _members(type_) if isinstance(item, type) and _is_args(item)), None)


def dict_faults(value: object, type_: object, path: str) -> Iterator[str]:
    """Each dict that stands where the SDK has an Args class."""
    wanted = args_class(type_)
    if isinstance(value, Mapping):
        if wanted is not None:
            yield f"{path}: a dict, where the SDK has {wanted.__name__}; its keys are not checked by anyone"
        else:
            for key, item in value.items():
                yield from dict_faults(item, _value_type(type_), f"{path}.{key}")
    elif _types.is_input_type(type(value)):
        for name, item_type in _types.input_type_types(type(value)).items():
            inner = _types.input_type_to_dict(value).get(name)
            yield from dict_faults(inner, item_type, f"{path}.{name}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for index, item in enumerate(value):
            yield from dict_faults(item, _element_type(type_), f"{path}[{index}]")


def wire_faults(value: object, type_: object, path: str) -> Iterator[str]:
    """Each property name that the SDK's class lacks, and each value of another kind than it states."""
    if value is None or value == UNKNOWN or (isinstance(value, dict) and _SIGNATURE in value):
        return
    wanted = args_class(type_)
    if wanted is not None and isinstance(value, dict):
        yield from _object_faults(value, wanted, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from wire_faults(item, _value_type(type_), f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from wire_faults(item, _element_type(type_), f"{path}[{index}]")
    if not _is_of(value, _members(type_)):
        yield f"{path}: {value!r} is a {type(value).__name__}, where the SDK takes {type_}"


def _object_faults(value: dict[str, object], wanted: type, path: str) -> Iterator[str]:
    known = _types.input_type_types(wanted)
    for name, item in value.items():
        if name not in known:
            yield f"{path}.{name}: {wanted.__name__} has no property of this name"
        else:
            yield from wire_faults(item, known[name], f"{path}.{name}")


def _is_args(item: type) -> bool:
    return bool(_types.is_input_type(item))


def _members(type_: object) -> list[object]:
    """The alternatives of a type, without the wrapping of inputs and outputs."""
    origin = typing.get_origin(type_)
    if origin in (typing.Union, types.UnionType):
        return [member for item in typing.get_args(type_) for member in _members(item)]
    if origin in (pulumi.Output, Awaitable):
        return []
    return [type_]


def _arguments(type_: object, kind: type) -> tuple[Any, ...]:
    for member in _members(type_):
        origin = typing.get_origin(member)
        if isinstance(origin, type) and issubclass(origin, kind):
            return typing.get_args(member)
    return ()


def _value_type(type_: object) -> object:
    return next(iter(_arguments(type_, Mapping)[1:2]), Any)


def _element_type(type_: object) -> object:
    return next(iter(_arguments(type_, Sequence)[:1]), Any)


def _is_of(value: object, members: list[object]) -> bool:
    return any(_is_member(value, member) for member in members) or not members


def _is_member(value: object, member: object) -> bool:
    origin = typing.get_origin(member)
    if origin is typing.Literal:
        return value in typing.get_args(member)
    if isinstance(origin, type):
        return isinstance(value, dict if issubclass(origin, Mapping) else list)
    if not isinstance(member, type) or member in (object, Any):  # Any is a class since 3.11
        return True
    if _is_args(member):
        return isinstance(value, dict)
    return _is_scalar_of(value, member)


def _is_scalar_of(value: object, member: type) -> bool:
    if issubclass(member, Enum):
        return value in [item.value for item in member]
    if member is bool:
        return isinstance(value, bool)
    if member in (int, float):
        whole = member is float or (isinstance(value, int | float) and float(value).is_integer())
        return isinstance(value, int | float) and not isinstance(value, bool) and whole
    return isinstance(value, member)
