"""What others' charts bring to the cluster: scaling, queues, and who tells it of GPUs and EFA interfaces.

Values are dicts: a chart is its own schema, and the SDK has no class for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.helm import v3

from fleet.cloud.labels import GPU_TAINT_KEY
from fleet.sharing import SharingWay
from infra.gpu_sharing import ANNOUNCER_LABEL, EFA_LABEL, Announcer, announcer, plugin_configs
from infra.stack_config import PoolConfig, Versions
from infra.versions import chart

Values = dict[str, object]
"""What a chart is told."""
TIMEOUT_SECONDS = 600
DRA_DRIVER = "dra-driver-nvidia-gpu"
_ANY_TAINT: tuple[Values, ...] = ({"operator": "Exists"},)
"""Daemons of a node stand there whatever its taints are."""
_GPU_TAINT: tuple[Values, ...] = ({"key": GPU_TAINT_KEY, "operator": "Exists", "effect": "NoSchedule"},)


@dataclass(frozen=True, slots=True)
class ChartsArgs:
    """What the charts have to serve."""

    pools: Sequence[PoolConfig]
    versions: Versions


@dataclass(frozen=True, slots=True)
class Wanted:
    """A chart that the pools need."""

    chart: str
    namespace: str
    values: Values


class Charts(pulumi.ComponentResource):
    """One release for each chart that the pools need; none for what no pool uses."""

    def __init__(self, name: str, args: ChartsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Charts", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.releases: Mapping[str, v3.Release] = {
            item.chart: release(name, item, args.versions, child) for item in wanted(args.pools)
        }
        """By the chart's name; resources of a chart's own kinds depend on its release."""
        self.register_outputs({"charts": sorted(self.releases)})


def release(name: str, item: Wanted, versions: Versions, opts: pulumi.ResourceOptions) -> v3.Release:
    """The release of a chart.

    Raises:
        ValueError: nobody has said its version.
    """
    source = chart(item.chart, versions)
    if source.version is None:
        raise ValueError(f"no version of the chart {item.chart} is known; fill in versions.charts.{item.chart}")
    return v3.Release(
        f"{name}-{item.chart}",
        name=item.chart,
        chart=source.chart,
        version=source.version,
        repository_opts=v3.RepositoryOptsArgs(repo=source.repository) if source.repository else None,
        namespace=item.namespace,
        create_namespace=item.namespace != "kube-system",
        values=item.values,
        atomic=True,
        timeout=TIMEOUT_SECONDS,
        opts=opts,
    )


def wanted(pools: Sequence[PoolConfig]) -> tuple[Wanted, ...]:
    """The charts that the pools need."""
    return tuple(item for make in _MAKERS if (item := make(pools)) is not None)


def _keda(_: Sequence[PoolConfig]) -> Wanted:
    """Two of each, so that scaling goes on when a node does not."""
    two: Values = {"replicaCount": 2}
    return Wanted("keda", "keda", {"operator": two, "metricsServer": two, "webhooks": two})


def _kueue(_: Sequence[PoolConfig]) -> Wanted:
    """While no replica of Kueue answers, no Deployment and no pod can be made: its webhooks fail closed."""
    return Wanted("kueue", "kueue-system", {"controllerManager": {"replicas": 2}})


def _device_plugin(pools: Sequence[PoolConfig]) -> Wanted | None:
    if not _announced(pools, Announcer.CHART):
        return None
    values: Values = {
        "nodeSelector": {ANNOUNCER_LABEL: Announcer.CHART.value},
        "tolerations": list(_ANY_TAINT),
        "config": {"map": dict(plugin_configs(pools)), "default": "exclusive"},
    }
    return Wanted("nvidia-device-plugin", "nvidia-device-plugin", values)


def _efa_plugin(pools: Sequence[PoolConfig]) -> Wanted | None:
    """The chart's own list of instance types ends where the chart was written, so it gets the pools'."""
    types = sorted({pool.instance_type for pool in pools if pool.efa})
    if not types:
        return None
    values: Values = {
        "nodeSelector": {EFA_LABEL: "true"},
        "tolerations": list(_ANY_TAINT),
        "supportedInstanceLabels": {"keys": ["node.kubernetes.io/instance-type"], "values": types},
    }
    return Wanted("aws-efa-k8s-device-plugin", "kube-system", values)


def _gpu_operator(pools: Sequence[PoolConfig]) -> Wanted | None:
    """For nodes cut by MIG alone: its manager cuts, then restarts its own plugin; driver and toolkit are the AMI's."""
    if not _announced(pools, Announcer.OPERATOR):
        return None
    off, on = ({"enabled": False}, {"enabled": True})
    discovery: Values = {
        "nodeSelector": {ANNOUNCER_LABEL: Announcer.OPERATOR.value},
        "tolerations": list(_GPU_TAINT),
    }
    values: Values = {
        "driver": off,
        "toolkit": off,
        "devicePlugin": on,
        "gfd": on,
        "dcgm": off,
        "dcgmExporter": off,
        "nodeStatusExporter": off,
        "mig": {"strategy": "mixed"},
        # In a virtual machine A100 takes MIG mode at a reboot (NVIDIA GPU operator guide, MIG).
        "migManager": {**on, "env": [{"name": "WITH_REBOOT", "value": "true"}]},
        "daemonsets": {"tolerations": list(_GPU_TAINT)},
        "nfd": on,
        "node-feature-discovery": {"worker": discovery},
    }
    return Wanted("gpu-operator", "gpu-operator", values)


def _dra_driver(pools: Sequence[PoolConfig]) -> Wanted | None:
    found = _announced(pools, Announcer.DRA)
    if not found:
        return None
    values: Values = {
        "nvidiaDriverRoot": "/",
        "gpuResourcesEnabledOverride": True,  # nodes with this driver have no device plugin beside it
        "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}},
        "kubeletPlugin": {
            "nodeSelector": {ANNOUNCER_LABEL: Announcer.DRA.value},
            "tolerations": list(_ANY_TAINT),
        },
    }
    if any(pool.sharing is SharingWay.DYNAMIC_SLICES for pool in found):
        values["featureGates"] = {"DynamicMIG": True}
    return Wanted(DRA_DRIVER, DRA_DRIVER, values)


def _announced(pools: Sequence[PoolConfig], by: Announcer) -> list[PoolConfig]:
    return [pool for pool in pools if announcer(pool) is by]


_MAKERS: tuple[Callable[[Sequence[PoolConfig]], Wanted | None], ...] = (
    _keda,
    _kueue,
    _device_plugin,
    _efa_plugin,
    _gpu_operator,
    _dra_driver,
)
