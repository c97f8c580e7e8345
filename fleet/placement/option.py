"""What a search for hardware finds: plans that fit on places, what was rejected, and the nearest miss."""

from dataclasses import dataclass

from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.placement.decision import Rejection
from fleet.placement.estimate import Estimate
from fleet.placement.ground import ModelOption, Place
from fleet.placement.looking import Ground
from fleet.placement.pair import PairOption
from fleet.plan_judgement import Judged
from fleet.plan_wish import Reason


@dataclass(frozen=True, slots=True)
class Option:
    """A plan that fits on a place."""

    model: ModelOption
    place: Place
    judged: Judged
    nodes: int
    estimate: Estimate
    memory_share: float | None = None
    """Of a GPU that others use too: the replica is told to take no more."""

    def at(self, place: Place) -> "Option":
        """The same at a place that differs in its pool alone."""
        return Option(self.model, place, self.judged, self.nodes, self.estimate, self.memory_share)

    @property
    def plan(self) -> ParallelPlan:
        """The plan that fits."""
        return self.judged.plan

    @property
    def gpus(self) -> int:
        """Of one replica."""
        return self.plan.gpus

    @property
    def bought(self) -> str:
        """The instance and how it is bought."""
        return self.place.bought

    @property
    def words(self) -> str:
        """The plan on its instances."""
        return f"{self.nodes}x {self.place.instance.name} with {self.plan}"

    @property
    def replica_bytes(self) -> int | None:
        """What a replica takes of a shared GPU, without its context and graphs."""
        memory = self.judged.memory
        if isinstance(memory, Missing):
            return None
        cache = memory.wanted_bytes if self.memory_share is None else memory.kv_cache
        return memory.weights + memory.activation + memory.overhead + cache


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one engine version."""

    options: tuple[Option | PairOption, ...]
    rejections: tuple[Rejection, ...]
    considered: int
    nearest: Ground | None = None
    """Of the manifest's own model: the plan that misses by the fewest bytes."""


@dataclass(frozen=True, slots=True)
class Miss:
    """Why the preferred plan of a place is not taken."""

    reason: Reason
    ground: Ground
