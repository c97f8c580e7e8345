"""What placement decides: candidates, the one that was taken, and the reason of every one that was not."""

from dataclasses import dataclass, field

from fleet.engine import Preference
from fleet.latency_interval import Interval
from fleet.manifest import PinnedManifest
from fleet.parallel_plan import ParallelPlan
from fleet.placement.estimate import Estimate
from fleet.placement.ground import Origin
from fleet.placement.pair import PairEstimate
from fleet.plan_wish import Reason
from fleet.spec import EngineName
from fleet.versions import is_final, parse_version
from fleet.violation import Violation


@dataclass(frozen=True, slots=True)
class Score:
    """One part of a candidate's score."""

    name: str
    weight: float
    value: float
    """0 to 1."""
    reason: str


@dataclass(frozen=True, slots=True)
class EngineBuild:
    """What has to be built before an engine can serve a model."""

    reason: str
    seconds: Interval
    job: str
    """The name of the job that builds it, on GPUs of the candidate's own kind, as many as it serves on."""
    most_gpus: int
    """That one built engine can span."""
    argv: tuple[str, ...] = ()
    """The job's command, in a folder that holds ``checkpoint`` and gets ``engines``; known of what is chosen."""
    image: str | None = None
    """What it runs in: the engine's own image, where that is known."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a manifest."""

    engine: EngineName
    version: str
    instance_type: str | None
    """``None`` while the manifest leaves the hardware open and nothing is known about its model.

    Of separate prefill and decode, here and below, that of both sides in one text."""
    quantization: str | None
    preference: Preference
    residuals: int
    """Advisory violations that stay: fewer is better between equal scores."""
    model_id: str = ""
    plan: ParallelPlan | None = None
    """``None`` also where prefill and decode each have their own, see the estimate."""
    nodes: int | None = None
    sharing: str = "exclusive"
    purchase: str = "on-demand"
    pool: str | None = None
    replica_bytes: int | None = None
    """What a replica takes of a shared GPU: weights, activations, overhead and the cache that it needs."""
    estimate: Estimate | PairEstimate | None = None
    """Latency, throughput, replicas and cost; ``None`` where the model is not known."""
    build: EngineBuild | None = None
    origin: Origin = Origin.ASKED
    """Whether it is the model as it was asked for."""
    scores: tuple[Score, ...] = ()
    total: float = field(init=False, repr=False, compare=False)
    """The weighted sum of its scores; the preference alone where nothing else is known."""

    def __post_init__(self) -> None:
        weights, weighted = 0.0, 0.0
        for score in self.scores:
            weights += score.weight
            weighted += score.weight * score.value
        object.__setattr__(self, "total", weighted / weights if weights else self.preference.score)

    @property
    def pair(self) -> PairEstimate | None:
        """Both sides, where prefill and decode are separate."""
        return self.estimate if isinstance(self.estimate, PairEstimate) else None

    @property
    def split(self) -> str | None:
        """The plan, or those of both sides; ``None`` where the model is not known."""
        if self.plan is not None:
            return str(self.plan)
        return None if self.pair is None else self.pair.split

    @property
    def gpus(self) -> int:
        """Of one replica, or of one of each side; 0 where the model is not known."""
        if self.plan is not None:
            return self.plan.gpus
        return 0 if self.pair is None else sum(side.plan.gpus for _, side in self.pair.sides)

    @property
    def is_prerelease(self) -> bool:
        """Whether nothing final was acceptable: taken only when no engine offers a final version."""
        version = parse_version(self.version)
        return version is None or not is_final(version)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that was not taken: the rule, or the better candidate, that decided."""

    engine: str
    version: str | None
    """``None`` when the engine as a whole was rejected."""
    rule: str
    reason: str
    instance_type: str | None = None
    """``None`` when the version was rejected on any hardware."""
    plan: str | None = None
    model_id: str | None = None
    """Set for an alternative model of the manifest."""
    evidence: dict[str, int | float | str] = field(default_factory=dict)
    pool: str | None = None
    quantization: str | None = None
    """``None`` = as the checkpoint is stored."""

    @classmethod
    def of(cls, reason: Reason, *, engine: str, version: str, instance_type: str, plan: str | None) -> "Rejection":
        """A rejection by one of the planner's reasons."""
        return cls(engine, version, reason.rule, reason.message, instance_type, plan, evidence=dict(reason.evidence))


@dataclass(frozen=True, slots=True)
class Choice:
    """What placement decided. ``pinned`` is ``None`` when nothing was acceptable or a part is still missing."""

    chosen: Candidate | None
    rejections: tuple[Rejection, ...]
    pinned: PinnedManifest | None
    violations: tuple[Violation, ...]
    """What keeps the choice from being pinned, and what stays to be known about it."""
    canary: "Choice | None" = None
    considered: int = 0
    """Candidates that were looked at."""
    ranked: tuple[Candidate, ...] = ()
    """Every candidate that rules and planner leave, the best first."""
    would_fit: tuple[str, ...] = ()
    """Changes with which the nearest miss would fit, where nothing does."""
    notes: tuple[str, ...] = ()
    """What the choice stands on, and what was not known."""
