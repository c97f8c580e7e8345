"""Types and defaults of a model's fields, in words for a table."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from layout import code, codes
from pydantic.fields import FieldInfo

from fleet import spec
from fleet.value import Value

UNION = (Union, types.UnionType)
NAMED: Mapping[str, object] = {
    "a DNS label": spec.Name,
    "label key": spec.LabelKey,
    "label value": spec.LabelValue,
    "image by digest": spec.ImageDigest,
}
"""Words for types that have a name in the code."""
PLAIN: Mapping[type, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    date: "a day",
    IPv4Network: "an IPv4 network",
}


def models_below(*roots: type[Value]) -> tuple[type[Value], ...]:
    """Models with every model that their fields hold, in the order in which a reader meets them."""
    found: dict[type[Value], None] = {}

    def visit(model: type[Value]) -> None:
        if model in found:
            return
        found[model] = None
        for item in model.model_fields.values():
            for below in _values_in(item.annotation):
                visit(below)

    for root in roots:
        visit(root)
    return tuple(found)


def _values_in(annotation: object) -> Iterator[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        yield annotation
    for part in get_args(annotation):
        yield from _values_in(part)


@dataclass(frozen=True, slots=True)
class FieldWords:
    """How a page says types and defaults; ``named`` are words for types of its own."""

    named: Mapping[str, object] = field(default_factory=dict)
    nothing: str = "open"
    """What a default of ``None`` is called."""

    def type_of(self, info: FieldInfo) -> str:
        """The type of a field."""
        return self._type(info.rebuild_annotation())

    def default_of(self, info: FieldInfo) -> str:
        """What counts where a field is left out."""
        if info.is_required():
            return "**required**"
        value = info.get_default(call_default_factory=True)
        if value is None:
            return self.nothing
        if isinstance(value, Value):
            return "its defaults"
        if isinstance(value, Enum):
            return code(value.value)
        if isinstance(value, bool):
            return code(str(value).lower())
        return code(list(value)) if isinstance(value, tuple) else code(value)

    def _type(self, annotation: Any) -> str:  # noqa: ANN401 - any annotation of a model
        origin, parts = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._annotated(annotation, parts)
        if origin in UNION:
            return " or ".join(dict.fromkeys(self._type(part) for part in parts if part is not type(None)))
        if origin is Literal:
            return codes(parts)
        if origin is tuple:
            return f"list of {self._type(parts[0])}"
        if origin is dict:
            return f"mapping of {self._type(parts[0])} to {self._type(parts[1])}"
        return _plain_type(annotation)

    def _annotated(self, annotation: object, parts: tuple[Any, ...]) -> str:
        known = {**NAMED, **self.named}
        word = next((word for word, named in known.items() if named == annotation), None)
        if word is not None:
            return word
        base = self._type(parts[0])
        limits = [text for part in parts[1:] for text in _limits(part)]
        return f"{base} {' and '.join(limits)}" if limits else base


def _plain_type(kind: type) -> str:
    if issubclass(kind, Enum):
        return codes(item.value for item in kind)
    if issubclass(kind, Value):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return PLAIN[kind]


def _limits(part: object) -> Iterator[str]:
    for item in (part, *getattr(part, "metadata", ())):
        for name, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
            limit = getattr(item, name, None)
            if limit is not None:
                yield f"{sign} {limit:g}"
