"""The facts that everything is judged against: advisory data, policy, images, and exceptions of files and the API."""

import threading
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from control_plane.ports import Clock, Store, UnitOfWork
from control_plane.records import StoredObject
from fleet.engine import EngineCatalogue
from fleet.facts import AdvisoryData, Facts
from fleet.images import ImageRecord
from fleet.node_pools import NodePool
from fleet.policy import Policy
from fleet.prices import PriceTable
from fleet.waiver import Triage, Waiver

_PAGE = 500


@dataclass(frozen=True, slots=True)
class HouseRules:
    """What an environment's files say."""

    environment: str
    policy: Policy
    images: tuple[ImageRecord, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    triage: tuple[Triage, ...] = ()
    pools: tuple[NodePool, ...] = ()
    model_configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    prices: PriceTable | None = None


@dataclass(frozen=True, slots=True)
class _Built:
    exceptions: int
    today: date
    facts: Facts


class FactsBook:
    """The current facts; built again when data, exceptions or the day change."""

    def __init__(
        self, *, rules: HouseRules, data: AdvisoryData, catalogue: EngineCatalogue, clock: Clock, store: Store
    ) -> None:
        self.catalogue = catalogue
        self._rules = rules
        self._data = data
        self._clock = clock
        self._store = store
        self._lock = threading.Lock()
        self._built: _Built | None = None

    @property
    def policy(self) -> Policy:
        """The policy of this environment."""
        return self._rules.policy

    @property
    def data(self) -> AdvisoryData:
        """The advisory data that counts."""
        return self._data

    def load(self, data: AdvisoryData) -> None:
        """Judge by other advisory data from now on."""
        with self._lock:
            self._data = data
            self._built = None

    def current(self) -> Facts:
        """The facts of this moment; the same object as long as nothing changed."""
        today = self._clock.now().date()
        with self._lock:
            exceptions = self._store.revision.exceptions
            built = self._built
            if built is None or built.exceptions != exceptions or built.today != today:
                built = _Built(exceptions, today, self._build(today))
                self._built = built
            return built.facts

    def _build(self, today: date) -> Facts:
        with self._store.read() as unit:
            waivers, triage = _stored_exceptions(unit)
        rules = self._rules
        return Facts(
            environment=rules.environment,
            today=today,
            data=self._data,
            policy=rules.policy,
            images=rules.images,
            waivers=(*rules.waivers, *waivers),
            triage=(*rules.triage, *triage),
            pools=rules.pools,
            prices=rules.prices,
            model_configs=rules.model_configs,
            catalogue_digest=self.catalogue.digest,
        )


def _stored_exceptions(unit: UnitOfWork) -> tuple[list[Waiver], list[Triage]]:
    waivers = [Waiver.model_validate({"name": item.name, **item.spec}) for item in _all(unit, "waivers")]
    triage = [Triage.model_validate({"name": item.name, **item.spec}) for item in _all(unit, "triage")]
    return waivers, triage


def _all(unit: UnitOfWork, table: str) -> list[StoredObject]:
    rows = unit.waivers if table == "waivers" else unit.triage
    found: list[StoredObject] = []
    while page := rows.page(after=found[-1].name if found else "", limit=_PAGE):
        found += page
    return found
