"""What the installed SDK says about a resource: its properties, their types, which are required, which come back.

Nothing is written down here: everything is read from the annotations of the SDK's resource and Args classes. Importing
an SDK takes seconds, so that what was read is kept for the other processes of a test run, in ``DOUBLES_TYPES``.
"""

import collections.abc
import importlib
import inspect
import json
import os
import re
import sys
import threading
import types
import typing
import warnings
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

Shape = Any
"""string, boolean, integer, number, any or asset; or an object with one key: list, map, words, object or one_of."""
Properties = dict[str, tuple[Shape, bool]]
"""Name -> shape, and whether it is required (an input) or always there (an output)."""
_ONE_AT_A_TIME = threading.RLock()
"""An SDK loads its modules when they are first asked for; a second thread would see one that is half loaded."""
_SCALARS: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", object: "any"}


@dataclass(frozen=True)
class ResourceType:
    """A resource of a provider, or the provider itself."""

    inputs: Properties
    outputs: Properties
    objects: dict[str, Properties]
    """The Args classes that the inputs lead to, by module and name."""


class NotInSdk(Exception):
    """The SDK has no such resource."""


@cache
def resource_type(package: str, token: str) -> ResourceType:
    """The resource behind a token; raises `NotInSdk`."""
    kept = _kept(package, token)
    if kept is not None and kept.exists():
        content = json.loads(kept.read_text(encoding="utf-8"))
    else:
        with _ONE_AT_A_TIME:
            content = _read(package, token)
            if kept is not None:
                _keep(kept, content)
    if content is None:
        raise NotInSdk(f"{package} has no resource {token}")
    return ResourceType(**content)


def provider_type(package: str) -> ResourceType:
    """The settings of the provider."""
    return resource_type(package, f"pulumi:providers:{package.removeprefix('pulumi_')}")


def _kept(package: str, token: str) -> Path | None:
    folder = os.environ.get("DOUBLES_TYPES")
    return Path(folder, re.sub(r"\W", "_", f"{package} {token}") + ".json") if folder else None


def _keep(path: Path, content: Any) -> None:
    whole = path.with_suffix(f".{os.getpid()}")
    whole.write_text(json.dumps(content), encoding="utf-8")
    whole.replace(path)


def _read(package: str, token: str) -> dict[str, Any] | None:
    """Everything about a resource from the SDK's classes; None = it has no such resource."""
    found = _classes_of(package).get(token)
    if found is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the module may have deprecated neighbours
        resource = getattr(importlib.import_module(found[0]), found[1])
    # Where another type has the name of the Args class already, it is the InitArgs class, in the resource's own module.
    module = sys.modules[resource.__module__]
    args = getattr(module, f"{found[1]}InitArgs", None) or getattr(module, f"{found[1]}Args")
    objects: dict[str, Properties] = {}
    inputs = _properties_of(args, objects)
    return {"inputs": inputs, "outputs": _outputs_of(resource), "objects": objects}


@cache
def _classes_of(package: str) -> dict[str, tuple[str, str]]:
    """Token -> module and class of every resource of an SDK, as the SDK registers them."""
    source = inspect.getsource(importlib.import_module(package))
    listed = re.search(r'resource_modules="""(.*?)"""', source, re.DOTALL)
    if listed is None:
        raise NotInSdk(f"{package} does not list its resources where they are looked for")
    found = {token: (m["fqn"], name) for m in json.loads(listed[1]) for token, name in m["classes"].items()}
    return {**found, f"pulumi:providers:{package.removeprefix('pulumi_')}": (package, "Provider")}


def _properties_of(args: type, objects: dict[str, Properties]) -> Properties:
    import pulumi
    from pulumi import _types as sdk

    names = sdk.input_type_py_to_pulumi_names(args)
    hints = typing.get_type_hints(args.__init__, localns={"Output": pulumi.Output, "T": type(None)})
    return {
        names[name]: (_shape_of(hints[name], objects), parameter.default is inspect.Parameter.empty)
        for name, parameter in inspect.signature(args.__init__).parameters.items()
        if name in names
    }


def _outputs_of(resource: type) -> Properties:
    import pulumi
    from pulumi import _types as sdk

    found: Properties = {}
    for name, hint in sdk._raw_return_hints(resource).items():
        if typing.get_origin(hint) is pulumi.Output:
            inner = typing.get_args(hint)[0]
            found[name] = (_shape_of(inner, None), type(None) not in typing.get_args(inner))
    return found


def _shape_of(hint: Any, objects: dict[str, Properties] | None) -> Shape:
    """The shape of an annotation; without ``objects`` classes are not looked into."""
    shapes = [_shape_of_one(option, objects) for option in _options_of(hint)]
    return shapes[0] if len(shapes) == 1 else {"one_of": shapes}


def _shape_of_one(option: Any, objects: dict[str, Properties] | None) -> Shape:
    origin = typing.get_origin(option)
    arguments = typing.get_args(option)
    if origin in (collections.abc.Sequence, list):
        return {"list": _shape_of(arguments[0], objects)}
    if origin in (collections.abc.Mapping, dict):
        return {"map": _shape_of(arguments[1], objects)}
    if origin is typing.Literal:
        return {"words": list(arguments)}
    if option is Any or option in _SCALARS:
        return _SCALARS.get(option, "any")
    if issubclass(option, Enum):
        return {"words": [member.value for member in option]}
    return _shape_of_class(option, objects)


def _shape_of_class(option: type, objects: dict[str, Properties] | None) -> Shape:
    if option.__name__ in ("Asset", "Archive"):
        return "asset"
    reference = f"{option.__module__}.{option.__name__}"
    if objects is not None and reference not in objects:
        objects[reference] = {}
        objects[reference] = _properties_of(option, objects)
    return {"object": reference}


def _options_of(hint: Any) -> list[Any]:
    """The types that a value may have, without what only Python sees: awaitables, outputs, typed dictionaries."""
    import pulumi

    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return [hint]
    found: list[Any] = []
    for member in typing.get_args(hint):
        origin = typing.get_origin(member)
        plumbing = origin in (collections.abc.Awaitable, pulumi.Output) or member in (type(None), pulumi.Output)
        if not plumbing and not typing.is_typeddict(member):
            found.extend(option for option in _options_of(member) if option not in found)
    return found
