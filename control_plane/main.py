"""The composition root: the only place that knows the adapters."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fastapi import FastAPI

from control_plane.adapters.clock import SystemClock
from control_plane.adapters.folders import FolderFeed
from control_plane.adapters.key_sets import HttpsKeySets
from control_plane.adapters.no_cluster import NoCluster
from control_plane.adapters.processes import Processes
from control_plane.adapters.prometheus import PrometheusMeter
from control_plane.adapters.sql import SqlStore
from control_plane.api.application import application
from control_plane.errors import SettingsError
from control_plane.loops.review_everything import ReviewWatch
from control_plane.loops.running import Loop, LoopRunner
from control_plane.loops.sync_advisories import AdvisorySync
from control_plane.ports import AdvisoryFeed, Clock, Cluster, KeySets, Store
from control_plane.services.advisories import AdvisoryService, EngineService
from control_plane.services.audit import AuditLog
from control_plane.services.closings import ClosingService
from control_plane.services.deployments import DeploymentService
from control_plane.services.facts import FactsBook, HouseRules
from control_plane.services.house import House
from control_plane.services.inspection import Inspector
from control_plane.services.issuer_keys import IssuerKeys
from control_plane.services.keys import KeyService
from control_plane.services.kinds import object_services
from control_plane.services.placements import PlacementService
from control_plane.services.proposals import Proposals
from control_plane.services.readiness import Readiness
from control_plane.services.reconciliation import Reconciler
from control_plane.services.snapshots import SnapshotService
from control_plane.services.tokens import TokenService
from control_plane.services.usage import UsageService
from control_plane.settings import Settings
from control_plane.storage import open_store
from control_plane.web import application as web
from engines import catalogue as engine_catalogue
from fleet.engine import EngineCatalogue
from fleet.facts import AdvisoryData
from fleet.prices import with_own
from sources import environment as environment_files
from sources import policy_file, snapshot
from sources.errors import SourceError

REVIEW_SECONDS = 0.1
"""How often it is asked whether the facts changed: a comparison in memory, unless they did."""
PROPOSE_SECONDS = 0.25
"""The pause between two rounds of proposals: requests and reviews come first."""
FETCH_SECONDS = 1.0
"""How often it is asked which key sets are due."""


@dataclass(frozen=True)
class Parts:
    """What tests put in place of the real parts; ``None`` = the real one."""

    clock: Clock | None = None
    cluster: Cluster | None = None
    feed: AdvisoryFeed | None = None
    catalogue: EngineCatalogue | None = None
    key_sets: KeySets | None = None


@dataclass
class Assembly:
    """One control plane, wired but not running."""

    app: FastAPI
    house: House
    meter: PrometheusMeter
    store: SqlStore
    sync: AdvisorySync
    watch: ReviewWatch
    loops: LoopRunner
    stopping: "Stopping" = field(repr=False)


@dataclass
class Stopping:
    """Whether the server is about to end."""

    is_stopping: bool = False


def build_app(settings: Settings, parts: Parts | None = None) -> FastAPI:
    """The application for a server; its loops run as long as it does."""
    return assemble(settings, parts).app


def assemble(settings: Settings, parts: Parts | None = None) -> Assembly:
    """Wire everything; raises `SettingsError`, `StorageError`."""
    given = parts or Parts()
    clock = given.clock or SystemClock()
    catalogue = given.catalogue or engine_catalogue.load()
    rules = _house_rules(settings)
    folders = settings.advisory_folders
    feed = given.feed or FolderFeed(folders, use_bundled=settings.advisory_bundled, clock=clock)
    cluster = given.cluster or _cluster(settings, clock)
    store = open_store(settings)
    meter = PrometheusMeter()
    first = snapshot.bundled() if settings.advisory_bundled and given.feed is None else AdvisoryData()
    facts = FactsBook(rules=rules, data=first, catalogue=catalogue, clock=clock, store=store)
    stopping = Stopping()
    key_sets = given.key_sets or HttpsKeySets(settings.jwks_ca_file)
    house = _house(_Ground(settings, facts, store, clock, cluster, meter, stopping, key_sets))
    sync = AdvisorySync(feed=feed, inspector=house.inspector, readiness=house.readiness, meter=meter, clock=clock)
    watch = ReviewWatch(inspector=house.inspector, readiness=house.readiness)
    loops = LoopRunner(_loops(settings, house, sync, watch))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        loops.first_round("sync-advisories")  # the first data before the first request
        house.readiness.refresh()
        loops.start()
        yield
        stopping.is_stopping = True
        loops.stop()
        cluster.close()
        store.close()

    app = application(house, lifespan)
    web.install(app, house, clock)
    return Assembly(app, house, meter, store, sync, watch, loops, stopping)


def _loops(settings: Settings, house: House, sync: AdvisorySync, watch: ReviewWatch) -> tuple[Loop, ...]:
    return (
        Loop("sync-advisories", sync.look, settings.watch_seconds),
        Loop("review-everything", watch.look, REVIEW_SECONDS),
        Loop("propose", house.proposals.work, PROPOSE_SECONDS),
        Loop("reconcile", house.reconciler.look, settings.reconcile_seconds),
        Loop("fetch-keys", house.issuer_keys.look, FETCH_SECONDS),
    )


@dataclass(frozen=True)
class _Ground:
    """What every service stands on."""

    settings: Settings
    facts: FactsBook
    store: Store
    clock: Clock
    cluster: Cluster
    meter: PrometheusMeter
    stopping: Stopping
    key_sets: KeySets


def _house(ground: _Ground) -> House:
    facts, store, clock, meter = ground.facts, ground.store, ground.clock, ground.meter
    proposals = Proposals(store=store, catalogue=facts.catalogue)
    return House(
        facts=facts,
        deployments=DeploymentService(store=store, facts=facts, clock=clock),
        **object_services(store, clock),
        closings=ClosingService(store),
        keys=KeyService(store=store, clock=clock),
        issuer_keys=IssuerKeys(
            store=store,
            source=ground.key_sets,
            clock=clock,
            meter=meter,
            every_seconds=ground.settings.jwks_seconds,
            retry_seconds=ground.settings.jwks_retry_seconds,
        ),
        tokens=TokenService(store=store, clock=clock),
        audit=AuditLog(store),
        advisories=AdvisoryService(facts),
        engines=EngineService(facts),
        placements=PlacementService(facts),
        snapshots=SnapshotService(store),
        usage=UsageService(store=store, clock=clock, window_days=ground.settings.usage_window_days),
        readiness=Readiness(facts=facts, clock=clock, database_problem=store.problem),
        inspector=Inspector(store=store, facts=facts, clock=clock, meter=meter, proposals=proposals),
        proposals=proposals,
        reconciler=_reconciler(ground),
        meter=meter,
        is_stopping=lambda: ground.stopping.is_stopping,
    )


def _reconciler(ground: _Ground) -> Reconciler:
    return Reconciler(
        store=ground.store,
        cluster=ground.cluster,
        catalogue=ground.facts.catalogue,
        clock=ground.clock,
        meter=ground.meter,
        drain_seconds=ground.settings.drain_seconds,
    )


def _house_rules(settings: Settings) -> HouseRules:
    try:
        book = policy_file.read(settings.policy_file)
        policy = policy_file.policy_for(book, settings.environment)
        folder = settings.environment_dir
        written = environment_files.read(folder) if folder else environment_files.Environment()
    except SourceError as error:
        raise SettingsError(str(error)) from error
    return HouseRules(
        settings.environment,
        policy,
        written.images,
        written.waivers,
        written.triage,
        written.pools,
        written.model_configs,
        with_own(written.prices),
    )


def _cluster(settings: Settings, clock: Clock) -> Cluster:
    if settings.cluster == "none" or settings.process_dir is None:
        return NoCluster()
    try:
        return Processes(
            folder=settings.process_dir.resolve(),
            launch=settings.launch,
            clock=clock,
            stop_seconds=settings.stop_seconds,
        )
    except OSError as error:
        raise SettingsError(
            f"process_dir {settings.process_dir} can't be used: {error.strerror} ({error.filename}). "
            "Give a folder that this user may write, on a disk with space"
        ) from error
