"""What one shared GPU can hold together: the question that packing asks of every bin.

Whatever fits together also fits without one of them, in each way of sharing; searches rely on that.
"""

from dataclasses import dataclass, field
from functools import cached_property

from fleet.hardware import GpuModel, MigProfile
from fleet.sharing import (
    PlacedSlice,
    SharingWay,
    fits_layout,
    memory_slices,
    place_layout,
    profile_of,
    slice_memory,
    way_facts,
    ways_of,
)


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """One replica to be packed."""

    need_bytes: int
    """Memory with context and graphs."""
    needs_hardware_isolation: bool
    name: str
    replica: int


@dataclass(frozen=True, slots=True)
class PackedReplica:
    """One replica on a GPU."""

    name: str
    replica: int
    need_bytes: int
    slice: PlacedSlice | None
    """Its MIG instance, where the GPU is cut."""


@dataclass(frozen=True, slots=True)
class PackedGpu:
    """One GPU and what stands on it."""

    way: SharingWay
    replicas: tuple[PackedReplica, ...]
    capacity_bytes: int
    """Of the whole GPU."""

    @property
    def used_bytes(self) -> int:
        """What the replicas need together."""
        return sum(item.need_bytes for item in self.replicas)


@dataclass(frozen=True)
class GpuShare:
    """A GPU model and the ways in which it may be shared, the preferred first."""

    model: GpuModel
    ways: tuple[SharingWay, ...]
    profile: str | None = None
    """Every GPU is cut into instances of this profile; ``None`` = any layout, chosen here."""
    context_bytes: int = 0
    """What each process takes beside its memory (`fleet.sharing.context_bytes`)."""
    _known: dict[tuple[tuple[int, bool], ...], SharingWay | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, model: GpuModel, *, context_bytes: int) -> "GpuShare":
        """All ways that the GPU knows but dynamic slices, which need a cluster made for them."""
        ways = tuple(way for way in ways_of(model) if way is not SharingWay.DYNAMIC_SLICES)
        return cls(model, ways, context_bytes=context_bytes)

    @cached_property
    def capacity_bytes(self) -> int:
        """Of one GPU, or of its largest slice where only that is known; 0 when neither is."""
        return self.model.memory_bytes or self.largest_slice_bytes

    @cached_property
    def largest_slice_bytes(self) -> int:
        """What the largest instance holds that replicas may take; 0 without slices."""
        found = (slice_memory(self.model, profile.name) for profile in self.profiles)
        return max((memory.memory_bytes for memory in found if memory is not None), default=0)

    @cached_property
    def profiles(self) -> tuple[MigProfile, ...]:
        """The profiles that replicas may take, smallest first; media engines are left to those who ask for them."""
        if self.profile is not None:
            return (profile_of(self.model, self.profile),)
        plain = (item for item in self.model.mig_profiles if not item.name.endswith("+me"))
        return tuple(sorted(plain, key=lambda item: (memory_slices(self.model, item), item.compute_slices)))

    def profile_for(self, need_bytes: int) -> str | None:
        """The smallest profile whose instance holds so much; ``None`` = none does."""
        for profile in self.profiles:
            memory = slice_memory(self.model, profile.name)
            if memory is not None and need_bytes < memory.memory_bytes:
                return profile.name
        return None

    def way_of(self, units: tuple[Unit, ...]) -> SharingWay | None:
        """The first way in which one GPU can hold these together, or ``None``."""
        key = tuple((unit.need_bytes, unit.needs_hardware_isolation) for unit in units)
        if key not in self._known:
            self._known[key] = next((way for way in self.ways if self._holds(way, units)), None)
        return self._known[key]

    def content_of(self, units: tuple[Unit, ...]) -> PackedGpu | None:
        """One GPU with these on it, or ``None`` when they don't fit together."""
        way = self.way_of(units)
        if way is None:
            return None
        slices = self._slices(units) if way.has_slices else [None] * len(units)
        packed = (PackedReplica(u.name, u.replica, u.need_bytes, cut) for u, cut in zip(units, slices, strict=True))
        return PackedGpu(way, tuple(packed), self.capacity_bytes)

    def _holds(self, way: SharingWay, units: tuple[Unit, ...]) -> bool:
        if way.has_slices:
            profiles = [self.profile_for(unit.need_bytes) for unit in units]
            return fits_layout(self.model, [name for name in profiles if name]) and all(profiles)
        if sum(unit.need_bytes for unit in units) >= self.capacity_bytes:
            return False
        if way is SharingWay.EXCLUSIVE:
            return len(units) == 1
        most = way_facts()[way].max_processes
        return not any(unit.needs_hardware_isolation for unit in units) and (most is None or len(units) <= most)

    def _slices(self, units: tuple[Unit, ...]) -> list[PlacedSlice | None]:
        profiles = [self.profile_for(unit.need_bytes) or "" for unit in units]
        free = list(place_layout(self.model, profiles))
        taken: list[PlacedSlice | None] = []
        for name in profiles:
            found = next(item for item in free if item.profile == name)
            free.remove(found)
            taken.append(found)
        return taken
