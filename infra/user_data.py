"""What a GPU node does when it starts: local disks as one, huge pages for EFA, fast image pulls, shared GPUs.

AL2023 takes a MIME document with a ``NodeConfig``, Bottlerocket its settings as TOML; EKS adds how to join the cluster.
"""

from base64 import b64encode
from collections.abc import Iterator

from fleet.node_pools import NodePool
from fleet.sharing import SharingWay
from infra.stack_config import PoolConfig

EFA_HUGE_PAGES = 5128
"""Of 2 MiB, so that pods find the 5120 MiB which the EKS guide lets them ask for and EFA its own."""
PULL_MIB_PER_SECOND = 600
"""Below this throughput of the volume parallel pulls are said to make starts slower.

Second-hand: Convox (docs.convox.com, fast_image_pull_enable) reports it of AWS, whose own page was not found; nodeadm's
source says no more of the gate than that it takes processors, memory and disk throughput while it pulls.
"""
_BOUNDARY = "==ENGINEHOUSE=="
_NODE_DIRECTORIES = ("/var/lib/kubelet", "/var/log/pods")
_IMAGE_DIRECTORIES = ("/var/lib/containerd", "/var/lib/soci-snapshotter")


def user_data(pool: PoolConfig) -> str | None:
    """The pool's user data as text; ``None`` where a node needs none."""
    return _bottlerocket(pool) if pool.image.family == "bottlerocket" else _al2023(pool)


def encoded(text: str) -> str:
    """User data as a launch template takes it."""
    return b64encode(text.encode()).decode()


def pulls_in_parallel(pool: PoolConfig) -> bool:
    """Whether layers are unpacked in parallel; another snapshotter would not see the images of a snapshot."""
    return pool.preload.parallel_pull and pool.preload.data_volume_snapshot is None


def _al2023(pool: PoolConfig) -> str | None:
    parts = [part for part in (_script(pool), _node_config(pool)) if part is not None]
    if not parts:
        return None
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n'
    body = "".join(f"\n--{_BOUNDARY}\nContent-Type: {kind}\n\n{text}" for kind, text in parts)
    return f"{head}{body}\n--{_BOUNDARY}--\n"


def _script(pool: PoolConfig) -> tuple[str, str] | None:
    """Huge pages before the kubelet starts, which counts them once."""
    if not pool.efa:
        return None
    path = "/etc/sysctl.d/90-efa-huge-pages.conf"
    lines = ("#!/bin/bash", "set -euo pipefail", f"echo 'vm.nr_hugepages = {EFA_HUGE_PAGES}' > {path}")
    return 'text/x-shellscript; charset="us-ascii"', "\n".join((*lines, f"sysctl --load={path}", ""))


def _node_config(pool: PoolConfig) -> tuple[str, str] | None:
    spec: list[str] = []
    if pool.instance.local_storage is not None:
        spec += ["  instance:", "    localStorage:", "      strategy: RAID0"]
    if pulls_in_parallel(pool):
        spec += ["  featureGates:", "    FastImagePull: true"]
    if not spec:
        return None
    lines = ("apiVersion: node.eks.aws/v1alpha1", "kind: NodeConfig", "spec:", *spec, "")
    return "application/node.eks.aws", "\n".join(lines)


def _bottlerocket(pool: PoolConfig) -> str | None:
    sections = [*_disks(pool), *_pulls(pool), *_plugin(pool)]
    if pool.efa:
        sections.append(f'[settings.kernel.sysctl]\n"vm.nr_hugepages" = "{EFA_HUGE_PAGES}"\n')
    return "\n".join(sections) or None


def _disks(pool: PoolConfig) -> Iterator[str]:
    if pool.instance.local_storage is None:
        return
    # Mounted over the data volume, the local disks would hide the images that its snapshot brings.
    images = () if pool.preload.data_volume_snapshot else _IMAGE_DIRECTORIES[: 2 if pulls_in_parallel(pool) else 1]
    named = ", ".join(f'"{path}"' for path in (*images, *_NODE_DIRECTORIES))
    yield (
        "[settings.bootstrap-commands.local-disks]\n"
        f'commands = [["apiclient", "ephemeral-storage", "init"], '
        f'["apiclient", "ephemeral-storage", "bind", "--dirs", {named}]]\n'
        "essential = true\n"
        'mode = "always"\n'
    )


def _pulls(pool: PoolConfig) -> Iterator[str]:
    if pulls_in_parallel(pool):
        yield '[settings.container-runtime]\nsnapshotter = "soci"\n'
        yield '[settings.container-runtime-plugins.soci-snapshotter]\npull-mode = "parallel-pull-unpack"\n'


def _plugin(pool: PoolConfig) -> Iterator[str]:
    """How Bottlerocket's own device plugin shares GPUs; with resource claims it keeps out of the way."""
    section = "settings.kubelet-device-plugins.nvidia"
    if pool.allocation == "dra":
        yield f"[{section}]\nenabled = false\n"
    elif pool.sharing in (SharingWay.TIME_SLICING, SharingWay.MPS):
        way = pool.sharing.value
        yield f'[{section}]\ndevice-sharing-strategy = "{way}"\n'
        fails = "fail-requests-greater-than-one = true\n" if pool.sharing is SharingWay.TIME_SLICING else ""
        yield f"[{section}.{way}]\nreplicas = {shares(pool)}\nrename-by-default = true\n{fails}"


def shares(pool: PoolConfig) -> int:
    """Pods per GPU of a pool that shares by time or MPS.

    Raises:
        ValueError: the pool does not say it.
    """
    if pool.time_slices is None:
        raise ValueError(f"pool {pool.name}: sharing '{_way(pool)}' needs time_slices, the pods per GPU")
    return pool.time_slices


def _way(pool: NodePool) -> str:
    return pool.sharing.value
