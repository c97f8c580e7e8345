"""How long a replica takes from nothing to its first token, phase by phase, and which phase breaks a target.

The phases follow each other, so the total is their sum. Every constant stands with its source in
``fleet/data/cold_start.json``; what a plan decides (where the weights lie, how many replicas start together, what is
preloaded or cached) comes in as `ColdStartWish`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleet.cold_start_data import WeightSource, constants
from fleet.latency_interval import NOTHING, Interval

BYTES_PER_GIGABYTE = 1e9
COMPILING_ENGINES = frozenset({"vllm"})
"""Engines that compile the model by default; the others only capture graphs."""
PAIR_CHECKING_ENGINES = frozenset({"vllm"})
"""Engines that test at start which GPUs reach each other."""


class Phase(StrEnum):
    """What happens one after the other."""

    NODE = "node"
    IMAGE = "image"
    ENGINE_BUILD = "engine_build"
    WEIGHTS = "weights"
    LOAD = "load"
    COMPILE = "compile"
    WARM_UP = "warm_up"


class StartMode(StrEnum):
    """From where a replica starts."""

    COLD = "cold"
    SLEEP_1 = "sleep-1"
    """Asleep on this node and GPU with its weights in host memory."""
    SLEEP_2 = "sleep-2"
    """Asleep on this node and GPU without weights; allocator, graphs and compiled kernels are kept."""
    SNAPSHOT = "snapshot"
    """Restored from a checkpoint of the process: one GPU only."""


class ImageState(StrEnum):
    """Where the image is when the pod is scheduled."""

    REMOTE = "remote"
    TUNED = "tuned"
    """Pulled in parallel and without compression."""
    PRELOADED = "preloaded"
    """On the node's data volume (a snapshot of it, or an earlier pod)."""


@dataclass(frozen=True, slots=True)
class ColdStartWish:
    """What the environment and the plan decide about a start."""

    weights: WeightSource
    replicas_together: int = 1
    """Replicas that start at the same moment and read the same source."""
    mode: StartMode = StartMode.COLD
    is_node_ready: bool = False
    image: ImageState = ImageState.REMOTE
    image_gigabytes: float | None = None
    """``None`` = the size usual for LLM engines."""
    streams_weights: bool = True
    """A streaming loader (Run:ai, fastsafetensors, InstantTensor) instead of the default one."""
    has_compile_cache: bool = False
    skips_compile: bool = False
    """Eager mode: no compile, no graphs."""
    captures_few_sizes: bool = False
    skips_p2p_check: bool = False
    needs_engine_build: bool = False
    """A TensorRT engine that nobody has built yet for this model, GPU, plan and version."""


@dataclass(frozen=True, slots=True)
class Replica:
    """What of a plan matters for its start."""

    engine: str
    weights_bytes: int
    """Of the whole replica."""
    layers: int
    gpus: int = 1
    nodes: int = 1
    pcie_gigabytes_per_second: float | None = None
    """Of one GPU, one direction; ``None`` = not known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a target is met, and if not, what stands in its way."""

    target_seconds: float
    is_reachable: bool
    """Even in the best case no: False. In the best case or better: True, see ``is_likely``."""
    is_likely: bool
    """Met by the most likely figures."""
    breaking_phase: Phase | None
    """The longest phase where the target is not likely met."""
    weights_gigabytes_per_second: float | None
    """What each replica would have to read to meet the target with the other phases as they are; ``None`` = no rate
    does."""


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Seconds of each phase."""

    phases: Mapping[Phase, Interval]
    weights_bytes: int

    @property
    def total(self) -> Interval:
        """The sum of all phases."""
        return sum(self.phases.values(), NOTHING)

    def verdict(self, target_seconds: float) -> Verdict:
        """Whether a start within some seconds is possible and likely, and the phase that breaks it."""
        total = self.total
        is_likely = total.mid <= target_seconds
        longest = max(self.phases, key=lambda phase: self.phases[phase].mid)
        left = target_seconds - (total.mid - self.phases[Phase.WEIGHTS].mid)
        return Verdict(
            target_seconds=target_seconds,
            is_reachable=total.low <= target_seconds,
            is_likely=is_likely,
            breaking_phase=None if is_likely else longest,
            weights_gigabytes_per_second=self.weights_bytes / BYTES_PER_GIGABYTE / left if left > 0 else None,
        )


class SnapshotImpossible(ValueError):
    """A snapshot holds one GPU; the plan has more."""


def cold_start_of(replica: Replica, wish: ColdStartWish) -> ColdStart:
    """The seconds of each phase; raises `SnapshotImpossible` for a snapshot of more than one GPU."""
    if wish.mode is StartMode.SNAPSHOT and replica.gpus > 1:
        raise SnapshotImpossible(
            f"a snapshot holds one GPU, the replica has {replica.gpus}; use sleep mode or a cold start"
        )
    phases = _cold if wish.mode is StartMode.COLD else _resumed
    return ColdStart(phases=phases(replica, wish), weights_bytes=replica.weights_bytes)


def _cold(replica: Replica, wish: ColdStartWish) -> dict[Phase, Interval]:
    return {
        Phase.NODE: _seconds("node-ready" if wish.is_node_ready else "node-launch"),
        Phase.IMAGE: _image(wish),
        Phase.ENGINE_BUILD: _seconds("engine-build") if wish.needs_engine_build else NOTHING,
        Phase.WEIGHTS: _read(replica, wish),
        Phase.LOAD: _load(replica, wish),
        Phase.COMPILE: _compile(replica, wish),
        Phase.WARM_UP: _seconds("warm-up"),
    }


def _resumed(replica: Replica, wish: ColdStartWish) -> dict[Phase, Interval]:
    """Waking and restoring need their node, image and compiled kernels, so these phases take nothing."""
    weights = {
        StartMode.SLEEP_1: lambda: _to_gpu(replica),
        StartMode.SLEEP_2: lambda: _read(replica, wish) + _to_gpu(replica),
        StartMode.SNAPSHOT: lambda: _over(replica.weights_bytes, _rate("snapshot"), 1.0),
    }[wish.mode]()
    return dict.fromkeys(Phase, NOTHING) | {Phase.WEIGHTS: weights, Phase.WARM_UP: _seconds("wake")}


def _image(wish: ColdStartWish) -> Interval:
    """Size over the rate of the pull; a preloaded image takes nothing."""
    if wish.image is ImageState.PRELOADED:
        return NOTHING
    own = wish.image_gigabytes
    size = constants().image_gigabytes.interval if own is None else Interval.exactly(own)
    rate = _rate("image-tuned" if wish.image is ImageState.TUNED else "image-plain")
    return Interval(size.low / rate.high, size.mid / rate.mid, size.high / rate.low)


def _read(replica: Replica, wish: ColdStartWish) -> Interval:
    """Bytes of each node over its part of the source's rate and what the loader makes of it."""
    nodes_together = wish.replicas_together * replica.nodes
    rate = wish.weights.gigabytes_per_second_of_node(nodes_together)
    part = _rate("loader-streaming-part" if wish.streams_weights else "loader-default-part")
    return _over(replica.weights_bytes / replica.nodes, part, rate)


def _load(replica: Replica, wish: ColdStartWish) -> Interval:
    """The process and its imports, the copy to the GPUs, and the check which GPUs reach each other."""
    check = replica.gpus > 1 and not wish.skips_p2p_check and replica.engine in PAIR_CHECKING_ENGINES
    return _seconds("start") + _to_gpu(replica) + (_seconds("p2p-check") if check else NOTHING)


def _to_gpu(replica: Replica) -> Interval:
    """The bytes of one GPU over its bus; all GPUs copy at once. Nothing is added where the bus is not known."""
    if replica.pcie_gigabytes_per_second is None:
        return NOTHING
    return _over(replica.weights_bytes / replica.gpus, _rate("pcie-part"), replica.pcie_gigabytes_per_second)


def _compile(replica: Replica, wish: ColdStartWish) -> Interval:
    """Compiling and capturing graphs, layer by layer."""
    if wish.skips_compile:
        return NOTHING
    capture = _seconds("capture-per-layer") * replica.layers
    if wish.captures_few_sizes:
        capture = _shorter(_seconds("capture-few-sizes"), capture)
    if replica.engine not in COMPILING_ENGINES:
        return capture
    compiled = _seconds("compile-per-layer") * replica.layers
    if wish.has_compile_cache:
        compiled = _shorter(_seconds("compile-cached"), compiled)
    return compiled + capture


def _over(size_bytes: float, part: Interval, gigabytes_per_second: float) -> Interval:
    """Seconds for some bytes at a rate of which a part is reached."""
    seconds = size_bytes / BYTES_PER_GIGABYTE / gigabytes_per_second
    return Interval(seconds / part.high, seconds / part.mid, seconds / part.low)


def _shorter(one: Interval, other: Interval) -> Interval:
    return Interval(*map(min, one.values, other.values))


def _seconds(name: str) -> Interval:
    return constants().seconds[name].interval


def _rate(name: str) -> Interval:
    return constants().gigabytes_per_second[name].interval
