"""What the installed SDK says about a resource: its properties, their types, which are required, which come back.

Nothing is written down here: everything is read from the annotations of the SDK's resource and Args classes.
"""

import collections.abc
import importlib
import inspect
import json
import re
import sys
import types
import typing
import warnings
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import pulumi
from pulumi import _types as sdk


@dataclass(frozen=True)
class Property:
    """One property that a person may set."""

    type: Any
    is_required: bool


@dataclass(frozen=True)
class ResourceType:
    """A resource of a provider."""

    token: str
    inputs: dict[str, Property]
    outputs: dict[str, Any]
    """Every property that comes back; a type with None in it may be absent."""


class NotInSdk(Exception):
    """The SDK has no such resource."""


@cache
def classes_of(package: str) -> dict[str, tuple[str, str]]:
    """Token -> module and class of every resource of an SDK, as the SDK registers them."""
    source = inspect.getsource(importlib.import_module(package))
    listed = re.search(r'resource_modules="""(.*?)"""', source, re.DOTALL)
    if listed is None:
        raise NotInSdk(f"{package} does not list its resources where they are looked for")
    return {token: (m["fqn"], name) for m in json.loads(listed[1]) for token, name in m["classes"].items()}


@cache
def resource_type(package: str, token: str) -> ResourceType:
    """The resource behind a token."""
    if token not in classes_of(package):
        raise NotInSdk(f"{package} has no resource {token}")
    fqn, name = classes_of(package)[token]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the module may have deprecated neighbours
        resource = getattr(importlib.import_module(fqn), name)
    # Where another type has the name of the Args class already, it is the InitArgs class, in the resource's own module.
    module = sys.modules[resource.__module__]
    args = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
    return ResourceType(token, properties_of(args), outputs_of(resource))


@cache
def properties_of(args: type) -> dict[str, Property]:
    """The properties of an Args class by their name on the wire."""
    names = sdk.input_type_py_to_pulumi_names(args)
    hints = typing.get_type_hints(args.__init__, localns={"Output": pulumi.Output, "T": type(None)})
    parameters = inspect.signature(args.__init__).parameters
    found = {}
    for python_name, parameter in parameters.items():
        if python_name in names:
            required = parameter.default is inspect.Parameter.empty
            found[names[python_name]] = Property(hints[python_name], required)
    return found


def outputs_of(resource: type) -> dict[str, Any]:
    """The properties that a resource has afterwards, and whether each is always there."""
    return {
        name: typing.get_args(hint)[0] for name, hint in sdk._raw_return_hints(resource).items() if _is_output(hint)
    }


def _is_output(hint: Any) -> bool:
    return typing.get_origin(hint) is pulumi.Output


def may_be_absent(hint: Any) -> bool:
    """Whether the type has None in it."""
    return type(None) in typing.get_args(hint)


def options_of(hint: Any) -> list[Any]:
    """The types that a value may have, without what only Python sees: awaitables, outputs, typed dictionaries."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return [hint]
    found: list[Any] = []
    for member in typing.get_args(hint):
        origin = typing.get_origin(member)
        plumbing = origin in (collections.abc.Awaitable, pulumi.Output) or member in (type(None), pulumi.Output)
        if not plumbing and not typing.is_typeddict(member):
            found.extend(option for option in options_of(member) if option not in found)
    return found


def is_enum(option: Any) -> bool:
    """Whether a type is one of the SDK's enumerations."""
    return isinstance(option, type) and issubclass(option, Enum)
