"""One wrong value of a stack's configuration in words of this project: what is wrong, what would be right."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Network
from typing import get_args

from pydantic import StringConstraints
from pydantic_core import ErrorDetails

from fleet import spec
from fleet.hardware import instance_types
from fleet.nearest import did_you_mean
from infra import stack_config as config
from infra.config_places import NOTHING, OF_A_MAPPING, Place
from infra.finding_words import CAPACITY_CHOICE, EFA_CHOICE, METADATA_CHOICE
from infra.stack_examples import EXAMPLES

CORRECT = "correct it in Pulumi.<stack>.yaml; docs/reference/stack-config.md has every key"
VPC_LENGTHS = range(16, 23)
"""Lengths of a range that can be cut into the subnets of all zones."""
Words = tuple[str, str]
"""What is wrong, and what would be right."""


def pattern_of(annotation: object) -> str:
    """The pattern of an annotated text."""
    found = [part.pattern for part in get_args(annotation) if isinstance(part, StringConstraints)]
    return str(found[0])


PATTERNS: Mapping[str, Words] = {
    pattern_of(config.Account): ("no account", 'write its 12 digits in quotes, such as "012345678901"'),
    pattern_of(config.Region): ("no region", "write one such as eu-central-1"),
    pattern_of(config.Zone): ("no zone", "write one such as eu-central-1a"),
    pattern_of(config.Email): ("no mail address", "write one such as platform@example.org"),
    pattern_of(config.Minor): ("no version of Kubernetes", 'write one in quotes, such as "1.36"'),
    pattern_of(config.Arn): ("no ARN", "write one such as arn:aws:iam::111122223333:role/platform-admins"),
    pattern_of(config.Reservation): ("no id of a reservation", "write one such as cr-0123456789abcdef0"),
    pattern_of(config.Snapshot): ("no id of a snapshot", "write one such as snap-0123456789abcdef0"),
    pattern_of(config.FolderPath): ("no folder", "begin with '/' and take letters, digits, '.', '_', '/' and '-'"),
    spec.NAME_PATTERN: (
        "no name",
        "take 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends",
    ),
    spec.IMAGE_PATTERN: (
        "no image by digest",
        f"write its address with the digest, such as registry/name@sha256:{'0123456789abcdef' * 4}",
    ),
    pattern_of(spec.Line): ("no single line of text", "write it in quotes, on one line, without control characters"),
}
"""Pattern -> what a text that does not match is, and what would be right."""
CHOICES: Mapping[tuple[type, str], str] = {
    (config.LustreWeights, "capacity_gib"): f"take {CAPACITY_CHOICE}; with efa a multiple of {EFA_CHOICE}",
    (config.LustreWeights, "metadata_iops"): f"take {METADATA_CHOICE}",
}
"""Section and key -> what would be right, where the type alone does not say it."""
_EXPECTED: Mapping[str, Words] = {
    "string": ("text", "write text"),
    "int": ("a whole number", "write a whole number"),
    "float": ("a number", "write a number"),
    "finite": ("a number", "write a number"),
    "bool": ("true or false", "write true or false"),
    "dict": ("a mapping", "write its keys below it"),
    "model": ("a mapping", "write its keys below it"),
    "list": ("a list", "write a list, one item a line, each after '- '"),
    "tuple": ("a list", "write a list, one item a line, each after '- '"),
    "date": ("a day", 'write it in quotes, such as "2026-12-31"'),
}
"""How pydantic's kinds of errors begin -> what was expected, and what to write."""


def words_of(detail: ErrorDetails, place: Place) -> Words:
    """What is wrong with a value, and what would be right."""
    kind = detail["type"]
    if detail["loc"][-1:] == (OF_A_MAPPING,):
        place = replace(place, value=place.field)
    choice = None if place.model is None else CHOICES.get((place.model, place.field))
    message, remedy = _SPECIAL.get(kind, _by_kind)(detail, place)
    return message, choice or remedy


def _missing(_detail: ErrorDetails, place: Place) -> Words:
    example = _example(place)
    remedy = f"write it, such as {place.field}: {example}" if example else f"write {place.field}"
    return f"{place.field} is missing", remedy


def _pattern(detail: ErrorDetails, place: Place) -> Words:
    what, right = PATTERNS.get(str(detail.get("ctx", {}).get("pattern")), ("not in its form", CORRECT))
    return f"{place.shown} is {what}", right


def _not_one_of(detail: ErrorDetails, place: Place) -> Words:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    known = re.findall(r"'([^']*)'", expected) or re.findall(r"\w+", expected.replace(" or ", " "))
    hint = did_you_mean(place.value, known) if isinstance(place.value, str) else ""
    return f"{place.shown or 'nothing'} is not known here", f"take {_either(known)}{hint}"


def _too_small(detail: ErrorDetails, place: Place) -> Words:
    context = detail.get("ctx", {})
    least = f"{context['ge']} or more" if "ge" in context else f"more than {context.get('gt'):g}"
    return f"{place.shown} is too small", f"give {least}"


def _too_few(detail: ErrorDetails, place: Place) -> Words:
    context = detail.get("ctx", {})
    found, least, example = int(context["actual_length"]), context["min_length"], _example(place)
    message = "nothing stands in the list" if not found else f"{found} {'is' if found == 1 else 'are'} too few"
    return message, f"give {least} or more{f', such as {example}' if example else ''}"


def _too_long(detail: ErrorDetails, _place: Place) -> Words:
    return "the text is too long", f"take {detail.get('ctx', {}).get('max_length')} letters at most"


def _network(_detail: ErrorDetails, place: Place) -> Words:
    network = IPv4Network("10.0.0.0/16")
    with suppress(ValueError):
        meant = IPv4Network(str(place.value), strict=False)
        network = meant if meant.prefixlen in VPC_LENGTHS or place.field != "cidr" else network
    return f"{place.shown} is no IPv4 network", f"write its first address and length, such as {network}"


def _own_sentence(detail: ErrorDetails, place: Place) -> Words:
    """A validator of this project's says what would be right behind a semicolon."""
    if place.field == "instance_type":
        return _instance_type(place)
    message, _, remedy = detail["msg"].removeprefix("Value error, ").partition("; ")
    return message, remedy or CORRECT


def _instance_type(place: Place) -> Words:
    """Only a name of the same family, or nearly so, can be what was meant."""
    found, known = str(place.value), instance_types()
    family = found.partition(".")[0].casefold()
    families = {name.partition(".")[0] for name in known}
    near = [name for name in known if name.partition(".")[0] == family] if family in families else []
    if not near:
        near = [name for name in known if len(family) > 1 and name.startswith(family[:2])]
    hint = did_you_mean(found, near).removeprefix("; ")
    remedy = hint or (f"of {family} there are {', '.join(near)}" if family in families else "")
    return f"{place.shown} is no GPU instance that is known here", remedy or "take one such as g6.xlarge or p5.48xlarge"


def _no_unicode(_detail: ErrorDetails, _place: Place) -> Words:
    return "a text in it is no Unicode", CORRECT


def _by_kind(detail: ErrorDetails, place: Place) -> Words:
    expected, remedy = _EXPECTED.get(detail["type"].partition("_")[0], ("", CORRECT))
    if not expected:
        return detail["msg"], CORRECT
    if (place.model, place.field) in CHOICES:
        return f"{place.shown} is no {place.field}", remedy
    example = _example(place)
    if detail["type"] == "string_type" and isinstance(place.value, bool | int | float):
        remedy = _quoted(place)
    elif example and remedy.startswith("write its keys"):
        remedy = f"write its keys below it, such as {example}"
    return f"{place.shown or 'nothing'} is not {expected}", remedy


def _quoted(place: Place) -> str:
    """Quotes are the remedy where the text in them is of the right form; YAML has eaten zeros of a fraction."""
    info = None if place.model is None else place.model.model_fields.get(place.field)
    pattern = next(_patterns(info.rebuild_annotation()), "") if info else ""
    if place.key.endswith("]") or isinstance(place.value, float) or not re.search(pattern, place.shown):
        return PATTERNS.get(pattern, ("", "write text, in quotes"))[1]
    return f'put it in quotes: "{place.shown}"'


def _patterns(annotation: object) -> Iterator[str]:
    for part in get_args(annotation):
        for found in (part, *getattr(part, "metadata", ())):
            if isinstance(getattr(found, "pattern", None), str):
                yield found.pattern
        yield from _patterns(part)


def _example(place: Place) -> str:
    """What may stand there, as YAML in one line; empty = nothing is said."""
    value = NOTHING if place.model is None else EXAMPLES.get(place.model, {}).get(place.field, NOTHING)
    return "" if value is NOTHING or value is None else flow(value)


def flow(value: object) -> str:
    """A value as YAML in one line; digits of a text keep their quotes."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and re.fullmatch(r"[\d.:-]+", value) is None:
        return value
    return json.dumps(value)


def _either(known: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(known[:-1]), known[-1]))) if known else "another value"


_SPECIAL: Mapping[str, Callable[[ErrorDetails, Place], Words]] = {
    "missing": _missing,
    "string_pattern_mismatch": _pattern,
    "literal_error": _not_one_of,
    "enum": _not_one_of,
    "greater_than_equal": _too_small,
    "greater_than": _too_small,
    "too_short": _too_few,
    "string_too_long": _too_long,
    "ip_v4_network": _network,
    "value_error": _own_sentence,
    "json_invalid": _no_unicode,
}
