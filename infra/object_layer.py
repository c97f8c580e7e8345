"""What the program puts into the cluster: the namespace of engines, charts, the claim of the weights, manifests."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra.autoscaler import Autoscaler, AutoscalerArgs
from infra.charts import Charts, ChartsArgs
from infra.ground_layer import GroundLayer, is_protected
from infra.manifest_layer import ManifestLayer, manifest_layer
from infra.node_layer import NodeLayer
from infra.program_inputs import Inputs
from infra.render_ground import render_ground
from infra.stack_config import LustreWeights, StackConfig
from infra.storage_layer import StorageLayer
from infra.weights_address import WeightsAddress, WeightsAddressArgs
from infra.weights_reader import ServiceAccountName, WeightsReader, WeightsReaderArgs
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
    manifests: ManifestLayer | None
    """``None`` = the environment has none."""


def object_layer(
    base: str,
    config: StackConfig,
    inputs: Inputs,
    below: tuple[GroundLayer, NodeLayer, StorageLayer],
    opts: pulumi.ResourceOptions,
) -> ObjectLayer:
    """Registers all of it, on nodes that are there."""
    ground, nodes, storage = below
    there = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=nodes.add_ons.add_ons))
    namespace = core.Namespace(
        f"{base}-{NAMESPACE}",
        metadata=ObjectMetaArgs(name=NAMESPACE, labels=POD_SECURITY),
        opts=pulumi.ResourceOptions.merge(there, pulumi.ResourceOptions(protect=is_protected(config))),
    )
    charts = Charts(f"{base}-charts", ChartsArgs(config.pools, config.versions), there)
    _autoscaler(base, config, ground, nodes, there)
    in_namespace = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[namespace]))
    volume = _volume(base, config, storage, in_namespace)
    if config.weights.kind == "node-local":
        _reader(base, inputs, ground, storage, opts)
        address = WeightsAddressArgs(storage.bucket.name, config.region, NAMESPACE)
        WeightsAddress(f"{base}-weights-address", address, in_namespace)
    scaled = pulumi.ResourceOptions(depends_on=[namespace, *charts.releases.values()])
    manifests = _manifests(base, config, inputs, pulumi.ResourceOptions.merge(opts, scaled))
    return ObjectLayer(namespace, charts, volume, manifests)


def _autoscaler(
    base: str, config: StackConfig, ground: GroundLayer, nodes: NodeLayer, opts: pulumi.ResourceOptions
) -> None:
    if nodes.scaled:
        scaled = AutoscalerArgs(
            ground.cluster.name, config.cluster.kubernetes, config.region, nodes.scaled, config.versions
        )
        Autoscaler(f"{base}-scaling", scaled, opts)


def _volume(
    base: str, config: StackConfig, storage: StorageLayer, opts: pulumi.ResourceOptions
) -> WeightsVolume | None:
    if storage.lustre is None or not isinstance(config.weights, LustreWeights):
        return None
    args = WeightsVolumeArgs(
        file_system_id=storage.lustre.id,
        dns_name=storage.lustre.dns_name,
        mount_name=storage.lustre.mount_name,
        capacity_gib=config.weights.capacity_gib,
        namespace=NAMESPACE,
    )
    return WeightsVolume(f"{base}-weights", args, opts)


def _reader(
    base: str, inputs: Inputs, ground: GroundLayer, storage: StorageLayer, opts: pulumi.ResourceOptions
) -> None:
    """Pods that fetch weights themselves: one service account for each deployment, of the deployment's name."""
    served = [item for item in inputs.judged.manifests if item.spec.hosted is None]
    if served:
        accounts = [ServiceAccountName(NAMESPACE, item.name) for item in served]
        reader = WeightsReaderArgs(ground.cluster.name, storage.bucket.read_policy.arn, accounts)
        WeightsReader(f"{base}-weights-reader", reader, opts)


def _manifests(base: str, config: StackConfig, inputs: Inputs, opts: pulumi.ResourceOptions) -> ManifestLayer | None:
    if inputs.catalogue is None:
        return None
    ground = render_ground(config, inputs.environment.model_configs)
    return manifest_layer(base, inputs.judged, inputs.catalogue, ground, opts)
