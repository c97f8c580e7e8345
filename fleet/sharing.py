"""Ways to share a GPU: what each isolates, its limits, and how MIG cuts a GPU into slices.

The facts stand in ``fleet/data/sharing.json`` with their sources. A slice's memory is what ``nvidia-smi mig -lgip``
listed where a listing was seen, else derived from the whole GPU's visible memory, and it says which.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from fleet.hardware import BYTES_PER_GIB, GpuModel, MigProfile, SharingMode, gpu_models
from fleet.nearest import did_you_mean
from fleet.value import Value

_PART = re.compile(r"(?:(\d+)x)?(\d+g\.\d+gb(?:\+me)?)")
_MEMORY_SLICES = {7: 8, 4: 4}
"""Memory slices of a GPU by its compute slices (A30 has four of each)."""


class LayoutError(ValueError):
    """A MIG layout or profile that the GPU can't have: what is wrong, and what would be right."""


class SharingWay(StrEnum):
    """How the nodes of a pool share their GPUs."""

    EXCLUSIVE = "exclusive"
    MIG = "mig"
    """Slices that are cut when the node starts."""
    DYNAMIC_SLICES = "dynamic-slices"
    """MIG slices that are cut when a pod asks for one (dynamic resource allocation)."""
    MPS = "mps"
    TIME_SLICING = "time-slicing"

    @property
    def mode(self) -> SharingMode:
        """What a manifest asks for to run on such nodes: a dynamic slice is a MIG slice."""
        return SharingMode.MIG if self is SharingWay.DYNAMIC_SLICES else SharingMode(self.value)

    @property
    def has_slices(self) -> bool:
        """Whether the GPU is cut into MIG instances."""
        return self.mode is SharingMode.MIG


class Degree(StrEnum):
    """What keeps neighbours apart."""

    HARDWARE = "hardware"
    SOFTWARE = "software"
    """Limits that a daemon or the driver enforces."""
    NONE = "none"


class Isolation(Value):
    """What a way of sharing keeps apart."""

    memory: Degree
    fault: Degree
    """Whether a crash of one process leaves the others alone."""
    compute: Degree

    @property
    def is_hardware(self) -> bool:
        """Whether all three are kept apart by hardware."""
        return {self.memory, self.fault, self.compute} == {Degree.HARDWARE}


class WayFacts(Value):
    """What is known of one way of sharing."""

    way: SharingWay
    isolation: Isolation
    max_processes: Annotated[int, Field(ge=1)] | None = None
    """Per GPU; ``None`` = no limit but memory."""
    max_gpus_per_replica: Annotated[int, Field(ge=1)] | None = None
    """1 where tensor parallelism can't leave the share; ``None`` = no limit."""
    limits: tuple[str, ...]
    source: str


class ListedSlices(Value):
    """Memory of MIG instances as the driver listed it, in GiB by profile (the same with ``+me``)."""

    gpu: str
    memory_gib: dict[str, Annotated[float, Field(gt=0)]]
    source: str


class SharingFile(Value):
    """``sharing.json``."""

    retrieved: str
    ways: tuple[WayFacts, ...]
    slices: tuple[ListedSlices, ...]
    derived: str
    """How a slice that nobody listed is reckoned."""


class Basis(StrEnum):
    """Where a slice's memory comes from."""

    LISTED = "listed"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class SliceMemory:
    """What one MIG instance holds."""

    memory_bytes: int
    basis: Basis
    source: str


@dataclass(frozen=True, slots=True, order=True)
class PlacedSlice:
    """One MIG instance and the first memory slice that it takes."""

    start: int
    profile: str


@cache
def sharing_file() -> SharingFile:
    """The packaged facts."""
    text = files("fleet").joinpath("data", "sharing.json").read_text(encoding="utf-8")
    return SharingFile.model_validate_json(text)


@cache
def way_facts() -> Mapping[SharingWay, WayFacts]:
    """What is known of every way."""
    return {item.way: item for item in sharing_file().ways}


def isolation_of(way: SharingWay) -> Isolation:
    """What the way keeps apart."""
    return way_facts()[way].isolation


def ways_of(model: GpuModel) -> tuple[SharingWay, ...]:
    """The ways in which this GPU can be shared; without MIG profiles it has no slices."""
    return tuple(way for way in SharingWay if model.mig_profiles or not way.has_slices)


def context_bytes() -> int:
    """CUDA context and graphs of one engine process beside its budget (1 to 2 GiB were measured; the middle)."""
    from fleet.memory_constants import memory_file  # what only packing asks is not imported with every manifest

    return int(memory_file().shared_gpu_context_gib * BYTES_PER_GIB)


def profile_of(model: GpuModel, name: str) -> MigProfile:
    """The profile of a name.

    Raises:
        LayoutError: the GPU has no MIG, or no such profile; the nearest and all others are named.
    """
    known = {item.name: item for item in model.mig_profiles}
    if name in known:
        return known[name]
    if not known:
        able = ", ".join(sorted(item.name for item in gpu_models().values() if item.mig_profiles))
        raise LayoutError(f"{model.name} has no MIG, so no profile '{name}'; GPUs with MIG: {able}")
    hint = did_you_mean(name, known) or ";"
    raise LayoutError(f"{model.name} has no MIG profile '{name}'{hint} its profiles: {', '.join(known)}")


def compute_slices(model: GpuModel) -> int:
    """Compute slices of the whole GPU: 7, on A30 4; 0 without MIG."""
    return max((item.compute_slices for item in model.mig_profiles), default=0)


def memory_slices(model: GpuModel, profile: MigProfile | None = None) -> int:
    """Memory slices of a profile, or of the whole GPU: 8, on A30 4; 0 without MIG."""
    whole = _MEMORY_SLICES.get(compute_slices(model), 0)
    if profile is None or not whole:
        return whole
    return round(profile.memory_gb * whole / max(item.memory_gb for item in model.mig_profiles))


def starts_of(model: GpuModel, profile: MigProfile) -> tuple[int, ...]:
    """The memory slices at which an instance can begin.

    Multiples of its size, as far as its compute slices still stand beside it: what ``nvidia-smi mig -lgipp`` lists for
    A100, H100 (1g ``{0..6}:1``, double memory ``{0,2,4,6}:2``, 2g ``{0,2,4}:2``, 3g ``{0,4}:4``, 4g ``{0}:4``) and A30.
    """
    size, compute = memory_slices(model, profile), compute_slices(model)
    return tuple(range(0, compute - profile.compute_slices + 1, size))


@cache
def _listed() -> Mapping[tuple[str, str], SliceMemory]:
    return {
        (item.gpu, name): SliceMemory(int(gib * BYTES_PER_GIB), Basis.LISTED, item.source)
        for item in sharing_file().slices
        for name, gib in item.memory_gib.items()
    }


def slice_memory(model: GpuModel, name: str) -> SliceMemory | None:
    """What an instance of the profile holds; ``None`` when nothing is known.

    A derived figure is the smaller of its part of the memory slices and its name's part of the whole-GPU profile.

    Raises:
        LayoutError: the GPU has no such profile.
    """
    profile = profile_of(model, name)
    found = _listed().get((model.name, name.removesuffix("+me")))
    if model.memory_bytes is None:
        return found
    part = model.memory_bytes * memory_slices(model, profile) // memory_slices(model)
    part = min(part, model.slice_bytes(name) or part)
    if found is not None and found.memory_bytes <= part:
        return found
    return SliceMemory(part, Basis.DERIVED, sharing_file().derived)


def parse_layout(text: str) -> tuple[str, ...]:
    """The profiles of a layout such as ``2x1g.10gb+1x2g.20gb+1x3g.40gb``.

    Raises:
        LayoutError: a part that is no ``COUNTxPROFILE``.
    """
    profiles: list[str] = []
    for part in re.split(r"\+(?=\d)", text.strip()):
        match = _PART.fullmatch(part)
        if match is None or match[1] == "0" or len(match[1] or "") > 2:
            raise LayoutError(f"'{part}' of the layout '{text}' is not COUNTxPROFILE, such as 2x1g.10gb")
        profiles += [match[2]] * int(match[1] or 1)
    return tuple(profiles)


def place_layout(model: GpuModel, profiles: Iterable[str]) -> tuple[PlacedSlice, ...]:
    """Where the instances of a layout stand on one GPU, by start.

    Raises:
        LayoutError: a profile that the GPU lacks, or instances that don't fit beside each other.
    """
    wanted = sorted(profiles, key=lambda name: (-memory_slices(model, profile_of(model, name)), name))
    text = "+".join(f"{count}x{name}" for name, count in Counter(wanted).items())
    if sum(name.endswith("+me") for name in wanted) > 1:
        raise LayoutError(f"{text} on {model.name}: a GPU has its media engines once; at most one '+me' instance")
    placed = _placed(model, tuple(wanted))
    if placed is None:
        room = f"{compute_slices(model)} compute and {memory_slices(model)} memory slices"
        starts = ", ".join(
            f"{name} at {'/'.join(map(str, starts_of(model, profile_of(model, name))))}"
            for name in dict.fromkeys(wanted)
        )
        raise LayoutError(
            f"{text} does not fit on {model.name}: {room}, and instances begin at memory slices: {starts}"
        )
    return placed


def fits_layout(model: GpuModel, profiles: Iterable[str]) -> bool:
    """Whether the instances fit on one GPU; raises `LayoutError` for a profile that the GPU lacks."""
    wanted = sorted(profiles, key=lambda name: (-memory_slices(model, profile_of(model, name)), name))
    return sum(name.endswith("+me") for name in wanted) <= 1 and _placed(model, tuple(wanted)) is not None


def _placed(model: GpuModel, wanted: tuple[str, ...]) -> tuple[PlacedSlice, ...] | None:
    if len(wanted) > compute_slices(model):
        return None
    found = _search(model, wanted, 0)
    return None if found is None else tuple(sorted(found))


def _search(model: GpuModel, wanted: tuple[str, ...], taken: int) -> tuple[PlacedSlice, ...] | None:
    """Depth first over the starts; ``taken`` has a bit for each memory slice. Largest first, so few steps back."""
    if not wanted:
        return ()
    profile = profile_of(model, wanted[0])
    mask = (1 << memory_slices(model, profile)) - 1
    for start in starts_of(model, profile):
        if taken & (mask << start):
            continue
        rest = _search(model, wanted[1:], taken | (mask << start))
        if rest is not None:
            return (PlacedSlice(start, wanted[0]), *rest)
    return None
