"""Public model names that settings may name: a mistyped one would do nothing, and nobody would see it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from control_plane.errors import Invalid
from control_plane.ports import Objects, UnitOfWork
from control_plane.records import StoredObject
from fleet.manifest import Problem
from fleet.nearest import did_you_mean

_PAGE = 500


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def every(page: Callable[[str], Sequence[Named]]) -> list[Named]:
    """All items of a list that is read page by page; the page gets the name that it begins after."""
    found: list[Named] = []
    while items := page(found[-1].name if found else ""):
        found += items
    return found


def model_of(item: StoredObject) -> str:
    """The public model that a price or a route is about: the stated one, else its name."""
    return str(item.spec.get("model", item.name))


def known_models(unit: UnitOfWork) -> frozenset[str]:
    """Models that are deployed, or have a route or a price already."""
    deployments = every(lambda after: unit.deployments.page(after=after, limit=_PAGE, with_documents=False))
    stated = [*all_objects(unit.routes), *all_objects(unit.prices)]
    return frozenset({item.route.model for item in deployments} | {model_of(item) for item in stated})


def all_objects(rows: Objects) -> list[StoredObject]:
    """Every object of a kind, by name."""
    return every(lambda after: rows.page(after=after, limit=_PAGE))


def check_models(unit: UnitOfWork, named: Iterable[tuple[str, str]]) -> None:
    """Each model, given with the place where it is named, is known; raises `Invalid`."""
    wanted = list(named)
    if not wanted:
        return
    known = known_models(unit)
    problems = [Problem(place, _words(model, known)) for place, model in wanted if model not in known]
    if problems:
        raise Invalid("; ".join(f"{item.pointer}: {item.message}" for item in problems), problems)


def _words(model: str, known: frozenset[str]) -> str:
    hint = did_you_mean(model, sorted(known)) or "; a model is known once it is deployed, or has a route or a price"
    return f"no model is named {model!r}{hint}"
