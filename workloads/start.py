"""How long a pod may take to start, before it counts as failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from fleet import model_catalogue
from fleet.cold_start import ColdStart, ColdStartWish, Phase, Replica, cold_start_of
from fleet.hardware import gpu
from fleet.manifest import PinnedManifest
from fleet.model import Missing
from fleet.model_config import ConfigError
from fleet.model_reading import read_model
from fleet.weights import weights_bytes_total
from workloads.ground import RenderGround
from workloads.placement import Place
from workloads.weights import Delivery

MOUNTED = Delivery()
SAFETY = 2.0
"""Times the slow end of the estimate: a start that is ended half way begins anew, and never ends."""
SHORTEST_SECONDS = 600
UNKNOWN_SECONDS = 3600
"""For a model whose size nobody knows."""
NODE_SECONDS = 900
"""A new node and its image come before the container's own start."""
STARTING_TOGETHER = 4
"""Replicas that read the same weights at once. Not the manifest's own number: scaling never starts pods anew."""


@dataclass(frozen=True, slots=True)
class Size:
    """What of a model matters for its start."""

    weights_bytes: int
    layers: int
    disk_bytes: int
    """Of the checkpoint, which an engine may load in fewer bits than it has."""


@dataclass(frozen=True, slots=True)
class StartTime:
    """What the probes and the rollout wait for."""

    container_seconds: int
    """From the start of the container to its first good answer, at most."""
    estimate: ColdStart | None
    """``None`` = the model's size is not known."""
    disk_bytes: int | None = None
    """Of the weights as files; ``None`` = not known."""
    is_copied: bool = False
    """Weights are copied before the container starts, which takes no longer than reading them from there."""

    @property
    def progress_seconds(self) -> int:
        """From the pod's creation, with a new node, a pull of the image and a copy of the weights."""
        return self.container_seconds * (2 if self.is_copied else 1) + NODE_SECONDS


def start_time(pinned: PinnedManifest, place: Place, ground: RenderGround, way: Delivery = MOUNTED) -> StartTime:
    """The time that a start may take, from the same constants as the planner's."""
    engine, model = pinned.engine_name, pinned.spec.model
    own = ground.model_configs.get(model.id)
    size = _bundled(model.id, model.quantization) if own is None else _size(own, model.id, model.quantization)
    if engine is None or size is None:
        known = None if size is None else size.disk_bytes
        return StartTime(UNKNOWN_SECONDS, None, known, bool(way.folders))
    replica = Replica(
        engine=engine.value,
        weights_bytes=size.weights_bytes,
        layers=size.layers,
        gpus=place.hardware.gpus,
        pcie_gigabytes_per_second=gpu(place.shape.gpu).pcie_gb_per_second,
    )
    streams = way.uri is not None
    wish = ColdStartWish(ground.weights.source(), replicas_together=STARTING_TOGETHER, streams_weights=streams)
    found = cold_start_of(replica, wish)
    inside = sum(seconds.high for phase, seconds in found.phases.items() if phase not in (Phase.NODE, Phase.IMAGE))
    return StartTime(max(SHORTEST_SECONDS, ceil(inside * SAFETY)), found, size.disk_bytes, bool(way.folders))


@lru_cache(maxsize=256)
def _bundled(model_id: str, quantization: str | None) -> Size | None:
    known = model_catalogue.find(model_id)
    return None if known is None else _size(known.config, model_id, quantization or known.quantization)


def _size(config: Mapping[str, Any], model_id: str, quantization: str | None) -> Size | None:
    try:
        model = read_model(config, id=model_id)
    except ConfigError:
        return None
    weights, whole = weights_bytes_total(model, quantization), weights_bytes_total(model)
    if isinstance(weights, Missing):
        return None
    return Size(weights, len(model.layers), weights if isinstance(whole, Missing) else max(weights, whole))
