"""What decides the number of replicas: KEDA's triggers, and who owns the figure.

Rules: KEDA 2.21 (its documents and its Prometheus scaler), the controller behind HorizontalPodAutoscalers, and reports
of fleets that never scaled, or never stopped.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.promql import Shape, UnreadableQuery, shape_of
from fleet.cloud.trigger_metrics import METRIC_KNOWN, metric_findings
from fleet.engine import MetricsDialect

GATEWAY_METRIC = "enginehouse_gateway_requests_waiting"
"""Requests that wait in the gateway: the only signal of a model without replicas."""
PROMETHEUS = "prometheus"
VALUE, AVERAGE_VALUE = "Value", "AverageValue"
STATIC = "static"
"""What KEDA's fallback does when nothing is said: so many replicas, whatever runs."""
KEEPING = ("currentReplicasIfHigher", "currentReplicas", "scalingModifiers")
"""What a fallback may do so that no engine is taken away."""
MOST = 100
"""Replicas where a scaler says no largest number."""
HPA_PREFIX = "keda-hpa-"
LONGEST_NAME = 63

METRIC_TYPE = CloudRule(
    "keda-metric-type",
    Grade.HIGH,
    "An average is compared as Value and a sum as AverageValue",
    "take metricType Value with avg(), or AverageValue with sum()",
    "kedacore/keda prometheus_scaler.go, HPA replica_calculator.go; keda#5781, llm-d-autoscaling#1517",
)
ONE_SERIES = CloudRule(
    "keda-one-series",
    Grade.HIGH,
    "The query of a trigger gives one series",
    "aggregate over the pods without 'by': sum() for queues, avg() for shares",
    "kedacore/keda prometheus_scaler.go: several elements are an error",
)
NULL_VALUES = CloudRule(
    "keda-null-values",
    Grade.HIGH,
    "An empty answer is an error, not zero",
    'set ignoreNullValues: "false"; else a lost Prometheus scales down',
    "keda#3065, llm-d-autoscaling#360, llm-d#1981",
)
METRIC_NAME = CloudRule(
    "keda-metric-name",
    Grade.LOW,
    "A trigger carries no metric name of its own",
    "leave metricName out: KEDA names the metric itself and reads it no more",
    "keda#4220, keda#4899",
)
FALLBACK = CloudRule(
    "keda-fallback",
    Grade.HIGH,
    "A scaler that asks Prometheus says what happens when it can't",
    "set fallback with at least one replica and behavior currentReplicasIfHigher",
    "KEDA documents, scaledobject-spec, fallback",
)
WAKE_UP = CloudRule(
    "keda-wake-up",
    Grade.HIGH,
    "Replicas that may go to zero are woken by the gateway's queue",
    f"add a trigger on sum({GATEWAY_METRIC}), or keep one replica",
    "llm-d#2492: no pods, no metrics",
)
NAME_LENGTH = CloudRule(
    "keda-name-length",
    Grade.MEDIUM,
    f"The autoscaler that KEDA makes has a name of at most {LONGEST_NAME} characters",
    f"shorten the ScaledObject's name: KEDA puts '{HPA_PREFIX}' before it and makes a label of both",
    "keda#6998, keda#7762",
)
RANGE = CloudRule(
    "keda-range",
    Grade.HIGH,
    "Idle replicas are fewer than the smallest number, and that is at most the largest",
    "order idleReplicaCount < minReplicaCount <= maxReplicaCount",
    "KEDA documents, scaledobject-spec",
)
ONE_OWNER = CloudRule(
    "replicas-one-owner",
    Grade.HIGH,
    "One thing owns the number of replicas",
    "leave spec.replicas out or ignore its changes where a scaler has the workload; keep one scaler",
    "pulumi/pulumi#13321, pulumi-kubernetes#2491, pulumi-kubernetes#3312",
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger of a ScaledObject; what it leaves out has KEDA's default."""

    name: str
    type: str = PROMETHEUS
    metric_type: str = AVERAGE_VALUE
    query: str = ""
    ignores_null: bool = True
    metric_name: str | None = None


@dataclass(frozen=True, slots=True)
class Scaler:
    """One ScaledObject; what it leaves out has KEDA's default."""

    name: str
    triggers: tuple[Trigger, ...]
    smallest: int = 0
    largest: int = MOST
    idle: int | None = None
    fallback_replicas: int | None = None
    """``None`` = no fallback."""
    fallback_behaviour: str = STATIC
    hpa_name: str | None = None
    """Of the autoscaler that KEDA makes; ``None`` = KEDA's own name for it."""
    dialects: tuple[MetricsDialect, ...] = ()
    """What the engines behind it may call their metrics; empty = not known."""
    unreadable: tuple[str, ...] = ()
    """Counts that are no whole numbers, with what stands there."""
    has_triggers_alone: bool = False
    """A patch, or a scaler of jobs: nothing but its triggers is judged."""

    @property
    def may_sleep(self) -> bool:
        """Whether it can leave no replica."""
        return self.smallest == 0 or self.idle == 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Something with replicas, as a program declares it."""

    id: str
    """``namespace/Kind/name``."""
    replicas: object
    """``None`` = left out; what is no number is told as it stands."""
    ignores_replicas: bool = False
    """Whether the program leaves what others make of them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A scaler that owns the replicas of a workload."""

    scaler: str
    """``namespace/Kind/name``."""
    workload: str


def scaler_findings(scaler: Scaler) -> Iterator[Finding]:
    """What is wrong with a ScaledObject."""
    asking = [item for item in scaler.triggers if item.type == PROMETHEUS]
    for trigger in asking:
        yield from _trigger_findings(scaler, trigger)
    if not scaler.has_triggers_alone:
        yield from _fallback(scaler, asking)
        yield from _wake_up(scaler, asking)
        yield from _name_length(scaler)
    yield from _range(scaler)


def _fallback(scaler: Scaler, asking: Sequence[Trigger]) -> Iterator[Finding]:
    if not asking:
        return
    where = f"{scaler.name} has {len(asking)} Prometheus triggers and"
    if not scaler.fallback_replicas:
        what = "no fallback" if scaler.fallback_replicas is None else "a fallback to 0 replicas"
        yield Finding(FALLBACK, f"{where} {what}")
    elif scaler.fallback_behaviour not in KEEPING and scaler.fallback_replicas < scaler.largest:
        what = f"the fallback '{scaler.fallback_behaviour}' to {scaler.fallback_replicas} of {scaler.largest} replicas"
        yield Finding(FALLBACK, f"{where} {what}, which takes engines away", f"set behavior {KEEPING[0]}")


def _wake_up(scaler: Scaler, asking: Sequence[Trigger]) -> Iterator[Finding]:
    if not scaler.may_sleep or any(_wakes(item) for item in asking):
        return
    named = [item.name for item in asking if GATEWAY_METRIC in item.query]
    rest = f"; {', '.join(named)} names it and gives no figure of it while no engine runs" if named else ""
    yield Finding(WAKE_UP, f"{scaler.name} may go to 0 replicas, and no trigger asks for {GATEWAY_METRIC}{rest}")


def _wakes(trigger: Trigger) -> bool:
    """Whether a trigger tells of the gateway's queue while there is no engine."""
    try:
        return shape_of(trigger.query, frozenset({GATEWAY_METRIC})).given == "value"
    except UnreadableQuery:
        return False


def _name_length(scaler: Scaler) -> Iterator[Finding]:
    made = scaler.hpa_name or f"{HPA_PREFIX}{scaler.name}"
    if len(made) > LONGEST_NAME:
        message = f"the autoscaler of {scaler.name} is called {made}, which has {len(made)} characters"
        yield Finding(NAME_LENGTH, message)


def _range(scaler: Scaler) -> Iterator[Finding]:
    if scaler.unreadable:
        yield Finding(RANGE, f"{scaler.name} has {', '.join(scaler.unreadable)}, which is no whole number")
        return
    is_idle_wrong = scaler.idle is not None and not 0 <= scaler.idle < scaler.smallest
    if scaler.has_triggers_alone:
        return
    if not 0 <= scaler.smallest <= scaler.largest or scaler.largest < 1 or is_idle_wrong:
        counts = f"idle {scaler.idle}, smallest {scaler.smallest}, largest {scaler.largest}"
        yield Finding(RANGE, f"{scaler.name} has {counts}")


def owner_findings(workloads: Iterable[Workload], claims: Iterable[Claim]) -> Iterator[Finding]:
    """Workloads whose replicas several write, or nobody can read."""
    owners: dict[str, list[str]] = {}
    for claim in claims:
        owners.setdefault(claim.workload, []).append(claim.scaler)
    for target, scalers in owners.items():
        if len(scalers) > 1:
            yield Finding(ONE_OWNER, f"{target} is scaled by {' and '.join(sorted(scalers))}")
    for item in workloads:
        if item.id in owners and item.replicas is not None and not item.ignores_replicas:
            message = f"{item.id} says {item.replicas} replicas, and {owners[item.id][0]} scales it"
            yield Finding(ONE_OWNER, message, evidence={"replicas": str(item.replicas)})
        elif item.replicas is not None and type(item.replicas) is not int:
            message = f"the replicas of {item.id} can't be read: {item.replicas!r} is no whole number"
            yield Finding(ONE_OWNER, message, "write a whole number, or leave spec.replicas out")


def _trigger_findings(scaler: Scaler, trigger: Trigger) -> Iterator[Finding]:
    where = f"trigger {trigger.name} of {scaler.name}"
    if trigger.ignores_null:
        yield Finding(NULL_VALUES, f"{where} takes an empty answer for 0")
    if trigger.metric_name is not None:
        yield Finding(METRIC_NAME, f"{where} names its metric '{trigger.metric_name}'")
    try:
        shape = shape_of(trigger.query)
    except UnreadableQuery as error:
        yield Finding(ONE_SERIES, f"the query of {where} can't be read: {error}")
        return
    if shape.always:
        message = f"{where} answers even where every metric is missing: {trigger.query}"
        yield Finding(NULL_VALUES, message, "leave the part out that needs no metric; a lost metric is then an error")
    if not shape.is_single:
        yield Finding(ONE_SERIES, f"{where} gives a series for each pod: {trigger.query}")
    yield from _metric_type(where, trigger, shape)
    yield from metric_findings(where, shape, scaler.dialects)


def _metric_type(where: str, trigger: Trigger, shape: Shape) -> Iterator[Finding]:
    if trigger.metric_type not in (VALUE, AVERAGE_VALUE):
        message = f"{where} has metricType '{trigger.metric_type}', which a Prometheus trigger can't have"
        yield Finding(METRIC_TYPE, message)
    if shape.kind == "average" and trigger.metric_type == AVERAGE_VALUE:
        message = f"{where} compares an average as AverageValue: it wants the same replicas whatever runs"
        yield Finding(METRIC_TYPE, message, "take metricType Value")
    if shape.kind == "sum" and trigger.metric_type == VALUE:
        message = f"{where} compares a sum as Value: it multiplies the replicas that run"
        yield Finding(METRIC_TYPE, message, "take metricType AverageValue")


RULES: tuple[CloudRule, ...] = (
    METRIC_TYPE,
    ONE_SERIES,
    NULL_VALUES,
    METRIC_KNOWN,
    METRIC_NAME,
    FALLBACK,
    WAKE_UP,
    NAME_LENGTH,
    RANGE,
    ONE_OWNER,
)
