"""Advisories, pins and engines as the API shows them: read from the facts, never stored beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

from control_plane.errors import NotFound
from control_plane.services.facts import FactsBook
from fleet.advisory import Advisory, normalised_package
from fleet.nearest import did_you_mean
from fleet.pins import EnginePins, engine_pins
from fleet.severity import Severity, highest
from fleet.spec import EngineName, HostedName


@dataclass(frozen=True, slots=True)
class AdvisoryFilter:
    """Which advisories are wanted; ``None`` = any."""

    package: str | None = None
    severity: Severity | None = None
    """This rating or a higher one."""
    text: str | None = None
    """A part of an id, an alias or a package name."""


def severity_of(advisory: Advisory, package: str | None = None) -> Severity | None:
    """The highest rating for a package, or for all."""
    packages = [package] if package is not None else sorted(advisory.packages)
    return highest(advisory.severity(name) for name in packages)


class AdvisoryService:
    """Looks into the current facts."""

    def __init__(self, facts: FactsBook) -> None:
        self._facts = facts

    def get(self, name: str) -> Advisory:
        """The advisory with an id or alias; raises `NotFound`."""
        advisories = self._facts.data.advisories
        wanted = name.casefold()
        for advisory in advisories:
            if any(known.casefold() == wanted for known in advisory.all_ids):
                return advisory
        ids = [known for advisory in advisories for known in advisory.all_ids]
        raise NotFound("advisory", name, did_you_mean(name.upper(), ids))

    def page(self, wanted: AdvisoryFilter, *, after: str, limit: int) -> Sequence[Advisory]:
        """Matching advisories with ids above ``after``, ascending by their text."""
        package = normalised_package(wanted.package) if wanted.package else None
        pool = self._facts.data.advisories_for(package) if package else self._facts.data.advisories
        found = sorted((item for item in pool if item.id > after), key=lambda item: item.id)
        matching = (item for item in found if _matches(item, wanted, package))
        return [item for item, _ in zip(matching, range(limit), strict=False)]


def _matches(advisory: Advisory, wanted: AdvisoryFilter, package: str | None) -> bool:
    if wanted.severity is not None:
        rating = severity_of(advisory, package)
        if rating is None or rating.rank < wanted.severity.rank:
            return False
    if wanted.text is None:
        return True
    text = wanted.text.casefold()
    return any(text in name.casefold() for name in (*advisory.all_ids, *advisory.packages))


@dataclass(frozen=True, slots=True)
class EngineView:
    """What is known of one engine."""

    name: str
    is_hosted: bool
    package: str | None
    """``None`` for a hosted engine: it has no package of ours."""
    refusal: str | None
    versions: tuple[str, ...]
    """Published ones, ascending."""


class EngineService:
    """The engines of the catalogue with the versions and pins of the facts."""

    def __init__(self, facts: FactsBook) -> None:
        self._facts = facts
        self._pins: dict[str, tuple[str, EnginePins]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every engine, hosted ones too, ascending."""
        catalogue = self._facts.catalogue
        return tuple(sorted((*map(str, catalogue.names), *map(str, catalogue.hosted_names))))

    @property
    def pinned_names(self) -> tuple[str, ...]:
        """The engines that have versions to pin, ascending."""
        return tuple(sorted(map(str, self._facts.catalogue.names)))

    def get(self, name: str) -> EngineView:
        """One engine; raises `NotFound`."""
        if name not in self.names:
            raise NotFound("engine", name, did_you_mean(name, self.names))
        catalogue = self._facts.catalogue
        if name not in self.pinned_names:
            return EngineView(str(HostedName(name)), True, None, None, ())
        engine = EngineName(name)
        package = catalogue.package(engine)
        published = self._facts.data.published_versions(package)
        versions = tuple(map(str, published.ascending)) if published else ()
        return EngineView(name, False, package, catalogue.refusal(engine), versions)

    def pins(self, name: str) -> EnginePins:
        """Floors and closed paths of an engine; raises `NotFound`. Computed once for each set of data."""
        if name not in self.pinned_names:
            raise NotFound("engine with versions to pin", name, did_you_mean(name, self.pinned_names))
        data = self._facts.data
        known = self._pins.get(name)
        if known is None or known[0] != data.digest:
            pins = engine_pins(data, self._facts.catalogue.package(EngineName(name)), self._facts.policy)
            known = (data.digest, pins)
            self._pins[name] = known
        return known[1]
