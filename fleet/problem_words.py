"""What is wrong with a field in words of this project: what stood there, and what would be right."""

import re
from collections.abc import Mapping

from pydantic_core import ErrorDetails

from fleet.nearest import did_you_mean
from fleet.prices import PERIOD_PATTERN
from fleet.spec import IMAGE_PATTERN, NAME_PATTERN
from fleet.value import Value

PATTERNS: Mapping[str, str] = {
    NAME_PATTERN: "a name is 1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends",
    PERIOD_PATTERN: "write a day, month, quarter or year, such as 2026-05-31, 2026-05, 2026-Q2 or 2026",
    IMAGE_PATTERN: "an image is pinned by its digest, such as registry/name@sha256: and 64 hex digits",
}
MISSING: Mapping[str, str] = {
    "as_of": "the period for which the source states the price, such as 2026-05",
    "source": "where the figure comes from",
    "instance_type": "such as p5.48xlarge",
    "max_model_len": "the longest request in tokens, input and output together",
}
"""What to give for a field whose name does not say it."""
ELSEWHERE: Mapping[str, str] = dict.fromkeys(
    ("args", "engine_args", "engineArgs", "extra_args", "command"),
    "; flags of the engine stand under spec.engine.flags, such as {--enable-prefix-caching: true}",
)
"""Fields that people know from elsewhere."""
_NOT_IN_LINE = "this line is not indented like the ones above it; fields of one mapping stand in one column"
YAML_WORDS: Mapping[str, str] = {
    "mapping values are not allowed here": "this line is indented further than the one above it, or a text with ': ' "
    "in it has no quotes",
    "did not find expected key": _NOT_IN_LINE,
    "expected <block end>": _NOT_IN_LINE,
    "but found another document": "a second document begins here; a file holds one, so split it at '---'",
    "found character '\\t'": "a tab stands where only blanks may indent",
}
"""What the YAML parser says -> what a person has to look for."""
_EXPECTED = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
}


def words_of(detail: ErrorDetails, model: type[Value]) -> str:
    """One of pydantic's errors as a sentence."""
    kind, location = detail["type"], detail["loc"]
    name = str(location[-1]) if location else ""
    if kind == "extra_forbidden":
        known = fields_at(model, tuple(location[:-1]))
        return f"unknown field '{name}'{ELSEWHERE.get(name) or did_you_mean(name, known)}"
    if kind == "missing":
        hint = MISSING.get(name)
        return f"'{name}' is missing{f'; give {hint}' if hint else ''}"
    context = detail.get("ctx", {})
    if kind in {"enum", "literal_error"}:
        return _not_one_of(detail["input"], str(context.get("expected", "")))
    if kind == "string_pattern_mismatch" and context.get("pattern") in PATTERNS:
        return f"{detail['input']!r} is not allowed; {PATTERNS[str(context['pattern'])]}"
    return _EXPECTED.get(kind, detail["msg"].removeprefix("Value error, ")) + _found(detail)


def _not_one_of(found: object, expected: str) -> str:
    known = re.findall(r"'([^']*)'", expected)
    hint = did_you_mean(found, known) if isinstance(found, str) else ""
    shown = repr(found) if isinstance(found, str | int | float) else f"a {type(found).__name__}"
    return f"{shown} is not known here; it is one of {', '.join(known) or expected}{hint}"


def _found(detail: ErrorDetails) -> str:
    """What stood there, and the quotes that a number or a word like ``yes`` needs to stay text in YAML."""
    found = detail["input"]
    if not isinstance(found, str | int | float | bool):
        return ""
    quotes = "; put it in quotes" if detail["type"] == "string_type" else ""
    return f" (found {found!r}{quotes})"


def fields_at(model: type[Value], location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The fields that a place in a document can have; empty where none is known."""
    current: type[Value] | None = model
    for part in location:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if current else None
        current = _model_in(field.annotation) if field else None
    return tuple(current.model_fields) if current else ()


def _model_in(annotation: object) -> type[Value] | None:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _model_in(part)
        if found is not None:
            return found
    return None
