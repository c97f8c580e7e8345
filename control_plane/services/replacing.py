"""What to do about the engines of one deployment: a pure decision from what is wanted and what runs.

Replace only: the new engines start beside the old ones, take over when all of them are healthy, and the old ones
finish their requests before they end. Engines that fail leave the old ones in place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from control_plane.records import Condition, ConditionType, EndpointRecord, Phase, Replica, ReplicaState, Truth

SETTLE_SECONDS = 1.0
"""A draining engine waits at least this long, so that every gateway has read the new snapshot."""
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
FAILED_AFTER = 3
"""Engines that die this often without getting healthy make a deployment Failed, not Starting."""


class Step(StrEnum):
    """One thing to do to one replica."""

    DRAIN = "drain"
    END = "end"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Action:
    """A step and the replica that it is for."""

    step: Step
    replica: Replica


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a deployment asks of the cluster; ``revision`` is ``None`` for one that must not run (any more)."""

    revision: str | None
    replicas: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often engines of a deployment died in a row, and when the next may start."""

    failures: int = 0
    not_before: float = 0.0
    reason: str = ""
    """What the last one that died said."""

    def after_failure(self, now: float, reason: str = "") -> "Backoff":
        """The pause doubles with each failure."""
        pause = min(FIRST_PAUSE_SECONDS * 2**self.failures, LONGEST_PAUSE_SECONDS)
        return Backoff(self.failures + 1, now + pause, reason)


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything to do for one deployment, and what it is now."""

    actions: tuple[Action, ...]
    start: int
    """How many replicas to start now."""
    backoff: Backoff
    died: tuple[Replica, ...]
    phase: Phase
    endpoints: tuple[EndpointRecord, ...]
    detail: str


def decide(
    wanted: Wanted, replicas: Sequence[Replica], backoff: Backoff, *, now: float, drain_seconds: float
) -> Decision:
    """One look at one deployment."""
    dead = [item for item in replicas if item.state is ReplicaState.DEAD]
    died = tuple(item for item in dead if item.revision == wanted.revision and not item.was_asked_to_end)
    for item in died:
        backoff = backoff.after_failure(now, item.detail)
    own = [item for item in replicas if item.revision == wanted.revision and _is_active(item)]
    others = [item for item in replicas if item.revision != wanted.revision and _is_active(item)]
    healthy = [item for item in own if item.state is ReplicaState.HEALTHY]
    if len(healthy) >= wanted.replicas and not died:
        backoff = Backoff() if healthy and _are_steady(healthy, now) else backoff
    missing = wanted.replicas - len(own)
    drained = _surplus(own, wanted.replicas)
    if len(healthy) >= wanted.replicas:
        drained += others
    actions = [Action(Step.FORGET, item) for item in dead]
    actions += [Action(Step.DRAIN, item) for item in drained]
    actions += [Action(Step.END, item) for item in replicas if _may_end(item, now=now, drain_seconds=drain_seconds)]
    gone = {item.id for item in drained}
    serving = [item for item in (*own, *others) if item.state is ReplicaState.HEALTHY]
    draining = [item for item in replicas if item.state is ReplicaState.DRAINING]
    return Decision(
        actions=tuple(actions),
        start=missing if missing > 0 and now >= backoff.not_before else 0,
        backoff=backoff,
        died=died,
        phase=_phase(wanted, len(healthy), backoff),
        endpoints=_endpoints(serving, draining, gone),
        detail=_detail(wanted, own, len(healthy), backoff),
    )


def ready(decision: Decision, *, before: Condition | None, generation: int, now: str) -> Condition:
    """The condition Ready that follows; the moment moves only with the status."""
    status = Truth.TRUE if decision.phase in (Phase.RUNNING,) else Truth.FALSE
    is_same = before is not None and before.status is status
    return Condition(
        type=ConditionType.READY,
        status=status,
        reason=decision.phase.value,
        message=decision.detail,
        last_transition=before.last_transition if before is not None and is_same else now,
        observed_generation=generation,
    )


def _is_active(replica: Replica) -> bool:
    return replica.state in (ReplicaState.STARTING, ReplicaState.HEALTHY)


def _are_steady(healthy: Iterable[Replica], now: float) -> bool:
    return all(now - item.state_since >= LONGEST_PAUSE_SECONDS for item in healthy)


def _surplus(own: Sequence[Replica], replicas: int) -> list[Replica]:
    """Those beyond the wanted number: the ones that are not healthy first, then the youngest."""
    ordered = sorted(own, key=lambda item: (item.state is not ReplicaState.HEALTHY, item.state_since, item.id))
    return ordered[replicas:]


def _may_end(replica: Replica, *, now: float, drain_seconds: float) -> bool:
    if replica.state is ReplicaState.ENDING:
        return True  # asked again, so that the cluster can use force when its time is over
    if replica.state is not ReplicaState.DRAINING:
        return False
    waited = now - replica.state_since
    return waited >= drain_seconds or (replica.running_requests == 0 and waited >= SETTLE_SECONDS)


def _endpoints(serving: Sequence[Replica], draining: Sequence[Replica], gone: set[str]) -> tuple[EndpointRecord, ...]:
    records = [EndpointRecord(item.address, item.identity, item.id in gone) for item in serving]
    records += [EndpointRecord(item.address, item.identity, True) for item in draining]
    return tuple(sorted(records, key=lambda record: record.address))


def _phase(wanted: Wanted, healthy: int, backoff: Backoff) -> Phase:
    if wanted.replicas > 0 and healthy >= wanted.replicas:
        return Phase.RUNNING
    if healthy > 0:
        return Phase.DEGRADED
    if wanted.replicas == 0:
        return Phase.PENDING
    return Phase.FAILED if backoff.failures >= FAILED_AFTER else Phase.STARTING


def _detail(wanted: Wanted, own: Sequence[Replica], healthy: int, backoff: Backoff) -> str:
    if wanted.replicas == 0:
        return "scaled to zero"
    words = f"{healthy} of {wanted.replicas} engines are healthy"
    if healthy >= wanted.replicas:
        return words
    if backoff.failures:
        words += f"; {backoff.failures} died in a row"
    reasons = [backoff.reason, *(item.detail for item in own)]
    reason = next((text for text in reasons if text), "")
    return f"{words}: {reason}" if reason else words
