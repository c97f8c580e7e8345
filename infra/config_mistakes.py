"""The mistakes of a configuration that can't be read: one message for each, by key, in the stack's own words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fleet.hardware import instance_types
from fleet.nearest import nearest
from fleet.value import Value
from infra.config_places import NOTHING, Place, model_at, place_of, shown
from infra.config_words import flow, words_of
from infra.finding_words import REMEDIES
from infra.problem import Problem
from infra.stack_config import PoolConfig, Weights
from infra.stack_examples import STACK

KINDS: Mapping[str, type[Value]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(Weights)[0])
}
"""Kind of weights -> its section."""
_BLOCK = "Value error, a capacity block needs "
QUOTES = "'\""
Where = tuple[int | str, ...]


def mistakes_of(error: ValidationError, content: Mapping[str, Any]) -> list[Problem]:
    """One problem for each place that is wrong."""
    details = [item for item in error.errors(include_url=False) if not item["msg"].startswith(_BLOCK)]
    meant = _typos(details)
    found: dict[str, Problem] = {}
    told = [_problem(detail, details, meant, content) for detail in details]
    for problem in [*told, *_other_kind(details, content), *_blocks(content)]:
        if problem is not None:
            found.setdefault(problem.key, problem)
    return list(found.values())


def _problem(
    detail: ErrorDetails, details: Sequence[ErrorDetails], meant: Mapping[Where, str], content: object
) -> Problem | None:
    """``None`` = another detail tells the same mistake."""
    place, kind = place_of(detail["loc"], content), detail["type"]
    if _is_told(detail, details, meant, place):
        return None
    if kind == "extra_forbidden":
        return _unknown(place, meant.get(detail["loc"]), model_at(detail["loc"][:-1]))
    if kind.startswith("union_tag"):
        return _no_kind(place)
    if kind == "value_error":
        return _by_sentence(detail, place)
    return Problem(place.key, place.shown, *words_of(detail, place))


def _is_told(detail: ErrorDetails, details: Sequence[ErrorDetails], meant: Mapping[Where, str], place: Place) -> bool:
    """A mistyped key is no missing one, a list with a wrong item not too short, a key of the other kind not unknown."""
    kind = detail["type"]
    if kind == "missing":
        return any(where[:-1] == detail["loc"][:-1] and name == place.field for where, name in meant.items())
    if kind == "too_short":
        return any(_is_below(other["loc"], detail["loc"]) for other in details)
    return kind == "extra_forbidden" and _is_of_other_kind(place)


def _typos(details: Sequence[ErrorDetails]) -> dict[Where, str]:
    """Unknown key -> the missing key of its section that was meant."""
    missing = [detail["loc"] for detail in details if detail["type"] == "missing"]
    found = {}
    for detail in details:
        if detail["type"] == "extra_forbidden":
            beside = [str(where[-1]) for where in missing if where[:-1] == detail["loc"][:-1]]
            name = nearest(str(detail["loc"][-1]), beside)
            if name is not None:
                found[detail["loc"]] = name
    return found


def _unknown(place: Place, meant: str | None, model: type[Value] | None) -> Problem:
    """The key that was meant: a missing one first, then any of the section; else where such a key stands."""
    known = tuple(model.model_fields) if model else ()
    near = meant or nearest(place.field, known)
    remedy = f"did you mean '{near}'?" if near else ""
    if not remedy:
        section = _section_with(place.field)
        remedy = f"it stands under {section}" if section else f"leave it out; known here: {', '.join(known)}"
    return Problem(place.key, place.shown, f"unknown field '{shown(place.field).strip(QUOTES)}'", remedy)


def _section_with(name: str) -> str | None:
    """The only section that has such a key."""
    sections = [section for section in STACK if name in _fields_below(section)]
    return sections[0] if len(sections) == 1 else None


def _fields_below(section: str) -> tuple[str, ...]:
    model = PoolConfig if section == "pools" else model_at((section,))
    return tuple(model.model_fields) if model else ()


def _is_below(inner: Where, outer: Where) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _no_kind(place: Place) -> Problem:
    stated = place.value.get("kind", NOTHING) if isinstance(place.value, Mapping) else NOTHING
    found = Place(f"{place.key}.kind", stated, place.model, "kind")
    message = "kind is missing" if stated is NOTHING else f"{found.shown} is no kind of weights"
    return Problem(found.key, found.shown, message, f"take {' or '.join(KINDS)}")


def _is_of_other_kind(place: Place) -> bool:
    return place.model in KINDS.values() and any(place.field in model.model_fields for model in KINDS.values())


def _other_kind(details: Sequence[ErrorDetails], content: object) -> Iterator[Problem]:
    """Keys of the other kind of weights: one by its own key, several by the kind."""
    unknown = [place_of(item["loc"], content) for item in details if item["type"] == "extra_forbidden"]
    places = [place for place in unknown if _is_of_other_kind(place)]
    if not places:
        return
    here = next(kind for kind, model in KINDS.items() if model is places[0].model)
    there = next(kind for kind in KINDS if kind != here)
    names = ", ".join(place.field for place in places)
    if len(places) == 1:
        message = f"{names} belongs to kind {there}, and the kind is {here}"
        yield Problem(places[0].key, places[0].shown, message, f"leave it out, or set kind to {there}")
    else:
        message = f"{names} belong to kind {there}, and the kind is {here}"
        yield Problem("weights.kind", here, message, f"set kind to {there}, or leave them out")


def _by_sentence(detail: ErrorDetails, place: Place) -> Problem:
    """The sentence of a whole section names the key that is wrong before all others."""
    message, remedy = words_of(detail, place)
    if not isinstance(place.value, Mapping):
        return Problem(place.key, place.shown, message, remedy)
    name = next((word for word in re.findall(r"\w+", message) if word in PoolConfig.model_fields), None)
    if name is None:
        return Problem(place.key, place.shown, message, remedy)
    value = place.value.get(name, NOTHING)
    found = "" if isinstance(value, list | Mapping) else shown(value)
    return Problem(f"{place.key}.{name}", found, message.removeprefix(f"{name}: "), remedy)


def _blocks(content: Mapping[str, Any]) -> Iterator[Problem]:
    """What Capacity Blocks lack, all of it at once; an instance that is not sold so lacks another purchase first."""
    pools = content.get("pools")
    for index, pool in enumerate(pools if isinstance(pools, list) else ()):
        if not isinstance(pool, Mapping) or pool.get("purchase") != "capacity-block":
            continue
        shape = instance_types().get(str(pool.get("instance_type")))
        needs = _BLOCK_NEEDS if shape is None or "capacity-block" in shape.purchase_classes else {}
        key = place_of(("pools", index), content).key
        for name, (message, remedy) in needs.items():
            if pool.get(name) is None:
                yield Problem(f"{key}.{name}", "", message, remedy)


_BLOCK_NEEDS: Mapping[str, tuple[str, str]] = {
    "ends_on": (
        "a capacity block needs ends_on",
        f"write the last day that it covers wholly, such as ends_on: {flow('2026-12-31')}",
    ),
    "max_nodes": ("a capacity block needs max_nodes", "write the number of reserved instances"),
    "reservation_id": (
        "a Capacity Block without a reservation: nodes would not start",
        REMEDIES["capacity-block-target"],
    ),
}
