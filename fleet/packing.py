"""Packing small deployments onto shared GPUs: bins are GPUs, sizes are memory, and isolation is never traded for room.

First-fit decreasing gives a packing, an exact search over few replicas the best one. What a GPU can hold together is
said by `fleet.gpu_share`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from fleet.gpu_share import GpuShare, PackedGpu, Unit
from fleet.hardware import BYTES_PER_GIB
from fleet.plan_wish import EvidenceValue, Reason
from fleet.sharing import way_facts

EXACT_REPLICAS = 12
"""Up to so many replicas the exact search is tried."""
EXACT_STEPS = 20_000
"""Steps after which it stops with the best packing so far."""


@dataclass(frozen=True, slots=True)
class PackingItem:
    """A deployment whose replica needs one GPU or a part of it."""

    name: str
    memory_bytes: int
    """What the engine takes of the GPU (weights, KV cache, activations), without its context and graphs."""
    replicas: int = 1
    needs_hardware_isolation: bool = False
    """Its tenants never share a GPU but by slices that hardware keeps apart."""

    def __post_init__(self) -> None:
        if self.memory_bytes < 0 or self.replicas < 1:
            text = f"{self.memory_bytes} bytes and {self.replicas} replicas; memory is 0 or more, replicas 1 or more"
            raise ValueError(f"{self.name}: {text}")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A deployment that no GPU of this kind can hold."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Packing:
    """Which GPU holds what."""

    gpu: str
    gpus: tuple[PackedGpu, ...]
    rejected: tuple[Rejection, ...]
    lower_bound_gpus: int
    """No packing takes fewer: memory together over one GPU's, rounded up."""
    is_optimal: bool
    """Whether it is proven that no packing takes fewer."""

    @property
    def replicas(self) -> int:
        """Replicas that were placed: as many GPUs they would take with one each."""
        return sum(len(gpu.replicas) for gpu in self.gpus)

    @property
    def saved_gpus(self) -> int:
        """GPUs saved against one for each replica."""
        return self.replicas - len(self.gpus)

    def to_document(self) -> dict[str, object]:
        """Plain JSON, stable: sizes in bytes, deployments by name."""
        return {
            "gpu": self.gpu,
            "gpus_used": len(self.gpus),
            "gpus_with_one_each": self.replicas,
            "saved_gpus": self.saved_gpus,
            "lower_bound_gpus": self.lower_bound_gpus,
            "is_optimal": self.is_optimal,
            "gpus": [_gpu_document(gpu) for gpu in self.gpus],
            "rejected": [
                {"deployment": item.name, "rule": item.reason.rule, "message": item.reason.message}
                | {"evidence": dict(item.reason.evidence)}
                for item in self.rejected
            ],
        }


def pack(items: Iterable[PackingItem], share: GpuShare, *, steps: int = EXACT_STEPS) -> Packing:
    """The packing with the fewest GPUs that was found in so many steps; the order of the items doesn't matter.

    Raises:
        ValueError: two items of one name.
    """
    ordered = sorted(items, key=lambda item: item.name)
    for item, following in pairwise(ordered):
        if item.name == following.name:
            raise ValueError(f"two deployments are called '{item.name}'; names are ids")
    rejected = tuple(Rejection(item.name, reason) for item in ordered if (reason := refusal(item, share)) is not None)
    refused = {item.name for item in rejected}
    units = sorted((unit for item in ordered if item.name not in refused for unit in _units(item, share)), key=_hardest)
    bound = _lower_bound(units, share)
    bins, proven = _fewest(units, share, bound, steps)
    gpus = (share.content_of(tuple(content)) for content in bins)
    return Packing(
        gpu=share.model.name,
        gpus=tuple(gpu for gpu in gpus if gpu is not None),
        rejected=rejected,
        lower_bound_gpus=bound,
        is_optimal=proven,
    )


def refusal(item: PackingItem, share: GpuShare) -> Reason | None:
    """Why not even a GPU of its own would hold a replica, or ``None``."""
    need = item.memory_bytes + share.context_bytes
    model, capacity = share.model, share.capacity_bytes
    if share.content_of((Unit(need, item.needs_hardware_isolation, item.name, 0),)) is not None:
        return None
    evidence: dict[str, EvidenceValue] = {
        "gpu": model.name,
        "need_bytes": need,
        "context_bytes": share.context_bytes,
    }
    needs = f"{item.name}: a replica needs {_gib(need)} with context and graphs"
    if not capacity:
        return Reason("memory-unknown", f"{needs}; what {model.name} holds is not known", evidence)
    evidence["capacity_bytes"] = capacity
    if need >= capacity:
        return Reason("memory", f"{needs}, one {model.name} holds {_gib(capacity)}", evidence)
    ways = ", ".join(way.value for way in share.ways)
    evidence["sharing"] = ways
    if item.needs_hardware_isolation and not any(way_facts()[way].isolation.is_hardware for way in share.ways):
        text = f"{item.name} needs hardware isolation, which {ways} does not give; use MIG or a GPU of its own"
        return Reason("isolation", text, evidence)
    memory = evidence["slice_bytes"] = share.largest_slice_bytes
    return Reason("memory", f"{needs}, the largest slice that {model.name} gives here holds {_gib(memory)}", evidence)


def _units(item: PackingItem, share: GpuShare) -> Iterator[Unit]:
    need = item.memory_bytes + share.context_bytes
    return (Unit(need, item.needs_hardware_isolation, item.name, replica) for replica in range(item.replicas))


def _hardest(unit: Unit) -> tuple[int, bool, str, int]:
    return (-unit.need_bytes, not unit.needs_hardware_isolation, unit.name, unit.replica)


def _lower_bound(units: list[Unit], share: GpuShare) -> int:
    total = sum(unit.need_bytes for unit in units)
    return max(-(-total // share.capacity_bytes) if share.capacity_bytes else 0, 1 if units else 0)


def _fewest(units: list[Unit], share: GpuShare, bound: int, steps: int) -> tuple[list[list[Unit]], bool]:
    best = _first_fit(units, share)
    if len(best) <= bound:
        return best, True
    if len(units) > EXACT_REPLICAS:
        return best, False
    search = _ExactSearch(share, units, best, bound, steps)
    search.run(0, [])
    return search.best, search.steps_left > 0


def _first_fit(units: list[Unit], share: GpuShare) -> list[list[Unit]]:
    bins: list[list[Unit]] = []
    for unit in units:
        room = next((content for content in bins if share.way_of((*content, unit)) is not None), None)
        if room is None:
            bins.append([unit])
        else:
            room.append(unit)
    return bins


@dataclass
class _ExactSearch:
    """Depth first: each replica goes into each GPU that holds it, or into a new one, while that can still be better."""

    share: GpuShare
    units: list[Unit]
    best: list[list[Unit]]
    bound: int
    steps_left: int

    def run(self, index: int, bins: list[list[Unit]]) -> None:
        self.steps_left -= 1
        if self.steps_left <= 0 or len(self.best) <= self.bound or len(bins) >= len(self.best):
            return
        if index == len(self.units):
            self.best = [list(content) for content in bins]
            return
        unit, seen = self.units[index], set()
        for content in bins:
            likeness = tuple((other.need_bytes, other.needs_hardware_isolation) for other in content)
            if likeness in seen or self.share.way_of((*content, unit)) is None:
                continue
            seen.add(likeness)
            content.append(unit)
            self.run(index + 1, bins)
            content.pop()
        bins.append([unit])
        self.run(index + 1, bins)
        bins.pop()


def _gib(count: int) -> str:
    return f"{count / BYTES_PER_GIB:.2f} GiB"


def _gpu_document(gpu: PackedGpu) -> dict[str, object]:
    return {
        "sharing": gpu.way.value,
        "used_bytes": gpu.used_bytes,
        "capacity_bytes": gpu.capacity_bytes,
        "replicas": [
            {"deployment": item.name, "replica": item.replica, "need_bytes": item.need_bytes}
            | ({"mig_profile": item.slice.profile, "start": item.slice.start} if item.slice else {})
            for item in gpu.replicas
        ],
    }
