"""Makes a small value that a JSON schema accepts."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from simulator.regex_text import text_for_regex

_DEEPEST = 12


class SchemaError(ValueError):
    """The schema has a type that JSON does not know, or never ends."""


def value_for_schema(schema: object, source: random.Random) -> object:
    """Return one value for the schema, chosen by the seeded source."""
    root = schema if isinstance(schema, Mapping) else {}
    return _value(schema, root, source, 0)


def _value(schema: object, root: Mapping[str, Any], source: random.Random, depth: int) -> object:
    if depth > _DEEPEST:
        raise SchemaError("the schema refers to itself without an end")
    if not isinstance(schema, Mapping):
        return {}
    if "const" in schema or "default" in schema:
        return schema.get("const", schema.get("default"))
    if schema.get("enum"):
        return source.choice(list(schema["enum"]))
    other = _other_schema(schema, root)
    if other is not None:
        return _value(other, root, source, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    make = _MAKERS.get(kind[0] if isinstance(kind, list) else kind)
    if make is None:
        raise SchemaError(f"Invalid type: {kind}")
    return make(schema, root, source, depth + 1)


def _other_schema(schema: Mapping[str, Any], root: Mapping[str, Any]) -> object:
    """Return the schema that stands for this one; `None` when it stands for itself."""
    if "$ref" in schema:
        return _referred(str(schema["$ref"]), root)
    return next((schema[key][0] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) and step else found
    return found


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], source: random.Random, depth: int) -> object:
    return {name: _value(part, root, source, depth) for name, part in schema.get("properties", {}).items()}


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], source: random.Random, depth: int) -> object:
    length = max(int(schema.get("minItems", 1)), 0)
    return [_value(schema.get("items", {"type": "string"}), root, source, depth) for _ in range(length)]


def _string(schema: Mapping[str, Any], root: Mapping[str, Any], source: random.Random, depth: int) -> object:
    if "pattern" in schema:
        return text_for_regex(str(schema["pattern"]), source)
    word = source.choice(("alpha", "bravo", "delta", "gamma"))
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 1_000))
    return (word * (least // len(word) + 1))[: max(least, min(most, len(word)))]


def _integer(schema: Mapping[str, Any], root: Mapping[str, Any], source: random.Random, depth: int) -> object:
    least = int(schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1))
    most = int(schema.get("maximum", schema.get("exclusiveMaximum", least + 10) - 1))
    return source.randint(least, max(least, most))


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any], random.Random, int], object]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _integer,
    "boolean": lambda schema, root, source, depth: source.choice((True, False)),
    "null": lambda schema, root, source, depth: None,
}
