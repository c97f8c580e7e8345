"""Judges one plan: what forbids it, what it holds, and in which words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fleet.constraints import arithmetic, context_length
from fleet.hardware import BYTES_PER_GIB, GpuModel, SharingMode
from fleet.memory import Memory, Room, memory_in, rank_memory, room_of
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures
from fleet.plan_wish import PlanWish, Reason
from fleet.sharing import LayoutError, profile_of

Fits = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan with what was found out about it."""

    plan: ParallelPlan
    forbidden: tuple[Reason, ...]
    """Constraints and context, memory apart."""
    memory: Memory | Missing

    @property
    def fits(self) -> Fits:
        """No = something forbids it; unknown = a figure is missing."""
        if self.forbidden:
            return "no"
        if isinstance(self.memory, Missing):
            return "unknown"
        if not self.memory.fits:
            return "no"
        return "unknown" if self.memory.sequence_bytes is None else "yes"

    @property
    def shortage(self) -> float:
        """Bytes per GPU by which it misses; infinite where memory is not known."""
        if isinstance(self.memory, Missing):
            return float("inf")
        memory = self.memory
        missing = max(0, memory.wanted_bytes - memory.kv_cache)
        return memory.short + missing + max(0, memory.needed_free - memory.free)

    def reasons(self, figures: ModelFigures, gpu: GpuModel, wish: PlanWish) -> tuple[Reason, ...]:
        """All reasons in words; empty when it fits."""
        if isinstance(self.memory, Missing):
            return self.forbidden
        return (*self.forbidden, *memory_reasons(figures, self.plan, gpu, wish, self.memory))


def judge(figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> Judged:
    """Judge exactly this plan."""
    return Judged(plan, _forbidden(figures, plan, gpu, wish), rank_memory(figures, plan, gpu, wish))


def judge_possible(figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> Judged | None:
    """The same, or ``None`` where a look says no: something forbids it, or the cache alone exceeds the GPU."""
    if _forbidden(figures, plan, gpu, wish):
        return None
    room = room_of(figures, plan, gpu, wish)
    if isinstance(room, Room) and room.is_too_small:
        return None
    return Judged(plan, (), memory_in(room, figures, plan, wish))


def _forbidden(figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> tuple[Reason, ...]:
    sharing = SharingMode.MIG if wish.mig_profile else wish.sharing
    return (
        *arithmetic(figures, plan, gpu, wish.engine, wish.engine_version, sharing),
        *context_length(figures.model, wish.context_of(figures.model)),
        *_missing_slice(gpu, wish),
    )


def _missing_slice(gpu: GpuModel, wish: PlanWish) -> tuple[Reason, ...]:
    """Why the GPU can't be cut like this."""
    if wish.mig_profile is None:
        return _no_slices(gpu) if wish.sharing is SharingMode.MIG and not gpu.mig_profiles else ()
    try:
        profile_of(gpu, wish.mig_profile)
    except LayoutError as error:
        return (Reason("mig", str(error), {"gpu": gpu.name, "mig_profile": wish.mig_profile}),)
    return ()


def _no_slices(gpu: GpuModel) -> tuple[Reason, ...]:
    message = f"{gpu.name} has no MIG: it is shared by mps or time-slicing, or not at all"
    return (Reason("mig", message, {"gpu": gpu.name}),)


def memory_reasons(
    figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish, memory: Memory
) -> Iterator[Reason]:
    """Why memory does not suffice: the weights, the cache, or what must stay free."""
    where = f"{plan.gpus}x {gpu.name}" if wish.mig_profile is None else f"{gpu.name} {wish.mig_profile}"
    evidence = _evidence(memory)
    if memory.short > 0:
        message = (
            f"{figures.model.id} on {where} ({plan}): needs {_gib(memory.weights)} GiB of weights and "
            f"{_gib(memory.activation + memory.overhead)} GiB beside them per GPU; {_gib(memory.visible)} GiB visible, "
            f"utilisation {memory.settings.utilization:.2f}"
        )
        yield Reason("memory", message, evidence)
    elif not memory.holds_wish and memory.sequences is not None:
        message = (
            f"{figures.model.id} on {where} ({plan}): the KV cache of {_gib(memory.kv_cache)} GiB per GPU holds "
            f"{memory.kv_tokens} tokens, {memory.sequences:.1f} sequences of {memory.context_tokens}; "
            f"{memory.sequences_wanted * memory.data_ranks} in flight are wished for"
        )
        yield Reason("memory", message, evidence)
    elif memory.needed_free > memory.free:
        message = (
            f"{figures.model.id} on {where} ({plan}): dies in graph capture: {_gib(memory.free)} GiB stay free at "
            f"utilisation {memory.settings.utilization:.2f}, {_gib(memory.needed_free)} GiB are needed outside of it"
        )
        yield Reason("memory", message, evidence)


def _evidence(memory: Memory) -> dict[str, int | float | str]:
    return {
        "visible_bytes": memory.visible,
        "weights_bytes": memory.weights,
        "activation_bytes": memory.activation,
        "overhead_bytes": memory.overhead,
        "kv_cache_bytes": memory.kv_cache,
        "free_bytes": memory.free,
        "needed_free_bytes": memory.needed_free,
        "short_bytes": memory.short,
        "wanted_bytes": memory.wanted_bytes,
        "sequences_wanted": memory.sequences_wanted,
        "context_tokens": memory.context_tokens,
        "utilization": memory.settings.utilization,
    }


def _gib(size: int) -> str:
    return f"{size / BYTES_PER_GIB:.1f}"
