"""Hardware: GPUs, the instance types that carry them, their network cards, and the ways to share a GPU.

The facts stand in ``fleet/data/gpus.json`` and ``fleet/data/instances.json`` with their sources (made from tables), and
in ``fleet/data/gpus_beside.json`` for GPUs that no instance table carries. A figure that nobody has seen is ``None``;
marketing gigabytes are not memory (an "L4 with 24 GB" has 22,888 MiB).
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, TypeVar

from pydantic import Field

from fleet.nearest import did_you_mean
from fleet.value import Value

BYTES_PER_MIB = 1024**2
BYTES_PER_GIB = 1024**3
Count = Annotated[int, Field(ge=1)]
Named = TypeVar("Named")


class UnknownHardware(Exception):
    """A GPU or instance type that the data does not name, with the nearest one that it does."""


class SharingMode(StrEnum):
    """How the pods of a node share its GPUs."""

    EXCLUSIVE = "exclusive"
    MIG = "mig"
    MPS = "mps"
    TIME_SLICING = "time-slicing"


@cache
def _gigabytes(profile: str) -> int:
    return int(re.split(r"g\.|gb", profile)[1])


class MigProfile(Value):
    """One way to cut a GPU into instances with their own memory."""

    name: str
    """``1g.10gb``; ``+me`` adds the media engines."""
    per_gpu: Count
    """How many of them fit on one GPU."""

    @property
    def compute_slices(self) -> int:
        """Of the GPU's seven (A30: four) compute slices."""
        return int(self.name.split("g.", 1)[0])

    @property
    def memory_gb(self) -> int:
        """The rounded memory that the name states."""
        return _gigabytes(self.name)


class GpuModel(Value):
    """One GPU model. Rates are peaks, dense (no sparsity), per GPU; links are one direction."""

    name: str
    memory_mib: Count | None = None
    """What the cloud reports for a GPU."""
    visible_memory_gib: float | None = None
    """What CUDA reports as total where a log was seen: less than the cloud says."""
    compute_capability: tuple[int, int] | None = None
    memory_bandwidth_gb_per_second: float | None = None
    bf16_tflops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    nvlink_gb_per_second: float | None = None
    """0 = none; ``None`` = not known."""
    pcie_gb_per_second: float | None = None
    mig_profiles: tuple[MigProfile, ...] = ()
    node_gpus: Count | None = None
    """GPUs of one node, where no instance type says it."""
    nvlink_domain_gpus: Count | None = None
    """GPUs that reach each other by NVLink, where that is more than one node."""
    source: str

    def slice_bytes(self, profile: str) -> int | None:
        """What a MIG instance holds: the named gigabytes' share of the whole GPU's profile; ``None`` when unknown."""
        named = {item.name: item.memory_gb for item in self.mig_profiles}
        if profile not in named or self.memory_bytes is None:
            return None
        return self.memory_bytes * named[profile] // max(named.values())

    @property
    def memory_bytes(self) -> int | None:
        """What a process can count on: CUDA's own total where it was seen, else the cloud's figure."""
        if self.visible_memory_gib is not None:
            return int(self.visible_memory_gib * BYTES_PER_GIB)
        return None if self.memory_mib is None else self.memory_mib * BYTES_PER_MIB

    @property
    def sharing_modes(self) -> tuple[SharingMode, ...]:
        """The ways in which pods can share it."""
        mig = (SharingMode.MIG,) if self.mig_profiles else ()
        return (SharingMode.EXCLUSIVE, *mig, SharingMode.MPS, SharingMode.TIME_SLICING)


class NetworkCard(Value):
    """One network card of an instance and what can be attached to it."""

    index: Annotated[int, Field(ge=0)]
    max_interfaces: Count
    interface_types: tuple[str, ...]
    """``ena`` (plain), ``efa`` (plain and EFA), ``efa-only``."""
    gigabits_per_second: float
    is_burst: bool = False
    """The rate is an upper bound ("up to")."""

    @property
    def supports_efa(self) -> bool:
        """Whether an EFA interface can be attached."""
        return "efa-only" in self.interface_types


class LocalStorage(Value):
    """NVMe disks of the instance itself; their content ends with it."""

    disks: Count
    gigabytes_per_disk: Count


class InstanceType(Value):
    """One instance type of the cloud."""

    name: str
    gpu: str
    """The name of its `GpuModel`."""
    gpus: Count
    """GPUs that pods can ask for; a partitioned instance has one part (the cloud's own count says 0)."""
    gpu_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Below 1: the instance has only this part of one GPU."""
    gpu_memory_mib: Count
    """Per GPU, or of the part."""
    vcpus: Count
    memory_mib: Count
    network_gigabits_per_second: float
    network_is_burst: bool = False
    network_cards: tuple[NetworkCard, ...]
    max_efa_interfaces: Annotated[int, Field(ge=0)]
    """Not the number of cards: a card may be without EFA."""
    max_interfaces: Count
    ipv4_per_interface: Count
    local_storage: LocalStorage | None = None
    placement_strategies: tuple[str, ...] = ()
    purchase_classes: tuple[str, ...]
    """``on-demand``, ``spot``, ``capacity-block``."""

    @property
    def has_nvlink(self) -> bool:
        """Whether its GPUs reach each other by NVLink; one GPU alone has nobody to reach."""
        return self.gpus > 1 and bool(gpu(self.gpu).nvlink_gb_per_second)

    @property
    def supports_efa(self) -> bool:
        """Whether replicas may span nodes over EFA."""
        return self.max_efa_interfaces > 0


class GpuFile(Value):
    """``gpus.json``."""

    source: str
    retrieved: str
    gpus: tuple[GpuModel, ...]


class InstanceFile(Value):
    """``instances.json``."""

    source: str
    retrieved: str
    instances: tuple[InstanceType, ...]


@cache
def gpu_models() -> Mapping[str, GpuModel]:
    """Every known GPU by name."""
    names = ("gpus.json", "gpus_beside.json")
    texts = (files("fleet").joinpath("data", name).read_text(encoding="utf-8") for name in names)
    return {item.name: item for text in texts for item in GpuFile.model_validate_json(text).gpus}


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every known instance type by name."""
    text = files("fleet").joinpath("data", "instances.json").read_text(encoding="utf-8")
    return {item.name: item for item in InstanceFile.model_validate_json(text).instances}


def gpu(name: str) -> GpuModel:
    """The GPU of a name; raises `UnknownHardware`."""
    return _known(name, gpu_models(), "GPU")


def instance(name: str) -> InstanceType:
    """The instance type of a name; raises `UnknownHardware`."""
    return _known(name, instance_types(), "instance type")


def instances_with(gpu_name: str) -> tuple[InstanceType, ...]:
    """The instance types that carry a whole GPU of this model, fewest GPUs first; raises `UnknownHardware`."""
    wanted = gpu(gpu_name).name
    found = [item for item in instance_types().values() if item.gpu == wanted and item.gpu_fraction == 1]
    return tuple(sorted(found, key=lambda item: (item.gpus, item.vcpus, item.name)))


@cache
def node_gpus(gpu_name: str) -> int:
    """GPUs of the largest node that carries this model; 8 where nothing is known of its nodes."""
    model = gpu(gpu_name)
    sizes = [item.gpus for item in instances_with(gpu_name)]
    return model.node_gpus or max(sizes, default=8)


@cache
def tensor_domain(gpu_name: str) -> int:
    """GPUs over which tensor parallelism need not leave the fast links: the NVLink domain, else the node."""
    return gpu(gpu_name).nvlink_domain_gpus or node_gpus(gpu_name)


def nodes_per_replica(gpus: int, instance_type: InstanceType) -> int:
    """How many instances one replica spans: the GPUs over those of one instance, rounded up."""
    return -(-gpus // instance_type.gpus)


def _known(name: str, known: Mapping[str, Named], what: str) -> Named:
    if name in known:
        return known[name]
    hint = did_you_mean(name, known) or f"; known: {', '.join(sorted(known))}"
    raise UnknownHardware(f"the {what} '{name}' is not known{hint}")
