"""Keeps the running engines equal to what was reviewed and stored, one look at a time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from control_plane import logs
from control_plane.ports import Clock, Cluster, ClusterError, Meter, Store
from control_plane.records import (
    Condition,
    ConditionType,
    EndpointRecord,
    Launch,
    Phase,
    Replica,
    StoredDeployment,
    Truth,
)
from control_plane.services.moments import iso
from control_plane.services.replacing import Backoff, Decision, Step, Wanted, decide, ready
from control_plane.services.snapshots import all_deployments
from fleet.canonical import digest
from fleet.engine import EngineCatalogue
from fleet.manifest import PinnedManifest

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class _Plan:
    """A stored deployment as the cluster sees it."""

    stored: StoredDeployment
    wanted: Wanted
    launch: Launch | None
    problem: str
    """Why it can't run here; empty when it can."""


@dataclass(frozen=True, slots=True)
class _State:
    """What is to be stored about a deployment."""

    phase: Phase
    endpoints: tuple[EndpointRecord, ...]
    ready: Condition


class Reconciler:
    """Looks at deployments and engines, decides, acts, and stores what came of it."""

    def __init__(
        self,
        *,
        store: Store,
        cluster: Cluster,
        catalogue: EngineCatalogue,
        clock: Clock,
        meter: Meter,
        drain_seconds: float,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._catalogue = catalogue
        self._clock = clock
        self._meter = meter
        self._drain_seconds = drain_seconds
        self._backoffs: dict[str, Backoff] = defaultdict(Backoff)
        self._plans: dict[tuple[str, int], _Plan] = {}
        self._seen_routes = -1

    def look(self) -> None:
        """One round."""
        if not self._cluster.runs_engines and self._store.revision.routes == self._seen_routes:
            return
        self._seen_routes = self._store.revision.routes
        with self._store.read() as unit:
            deployments = list(all_deployments(unit))
        self._plans = {(item.name, item.generation): self._plan(item) for item in deployments}
        replicas = self._replicas_by_deployment()
        now = self._clock.now().timestamp()
        states: dict[str, _State] = {}
        for plan in self._plans.values():
            decision = self._act(plan.stored.name, plan.wanted, replicas.get(plan.stored.name, ()), plan.launch, now)
            states[plan.stored.name] = self._state(plan, decision)
        for name in replicas.keys() - states.keys():
            self._act(name, Wanted(None, 0), replicas[name], None, now)
            self._backoffs.pop(name, None)
        self._store_changes(deployments, states)
        self._meter.phases(Counter(state.phase.value for state in states.values()))

    def _replicas_by_deployment(self) -> Mapping[str, Sequence[Replica]]:
        found: dict[str, list[Replica]] = defaultdict(list)
        for replica in self._cluster.observe():
            found[replica.deployment].append(replica)
        return found

    def _plan(self, stored: StoredDeployment) -> _Plan:
        known = self._plans.get((stored.name, stored.generation))
        if known is not None:
            return _Plan(stored, known.wanted, known.launch, known.problem)
        if not self._cluster.runs_engines:
            return _Plan(stored, Wanted(None, 0), None, "this control plane runs no engines (setting 'cluster')")
        manifest = PinnedManifest.model_validate(stored.document)
        engine = manifest.spec.engine
        if engine is None:
            return _Plan(stored, Wanted(None, 0), None, "a hosted engine runs elsewhere")
        problem = self._cluster.cannot_start(stored.engine)
        if problem is not None:
            # A revision that no engine has: nothing starts, and what ran before stays.
            return _Plan(stored, Wanted("", max(1, manifest.spec.scaling.min)), None, problem)
        launch = self._launch(stored, manifest, engine.version or "")
        return _Plan(stored, Wanted(launch.revision, manifest.spec.scaling.min), launch, "")

    def _launch(self, stored: StoredDeployment, manifest: PinnedManifest, version: str) -> Launch:
        line = self._catalogue.command_line(manifest, host=HOST, port=0)
        parts = [stored.identity, list(line.argv), dict(line.environment), dict(line.files)]
        return Launch(
            deployment=stored.name,
            identity=stored.identity,
            engine=stored.engine,
            version=version,
            revision=digest(parts),
            command=lambda port: self._catalogue.command_line(manifest, host=HOST, port=port),
        )

    def _act(
        self, name: str, wanted: Wanted, replicas: Sequence[Replica], launch: Launch | None, now: float
    ) -> Decision:
        decision = decide(wanted, replicas, self._backoffs[name], now=now, drain_seconds=self._drain_seconds)
        self._backoffs[name] = decision.backoff
        for replica in decision.died:
            logs.get().warning(logs.REPLICA_DIED, deployment=name, replica=replica.id, detail=replica.detail)
            self._meter.restart(deployment=name)
        steps = {Step.DRAIN: self._cluster.drain, Step.END: self._cluster.end, Step.FORGET: self._cluster.forget}
        for action in decision.actions:
            steps[action.step](action.replica.id)
        for _ in range(decision.start if launch is not None else 0):
            self._start(launch, now)
        return decision

    def _start(self, launch: Launch | None, now: float) -> None:
        if launch is None:
            return
        try:
            self._cluster.start(launch)
        except ClusterError as error:
            self._backoffs[launch.deployment] = self._backoffs[launch.deployment].after_failure(now, str(error))
            logs.get().error(logs.REPLICA_DIED, deployment=launch.deployment, detail=str(error))
        else:
            logs.get().info(logs.REPLICA_STARTED, deployment=launch.deployment, identity=launch.identity)

    def _state(self, plan: _Plan, decision: Decision) -> _State:
        now = iso(self._clock.now())
        before = _ready_of(plan.stored)
        condition = ready(decision, before=before, generation=plan.stored.generation, now=now)
        if plan.problem:
            condition = _not_here(plan, before, now)
        return _State(decision.phase, decision.endpoints, condition)

    def _store_changes(self, deployments: Iterable[StoredDeployment], states: Mapping[str, _State]) -> None:
        changed = [item for item in deployments if _differs(item, states[item.name])]
        if not changed:
            return
        with self._store.write() as unit:
            generations = unit.deployments.generations()
            # One that was stored anew since is left to the next round.
            current = [item for item in changed if generations.get(item.name) == item.generation]
            for item in current:
                state = states[item.name]
                if (item.phase, item.endpoints) != (state.phase, state.endpoints):
                    unit.deployments.set_state(item.name, state.phase, state.endpoints)
            unit.deployments.set_conditions((item.name, states[item.name].ready) for item in current)


def _ready_of(stored: StoredDeployment) -> Condition | None:
    return next((item for item in stored.conditions if item.type is ConditionType.READY), None)


def _not_here(plan: _Plan, before: Condition | None, now: str) -> Condition:
    is_same = before is not None and before.status is Truth.UNKNOWN
    return Condition(
        type=ConditionType.READY,
        status=Truth.UNKNOWN,
        reason="NotRunHere",
        message=plan.problem,
        last_transition=before.last_transition if before is not None and is_same else now,
        observed_generation=plan.stored.generation,
    )


def _differs(stored: StoredDeployment, state: _State) -> bool:
    return (stored.phase, stored.endpoints, _ready_of(stored)) != (state.phase, state.endpoints, state.ready)
