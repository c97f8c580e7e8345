"""The words that AWS takes for a property, from the models of its API; the SDK has nearly all of them as plain text."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape, StringShape

from tests.pulumi.doubles.value_check import Failure

TABLE = Path(__file__).with_name("enums.psv")
_DEEPEST = 7


@cache
def rows() -> dict[str, list[tuple[str, str]]]:
    """Type -> property and where its words stand."""
    found: dict[str, list[tuple[str, str]]] = {}
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 4 or not all(cells):
                raise ValueError(f"{TABLE.name}:{number}: four cells, all filled: type | property | words | source")
            found.setdefault(cells[0], []).append((cells[1], cells[2]))
    return found


@cache
def allowed_words(token: str) -> dict[str, tuple[str, ...]]:
    """Path of a property (lower case) -> the words that it may have."""
    found: dict[str, tuple[str, ...]] = {}
    for path, words in rows().get(token, ()):
        if path == "*":
            found.update(_enums_below(_shape(words), "", ()))
        else:
            found[path.lower()] = tuple(word for part in words.split() for word in _words_of(part))
    return found


def enum_failures(token: str, inputs: Any) -> Iterator[Failure]:
    """Each text that is none of the words that AWS takes there."""
    allowed = allowed_words(token)
    for path, bare, text in _texts(inputs, "", ""):
        words = allowed.get(bare.lower())
        if words is not None and text not in words:
            yield path, f"is {text!r}; allowed: {', '.join(words[:40])}"


@cache
def _model(service: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


def _shape(name: str) -> Shape:
    service, _, shape = name.partition(".")
    return _model(service).shape_for(shape)


def _words_of(part: str) -> tuple[str, ...]:
    if "." not in part:
        return (part,)
    shape = _shape(part)
    if not isinstance(shape, StringShape) or not shape.enum:
        raise ValueError(f"{TABLE.name}: {part} is no enum of the API's model")
    return tuple(shape.enum)


def _enums_below(shape: Shape, path: str, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if shape.name in above or len(above) > _DEEPEST:
        return
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from _enums_below(member, f"{path}.{name}" if path else name, (*above, shape.name))
    elif shape.type_name == "list":
        yield from _enums_below(shape.member, path, (*above, shape.name))
    elif isinstance(shape, StringShape) and shape.enum:
        yield path.lower(), tuple(shape.enum)


def _texts(value: Any, path: str, bare: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, *(f"{before}.{name}" if before else name for before in (path, bare)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]", bare)
    elif isinstance(value, str):
        yield path, bare, value
