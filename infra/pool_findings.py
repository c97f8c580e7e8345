"""What the rules of the cloud find in a pool's configuration, before anything is registered."""

from collections.abc import Iterator, Mapping, Sequence

from fleet.cloud import node_groups, node_images, node_sharing, purchase
from fleet.cloud.finding import Finding
from fleet.cloud.interfaces import EFA_SUPPORT
from fleet.cloud.node_sharing import NodeSharing
from fleet.cloud.purchase import Buying
from infra.gpu_pool import AMI_TYPES
from infra.stack_config import PoolConfig


def pool_findings(
    pool: PoolConfig, *, kubernetes: str, zones: Sequence[str], reservation_zones: Mapping[str, str]
) -> Iterator[Finding]:
    """What is wrong with a pool on a cluster of that version, with nodes in these zones.

    ``reservation_zones``: reservation -> its zone, as far as it is known; an unknown one is not judged here.
    """
    yield from _purchase(pool, zones, reservation_zones)
    yield from _image(pool)
    yield from _sharing(pool, kubernetes)
    yield from node_groups.label_findings(pool.labels)
    if pool.efa and not pool.instance.supports_efa:
        yield Finding(EFA_SUPPORT, f"efa is on, and {pool.instance_type} has none")


def _purchase(pool: PoolConfig, zones: Sequence[str], reservation_zones: Mapping[str, str]) -> Iterator[Finding]:
    buying = Buying.of(pool.purchase, pool.reservation_id)
    yield from purchase.target_findings(buying)
    yield from purchase.sold_findings(pool.instance, buying)
    where = reservation_zones.get(pool.reservation_id or "")
    if where is not None:
        yield from purchase.reservation_zone_findings(where, zones)
    if pool.placement_group:  # with EFA each zone gets a group of its own
        together = zones[:1] if pool.efa else zones
        yield from purchase.placement_findings("cluster", zones=together, reservation_id=pool.reservation_id)
        yield from purchase.strategy_findings(pool.instance, "cluster")


def _image(pool: PoolConfig) -> Iterator[Finding]:
    yield from node_images.release_findings(pool.image.release, has_image=False)
    yield from node_images.preload_findings(pool.image.family, pool.preload.data_volume_snapshot)


def _sharing(pool: PoolConfig, kubernetes: str) -> Iterator[Finding]:
    sharing = NodeSharing(pool.sharing, pool.mig_profile, pool.time_slices, uses_dra=pool.allocation == "dra")
    yield from node_sharing.mig_findings(pool.gpu, sharing)
    yield from node_sharing.share_findings(sharing)
    yield from node_sharing.dynamic_findings(sharing, kubernetes)
    if not sharing.uses_dra:
        yield from node_sharing.mig_image_findings(pool.sharing, AMI_TYPES[pool.image.family])
