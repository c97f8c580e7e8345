"""``/v1/advisories``, ``/v1/pins`` and ``/v1/engines``: what the facts say, read only."""

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Reader, Services
from control_plane.api.data_shapes import Advisory, Engine, EnginePins
from control_plane.api.lists import AdvisoryList, EngineList, EnginePinsList
from control_plane.api.paging import Page, Paging, listing
from control_plane.api.routing import reading, router
from control_plane.records import Document
from control_plane.services.advisories import AdvisoryFilter, severity_of
from control_plane.services.house import House
from fleet import advisory as kernel
from fleet.pins import Floor, PathPin
from fleet.severity import Severity

advisories = router("advisories")
engines = router("engines")
Package = Annotated[str | None, Query(max_length=200, description="Advisories that name this package.")]
Rating = Annotated[Severity | None, Query(description="Advisories rated so or higher.")]
Search = Annotated[str | None, Query(max_length=200, description="A part of an id, an alias or a package name.")]
AdvisoryId = Annotated[str, Path(min_length=1, max_length=200, description="An id or an alias.")]
EnginePath = Annotated[str, Path(min_length=1, max_length=63, description="An engine of /v1/engines.")]


@advisories.get("/advisories", response_model=AdvisoryList, responses=reading(400))
def list_advisories(
    house: Services, _actor: Reader, page: Paging, package: Package = None, severity: Rating = None, q: Search = None
) -> Response:
    """Merged advisories by id."""
    wanted = AdvisoryFilter(package=package or None, severity=severity, text=q or None)
    found, has_more = page.cut(house.advisories.page(wanted, after=page.after, limit=page.limit))
    token = page.token(found[-1].id) if has_more else None
    return answer(listing("Advisory", [_advisory(item) for item in found], token))


@advisories.get("/advisories/{advisory_id}", response_model=Advisory, responses=reading(404))
def get_advisory(house: Services, _actor: Reader, advisory_id: AdvisoryId) -> Response:
    """One advisory, by its id or any alias, with what each source says."""
    return answer(_advisory(house.advisories.get(advisory_id)))


@engines.get("/pins", response_model=EnginePinsList, responses=reading(400))
def list_pins(house: Services, _actor: Reader, page: Paging) -> Response:
    """Floors and closed paths of every engine."""
    names, token = _names(house.engines.pinned_names, page)
    return answer(listing("EnginePins", [_pins(house, name) for name in names], token))


@engines.get("/pins/{engine}", response_model=EnginePins, responses=reading(404))
def get_pins(house: Services, _actor: Reader, engine: EnginePath) -> Response:
    """Floors and closed paths of one engine, and the records that decided."""
    return answer(_pins(house, engine))


@engines.get("/engines", response_model=EngineList, responses=reading(400))
def list_engines(house: Services, _actor: Reader, page: Paging) -> Response:
    """Every engine of the catalogue, those that are refused too."""
    names, token = _names(house.engines.names, page)
    return answer(listing("Engine", [_engine(house, name) for name in names], token))


@engines.get("/engines/{engine}", response_model=Engine, responses=reading(404))
def get_engine(house: Services, _actor: Reader, engine: EnginePath) -> Response:
    """One engine with its published versions."""
    return answer(_engine(house, engine))


def _names(names: tuple[str, ...], page: Page) -> tuple[list[str], str | None]:
    left = [name for name in names if name > page.after]
    shown, has_more = page.cut(left)
    return list(shown), page.token(shown[-1]) if has_more else None


def _advisory(item: kernel.Advisory) -> Document:
    rating = severity_of(item)
    labelled = ((package, sorted(item.paths(package))) for package in sorted(item.packages))
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "Advisory",
        "metadata": {"name": item.id},
        "spec": {
            "aliases": list(item.aliases),
            "severity": rating.value if rating else None,
            "packages": sorted(item.packages),
            "paths": {package: paths for package, paths in labelled if paths},
            "isMalware": item.is_malware,
            "isWithdrawn": item.is_withdrawn,
            "incompleteFixOf": list(item.incomplete_fix_of),
            "records": [record.model_dump(mode="json") for record in item.records],
        },
    }


def _pins(house: House, name: str) -> Document:
    pins = house.engines.pins(name)
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "EnginePins",
        "metadata": {"name": name},
        "status": {
            "package": pins.package,
            "paths": [_path(item) for item in pins.paths],
            "recommended": pins.recommended,
            "reason": pins.reason,
            "factsDigest": house.facts.current().digest,
        },
    }


def _path(item: PathPin) -> Document:
    floor = item.limit.version if isinstance(item.limit, Floor) else None
    closed = None if isinstance(item.limit, Floor) else item.limit.reason
    return {"path": item.path, "floor": floor, "closed": closed, "decidedBy": list(item.decided_by)}


def _engine(house: House, name: str) -> Document:
    view = house.engines.get(name)
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "Engine",
        "metadata": {"name": view.name},
        "spec": {"hosted": view.is_hosted, "package": view.package},
        "status": {
            "offered": view.refusal is None,
            "refusal": view.refusal,
            "versions": list(view.versions),
            "recommended": None if view.is_hosted else house.engines.pins(name).recommended,
        },
    }
