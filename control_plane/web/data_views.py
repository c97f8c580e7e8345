"""Advisories and pins as the pages show them."""

from collections.abc import Sequence
from dataclasses import dataclass

from control_plane.services.advisories import AdvisoryFilter, severity_of
from control_plane.services.house import House
from control_plane.web.words import https_links
from fleet.advisory import Advisory
from fleet.pins import EnginePins, Floor, PathPin
from fleet.severity import Severity

PAGE = 50
_LINKS = 3
"""Links beside an advisory; the API has them all."""


@dataclass(frozen=True, slots=True)
class AdvisoryRow:
    """One advisory in a line."""

    id: str
    aliases: tuple[str, ...]
    severity: Severity | None
    packages: tuple[str, ...]
    paths: tuple[str, ...]
    """Confirmed code paths of any of its packages; empty = every path counts."""
    flags: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


def advisories(house: House, wanted: AdvisoryFilter, *, after: str) -> tuple[list[AdvisoryRow], str | None]:
    """A page of advisories above an id, and where the next one begins."""
    found = house.advisories.page(wanted, after=after, limit=PAGE + 1)
    return [_row(item) for item in found[:PAGE]], found[PAGE - 1].id if len(found) > PAGE else None


def _row(item: Advisory) -> AdvisoryRow:
    flags = ("malware",) * item.is_malware + ("withdrawn",) * item.is_withdrawn
    urls = [reference.url for record in item.records for reference in record.references]
    return AdvisoryRow(
        id=item.id,
        aliases=item.aliases,
        severity=severity_of(item),
        packages=tuple(sorted(item.packages)),
        paths=tuple(sorted({path for package in item.packages for path in item.paths(package)})),
        flags=flags,
        links=tuple(https_links(urls)[:_LINKS]),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """The limit of one engine on one code path."""

    floor: str | None
    """``None`` = closed."""
    reason: str
    decided_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One engine."""

    name: str
    recommended: str | None
    reason: str
    refusal: str | None
    """Why the engine is not offered at all."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Engines across, code paths down; ``None`` = the engine has no limit of this path."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def matrix(house: House) -> Matrix:
    """Floors and closed paths of every engine with versions, those with a version to take first."""
    names = sorted(house.engines.pinned_names, key=lambda name: house.engines.pins(name).recommended is None)
    pins = [house.engines.pins(name) for name in names]
    columns = tuple(
        Column(name, found.recommended, found.reason, house.engines.get(name).refusal)
        for name, found in zip(names, pins, strict=True)
    )
    paths = tuple(dict.fromkeys(item.path for found in pins for item in found.paths))
    return Matrix(columns, tuple((path, _cells(pins, path)) for path in paths))


def _cells(pins: Sequence[EnginePins], path: str) -> tuple[Cell | None, ...]:
    found = (next((item for item in engine.paths if item.path == path), None) for engine in pins)
    return tuple(_cell(item) if item else None for item in found)


def _cell(item: PathPin) -> Cell:
    if isinstance(item.limit, Floor):
        return Cell(item.limit.version, "", item.decided_by)
    return Cell(None, item.limit.reason, item.decided_by)
