"""Where a manifest could run: its model or an alternative, on instances that the environment has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from fleet import hardware
from fleet.facts import Facts
from fleet.hardware import GpuModel, InstanceType, SharingMode, UnknownHardware
from fleet.known_models import known_model
from fleet.model import Model
from fleet.node_pools import NodePool
from fleet.plan_wish import Reason
from fleet.sharing import isolation_of, profile_of
from fleet.spec import Hardware, Spec

NODES_WHEN_OPEN = 4
"""Nodes that a replica may span where no pool says how many there are."""


class Origin(IntEnum):
    """Where a model that could serve comes from; a later one is taken only where no earlier one can be."""

    ASKED = 0
    QUANTIZED = 1
    """A checkpoint of it with fewer bits, which the manifest lists."""
    AT_LOAD = 2
    """Quantised by the engine as it loads it."""
    ALTERNATIVE = 3
    """Another model that the manifest lists."""


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model that could serve the manifest."""

    id: str
    revision: str | None
    model: Model
    quantization: str | None
    """``None`` = as its checkpoint is stored."""
    origin: Origin = Origin.ASKED
    note: str = ""
    """What is known of its quality, where it is not what was asked for."""

    @property
    def key(self) -> tuple[str, str | None]:
        """One manifest's options differ in it."""
        return self.id, self.quantization


@dataclass(frozen=True, slots=True)
class Place:
    """Instances on which a replica could stand."""

    instance: InstanceType
    purchase: str
    sharing: SharingMode
    nodes: int
    """That one replica may span."""
    pool: NodePool | None = None

    @property
    def mig_profile(self) -> str | None:
        """The instances into which the pool cuts its GPUs."""
        return None if self.pool is None else self.pool.mig_profile

    @property
    def gpu(self) -> GpuModel:
        """The GPU that a process sees, before it is cut by MIG: of a partitioned instance, its part."""
        whole, part = hardware.gpu(self.instance.gpu), self.instance.gpu_fraction
        if part == 1:
            return whole
        return _part_of(whole, self.instance.name, part, self.instance.gpu_memory_mib)

    @property
    def speed_gpu(self) -> GpuModel:
        """The GPU as fast as a replica has it: a slice has its part of the bandwidth and of the compute."""
        gpu = self.gpu
        if self.mig_profile is None:
            return gpu
        part = 1 / self.slices_per_gpu
        return _part_of(gpu, f"{gpu.name} {self.mig_profile}", part, gpu.memory_mib)

    @property
    def slices_per_gpu(self) -> int:
        """How many of the pool's slices a GPU has; 1 without slices."""
        return 1 if self.mig_profile is None else profile_of(self.gpu, self.mig_profile).per_gpu

    @property
    def bought(self) -> str:
        """The instance and how it is bought."""
        return f"{self.instance.name} ({self.purchase})"

    def node_part(self, gpus: int) -> float:
        """Of a node that so many GPUs or slices are; above 1 = of several nodes."""
        return gpus / self.slices_per_gpu / self.instance.gpus


def _part_of(gpu: GpuModel, name: str, part: float, memory_mib: int | None) -> GpuModel:
    rates = ("memory_bandwidth_gb_per_second", "bf16_tflops", "fp8_tflops", "fp4_tflops")
    known = {rate: value * part for rate in rates if (value := getattr(gpu, rate)) is not None}
    return gpu.model_copy(
        update={**known, "name": name, "memory_mib": memory_mib, "visible_memory_gib": None, "mig_profiles": ()}
    )


def model_options(spec: Spec, facts: Facts, at_load: Sequence[str] = ()) -> tuple[ModelOption, ...]:
    """What could serve a manifest, as far as configurations are known; the model that was asked for first.

    ``at_load`` = quantisations that the engine makes of 16-bit weights; they are options where the manifest leaves the
    quantisation open, and the model's id does not speak of them: engines are told nothing then, as of a checkpoint
    that says it itself.
    """
    asked = _option(spec.model.id, spec.model.revision, facts, Origin.ASKED, spec.model.quantization)
    if asked is None:
        return ()
    found = {asked.id: asked}
    for item in spec.model.alternatives:
        origin = Origin.QUANTIZED if item.kind == "quantized" else Origin.ALTERNATIVE
        option = _option(item.id, item.revision, facts, origin, note=_note(item.kind, item.quality))
        if option is not None:
            found.setdefault(option.id, option)
    is_open = asked.quantization is None and asked.model.stored is None and not asked.model.lacks("stored")
    loaded = (_loaded_as(word, asked) for word in at_load if word not in asked.id.lower()) if is_open else ()
    return (*found.values(), *loaded)


def _loaded_as(word: str, asked: ModelOption) -> ModelOption:
    note = f"loaded as {word}: how much worse its answers are was not measured"
    return replace(asked, quantization=word, origin=Origin.AT_LOAD, note=note)


def _option(
    model_id: str, revision: str | None, facts: Facts, origin: Origin, quantization: str | None = None, note: str = ""
) -> ModelOption | None:
    known = known_model(model_id, facts)
    if known is None:
        return None
    return ModelOption(model_id, revision, known.model, quantization or known.quantization, origin, note)


def places(spec: Spec, facts: Facts) -> Iterator[Place]:
    """Every place that manifest and environment allow, the pools in their order, else all known instances."""
    wished = spec.hardware
    if facts.pools:
        yield from (_place_of(pool) for pool in facts.pools if pool_refusal(spec, pool, facts) is None)
        return
    for shape in _instances(spec):
        purchase = wished.purchase if wished else "on-demand"
        sharing = SharingMode(wished.sharing) if wished else SharingMode.EXCLUSIVE
        if purchase in shape.purchase_classes:
            yield Place(shape, purchase, sharing, NODES_WHEN_OPEN if shape.supports_efa else 1)


def pool_refusal(spec: Spec, pool: NodePool, facts: Facts) -> Reason | None:
    """Why nothing of a manifest can stand on a pool, whatever the engine and the model, or ``None``."""
    if pool.has_ended(facts.today):
        message = f"the capacity block of pool {pool.name} ended on {pool.ends_on}"
        return Reason("capacity-block-end", message, {"ends_on": str(pool.ends_on)})
    if pool.max_nodes == 0:
        return Reason("max-nodes", f"pool {pool.name} has no nodes", {"max_nodes": 0})
    if spec.access.isolation == "hardware" and not isolation_of(pool.sharing).is_hardware:
        message = f"access.isolation is 'hardware'; pool {pool.name} shares its GPUs by {pool.sharing.value}"
        return Reason("isolation", message, {"sharing": pool.sharing.value})
    return None if spec.hardware is None else _otherwise(spec.hardware, pool)


def _otherwise(wished: Hardware, pool: NodePool) -> Reason | None:
    """Where the manifest's hardware and a pool differ."""
    sides = (
        ("instance-type", wished.instance_type, pool.instance_type),
        ("purchase", wished.purchase, pool.purchase),
        ("sharing", wished.sharing, pool.sharing.mode.value),
    )
    for rule, asked, offered in sides:
        if asked != offered:
            message = f"the manifest asks for {asked}; pool {pool.name} has {offered}"
            return Reason(rule, message, {"wanted": asked, "pool": offered})
    return None


def _place_of(pool: NodePool) -> Place:
    most = NODES_WHEN_OPEN if pool.max_nodes is None else pool.max_nodes
    nodes = most if pool.instance.supports_efa else 1
    return Place(pool.instance, pool.purchase, pool.sharing.mode, nodes, pool)


def _instances(spec: Spec) -> tuple[InstanceType, ...]:
    if spec.hardware is None:
        return tuple(item for item in hardware.instance_types().values() if item.gpu_fraction == 1)
    try:
        return (hardware.instance(spec.hardware.instance_type),)
    except UnknownHardware:
        return ()  # a rule names it


def _note(kind: str, quality: object) -> str:
    metric, value, source = (getattr(quality, name, None) for name in ("metric", "value", "source"))
    known = f", {metric} {value} ({source})" if quality is not None else ""
    return f"an alternative: {kind}{known}"
