"""How long a pod may take to start, before it counts as failed."""

from dataclasses import dataclass
from math import ceil

from fleet import model_catalogue
from fleet.cold_start import ColdStart, ColdStartWish, Phase, Replica, cold_start_of
from fleet.hardware import gpu
from fleet.manifest import PinnedManifest
from fleet.model import Missing, Model
from fleet.model_config import ConfigError
from fleet.model_reading import read_model
from fleet.weights import weights_bytes_total
from workloads.ground import RenderGround
from workloads.placement import Place

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
class StartTime:
    """What the probes and the rollout wait for."""

    container_seconds: int
    """From the start of the container to its first good answer, at most."""
    estimate: ColdStart | None
    """``None`` = the model's size is not known."""

    @property
    def progress_seconds(self) -> int:
        """From the pod's creation, with a new node and a pull of the image."""
        return self.container_seconds + NODE_SECONDS


def start_time(pinned: PinnedManifest, place: Place, ground: RenderGround) -> StartTime:
    """The time that a start may take, from the same constants as the planner's."""
    model, encoding = _model(pinned.spec.model.id, ground)
    engine = pinned.engine_name
    size = None if model is None else weights_bytes_total(model, pinned.spec.model.quantization or encoding)
    if model is None or engine is None or size is None or isinstance(size, Missing):
        return StartTime(UNKNOWN_SECONDS, None)
    replica = Replica(
        engine=engine.value,
        weights_bytes=size,
        layers=len(model.layers),
        gpus=place.hardware.gpus,
        pcie_gigabytes_per_second=gpu(place.shape.gpu).pcie_gb_per_second,
    )
    wish = ColdStartWish(ground.weights.source(), replicas_together=STARTING_TOGETHER, streams_weights=False)
    found = cold_start_of(replica, wish)
    inside = sum(seconds.high for phase, seconds in found.phases.items() if phase not in (Phase.NODE, Phase.IMAGE))
    return StartTime(max(SHORTEST_SECONDS, ceil(inside * SAFETY)), found)


def _model(model_id: str, ground: RenderGround) -> tuple[Model | None, str | None]:
    """The model and the precision of its checkpoint, where that is not the one that its configuration states."""
    own = ground.model_configs.get(model_id)
    known = None if own is not None else model_catalogue.find(model_id)
    config = own if own is not None else (known.config if known else None)
    try:
        model = None if config is None else read_model(config, id=model_id)
    except ConfigError:
        return None, None
    return model, known.quantization if known else None
