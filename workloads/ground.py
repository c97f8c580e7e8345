"""What a manifest is rendered onto: the cluster, as far as its objects have to know it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fleet.cold_start_data import WeightSource, weight_source
from fleet.node_pools import NodePool

MODELS_PATH = "/models"
"""Where the volume of weights appears in a pod."""
HUB = "/hub"
"""Below the weights: laid out like the cache of the Hugging Face hub, ``models--ORG--NAME/snapshots/REVISION``."""

GATEWAY_LABELS: Mapping[str, str] = MappingProxyType(
    {"app.kubernetes.io/component": "gateway", "app.kubernetes.io/part-of": "enginehouse"}
)


@dataclass(frozen=True, slots=True)
class SharedWeights:
    """Weights on a file system that every pod mounts to read: a claim in the namespace."""

    claim: str = "weights"
    path: str = "/weights"
    """Where the bucket of weights appears in the file system; empty = at its root."""
    megabytes_per_second: float | None = None
    """Of the whole file system; ``None`` = not known, and its clients are the limit."""

    @property
    def hub_path(self) -> str:
        """Where engines look for models."""
        return f"{MODELS_PATH}{self.path.rstrip('/')}{HUB}"

    def source(self) -> WeightSource:
        """How fast a start reads from it."""
        found = weight_source("fsx-lustre")
        if self.megabytes_per_second is None:
            return found
        return found.model_copy(update={"aggregate_gigabytes_per_second": self.megabytes_per_second / 1000})


@dataclass(frozen=True, slots=True)
class NodeLocalWeights:
    """No file system: engines stream weights out of the bucket, or find them copied to the disks of their node."""

    config_map: str = "weights"
    """In the namespace: its keys ``bucket`` and ``region`` say where weights are."""
    copy_image: str | None = None
    """An image by digest with the command ``aws``, which copies; ``None`` = none is known, and nothing is copied."""

    @property
    def hub_path(self) -> str:
        """Where engines look for models."""
        return f"{MODELS_PATH}{HUB}"

    def source(self) -> WeightSource:
        """How fast a start reads from it: what object storage gives, over the network."""
        return weight_source("s3")


@dataclass(frozen=True, slots=True)
class RenderGround:
    """A cluster. Everything has a default, so that objects can be looked at before there is one."""

    namespace: str = "inference"
    pools: tuple[NodePool, ...] = ()
    """Empty = not known: nodes are chosen by instance type."""
    weights: SharedWeights | NodeLocalWeights = SharedWeights()
    prometheus_url: str = "http://prometheus-server.monitoring.svc"
    """Where KEDA asks."""
    gateway_namespace: str = "gateway"
    """Whose pods may send requests."""
    gateway_labels: Mapping[str, str] = field(default_factory=lambda: dict(GATEWAY_LABELS))
    """Which pods there are gateways: they alone may hear which prompts engines hold."""
    metrics_namespace: str = "monitoring"
    """Whose pods may read metrics."""
    model_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Model id -> its ``config.json``, before the catalogue's own."""
