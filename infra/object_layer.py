"""What the program puts into the cluster: the namespace of engines, charts, the claim of the weights."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra.charts import Charts, ChartsArgs
from infra.node_layer import NodeLayer
from infra.stack_config import LustreWeights, StackConfig
from infra.storage_layer import StorageLayer
from infra.weights_volume import WeightsVolume, WeightsVolumeArgs
from workloads.ground import RenderGround

NAMESPACE = RenderGround().namespace
"""Of engines and their manifests."""
POD_SECURITY = {
    "pod-security.kubernetes.io/enforce": "baseline",
    "pod-security.kubernetes.io/warn": "restricted",
}


@dataclass(frozen=True, slots=True)
class ObjectLayer:
    """Objects of the cluster."""

    namespace: core.Namespace
    charts: Charts
    volume: WeightsVolume | None
    """``None`` = there is no file system."""


def object_layer(
    base: str, config: StackConfig, nodes: NodeLayer, storage: StorageLayer, opts: pulumi.ResourceOptions
) -> ObjectLayer:
    """Registers all of it, on nodes that are there."""
    there = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=nodes.add_ons.add_ons))
    namespace = core.Namespace(
        f"{base}-{NAMESPACE}", metadata=ObjectMetaArgs(name=NAMESPACE, labels=POD_SECURITY), opts=there
    )
    charts = Charts(f"{base}-charts", ChartsArgs(config.pools, config.versions), there)
    volume = None
    if storage.lustre is not None and isinstance(config.weights, LustreWeights):
        volume = WeightsVolume(
            f"{base}-weights",
            WeightsVolumeArgs(
                file_system_id=storage.lustre.id,
                dns_name=storage.lustre.dns_name,
                mount_name=storage.lustre.mount_name,
                capacity_gib=config.weights.capacity_gib,
                namespace=NAMESPACE,
            ),
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[namespace])),
        )
    return ObjectLayer(namespace, charts, volume)
