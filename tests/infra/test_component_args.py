"""Each component takes a frozen class of typed arguments, without a dict in the place of one."""

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from typing import Any

import pulumi
import pytest

import infra

LOOSE = (Any, object, dict, MutableMapping)
"""Types that let misspelt keys through."""
OF_INPUT = {"Output": pulumi.Output, "T": typing.TypeVar("T")}
"""Names that the SDK's ``Input`` quotes."""


def components() -> list[type]:
    """The components of the program."""
    names = sorted(item.name for item in pkgutil.iter_modules(infra.__path__) if item.name != "__main__")
    modules = [importlib.import_module(f"infra.{name}") for name in names]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, pulumi.ComponentResource)
        and value.__module__ == module.__name__
    ]


def faults(component: type) -> Iterator[str]:
    """What is wrong with how a component is made."""
    hints = typing.get_type_hints(component.__init__)
    taken = [name for name in inspect.signature(component.__init__).parameters if name != "self"]
    if taken != ["name", "args", "opts"]:
        yield f"it takes {', '.join(taken)}; take name, args and opts"
        return
    args = hints.get("args")
    if not (isinstance(args, type) and is_dataclass(args) and args.__name__ == f"{component.__name__}Args"):
        yield f"its args are {args}; write a class {component.__name__}Args"
        return
    yield from class_faults(args)


def class_faults(args: type) -> Iterator[str]:
    """What is wrong with a class of arguments, and with the classes of ours that it is made of."""
    if not args.__dataclass_params__.frozen:
        yield f"{args.__name__} can be changed; freeze it"
    hints = typing.get_type_hints(args, localns=OF_INPUT)
    for field in fields(args):
        for part in parts(hints[field.name]):
            if is_loose(part):
                yield f"{args.__name__}.{field.name} is {part}; write a class of its keys"
            elif isinstance(part, type) and is_dataclass(part) and part.__module__.startswith("infra."):
                yield from class_faults(part)


def parts(hint: object) -> Iterator[object]:
    """A type and the types that it is made of."""
    yield hint
    for part in typing.get_args(hint):
        yield from parts(part)


def is_loose(hint: object) -> bool:
    """Whether a type says nothing of its keys or values; a mapping of names to values of one type does, as tags are."""
    kind = typing.get_origin(hint) or hint
    return kind in LOOSE or hint is Mapping or typing.is_typeddict(hint)


COMPONENTS = components()


def test_the_components_are_found():
    assert {"Network", "Cluster", "GpuPool", "NodeRole", "KedaScaler"} <= {item.__name__ for item in COMPONENTS}


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.__name__)
def test_a_component_takes_a_frozen_class_of_typed_arguments(component):
    assert list(faults(component)) == []


@dataclass
class PlantedArgs:
    """Not frozen."""

    name: str


def frozen_args(hint: object) -> type:
    """A class of arguments with one field."""
    return make_dataclass("PlantedArgs", [("field", hint)], frozen=True)


def taking(args: object) -> type:
    """A component with arguments of a type."""

    class Planted(pulumi.ComponentResource):
        def __init__(self, name: str, args: args, opts: pulumi.ResourceOptions | None = None) -> None:
            """Is never called."""

    return Planted


class Bare(pulumi.ComponentResource):
    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Is never called."""


@pytest.mark.parametrize(("component", "told"), [
    (Bare, "take name, args and opts"),
    (taking(dict[str, str]), "write a class PlantedArgs"),
    (taking(Mapping[str, Any]), "write a class PlantedArgs"),
    (taking(frozen_args(str) | None), "write a class PlantedArgs"),
    (taking(PlantedArgs), "freeze it"),
    (taking(frozen_args(dict[str, str])), "write a class of its keys"),
    (taking(frozen_args(Mapping[str, Any])), "write a class of its keys"),
    (taking(frozen_args(pulumi.Input[Mapping[str, object]])), "write a class of its keys"),
    (taking(frozen_args(Sequence[dict[str, str]])), "write a class of its keys"),
    (taking(frozen_args(Mapping)), "write a class of its keys"),
    (taking(frozen_args(Any)), "write a class of its keys"),
])  # fmt: skip
def test_a_planted_component_is_found(component, told):
    assert any(told in line for line in faults(component))


def test_names_for_values_of_one_kind_are_no_dict():
    args = frozen_args(Mapping[str, pulumi.Input[str]])
    assert list(faults(taking(args))) == []
