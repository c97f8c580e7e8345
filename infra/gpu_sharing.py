"""How the nodes of a pool let pods share GPUs: labels that choose who announces them, and its configurations.

AL2023 nodes get the device plugin of its chart; nodes cut by MIG get the GPU operator's MIG manager and plugin; nodes
with dynamic resource allocation get NVIDIA's DRA driver; Bottlerocket nodes have a plugin of their own (`user_data`).
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from fleet.cloud.labels import GPU_RESOURCE, POOL_LABEL, PREFIX
from fleet.sharing import SharingWay
from infra.stack_config import PoolConfig
from infra.user_data import shares

ANNOUNCER_LABEL = f"{PREFIX}/gpu-announcer"
"""On nodes: who tells the cluster of their GPUs; the charts choose their nodes by it."""
GPU_LABEL = f"{PREFIX}/gpu"
PURCHASE_LABEL = f"{PREFIX}/purchase"
EFA_LABEL = "vpc.amazonaws.com/efa.present"
_PRESENT = "nvidia.com/gpu.present"
"""The charts' own condition for a node with a GPU, where nothing discovers it."""
_NO_OPERANDS = "nvidia.com/gpu.deploy.operands"
_PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
_MIG_CONFIG = "nvidia.com/mig.config"
_MPS_CAPABLE = "nvidia.com/mps.capable"
OWN_LABELS = frozenset(
    {
        POOL_LABEL, ANNOUNCER_LABEL, GPU_LABEL, PURCHASE_LABEL, EFA_LABEL, _PRESENT, _NO_OPERANDS, _PLUGIN_CONFIG,
        _MIG_CONFIG, _MPS_CAPABLE,
    }
)  # fmt: skip
"""What the program says of nodes itself: a pool's own value for it would be lost, or send pods to the wrong nodes."""
_DEFAULT_CONFIG = "exclusive"


class Announcer(StrEnum):
    """Who tells the cluster of a node's GPUs."""

    CHART = "device-plugin"
    OPERATOR = "gpu-operator"
    DRA = "dra-driver"
    IMAGE = "bottlerocket"


def announcer(pool: PoolConfig) -> Announcer:
    """Who tells the cluster of the pool's GPUs."""
    if pool.allocation == "dra":
        return Announcer.DRA
    if pool.image.family == "bottlerocket":
        return Announcer.IMAGE
    return Announcer.OPERATOR if pool.sharing is SharingWay.MIG else Announcer.CHART


def node_labels(pool: PoolConfig) -> dict[str, str]:
    """The labels of the pool's nodes; the pool's own come first and never win over those of the fleet."""
    gpu = re.sub(r"[^A-Za-z0-9._-]+", "-", pool.instance.gpu)
    labels = dict(pool.labels) | {POOL_LABEL: pool.name, GPU_LABEL: gpu, PURCHASE_LABEL: pool.purchase}
    labels |= {ANNOUNCER_LABEL: announcer(pool).value, _PRESENT: "true"}
    if announcer(pool) is not Announcer.OPERATOR:
        labels[_NO_OPERANDS] = "false"
    if announcer(pool) is Announcer.CHART:
        labels[_PLUGIN_CONFIG] = config_name(pool)
    if pool.sharing is SharingWay.MIG and pool.mig_profile is not None:
        labels[_MIG_CONFIG] = f"all-{pool.mig_profile.replace('+', '.')}"
    if announcer(pool) is Announcer.CHART and pool.sharing is SharingWay.MPS:
        labels[_MPS_CAPABLE] = "true"
    if pool.efa:
        labels[EFA_LABEL] = "true"
    return labels


def config_name(pool: PoolConfig) -> str:
    """The device plugin's configuration for the pool."""
    if pool.sharing in (SharingWay.TIME_SLICING, SharingWay.MPS):
        return f"{pool.sharing.value}-{shares(pool)}"
    return _DEFAULT_CONFIG


def plugin_configs(pools: Iterable[PoolConfig]) -> Mapping[str, str]:
    """Name -> text of every configuration that the chart's pools need; the exclusive one is always there."""
    found = {_DEFAULT_CONFIG: _HEAD}
    for pool in pools:
        if announcer(pool) is Announcer.CHART and config_name(pool) != _DEFAULT_CONFIG:
            found[config_name(pool)] = f"{_HEAD}{_shared(pool)}"
    return dict(sorted(found.items()))


_HEAD = "version: v1\nflags:\n  migStrategy: none\n"


def _shared(pool: PoolConfig) -> str:
    is_time = pool.sharing is SharingWay.TIME_SLICING
    lines = ["sharing:", f"  {'timeSlicing' if is_time else 'mps'}:", "    renameByDefault: true"]
    if is_time:  # two slices are no more than one, so whoever asks for two is mistaken
        lines.append("    failRequestsGreaterThanOne: true")
    lines += ["    resources:", f"      - name: {GPU_RESOURCE}", f"        replicas: {shares(pool)}"]
    return "\n".join(lines) + "\n"
