"""What is wrong with one pool of a stack: its zones, numbers, purchase, EFA, sharing."""

import re
from collections.abc import Iterator
from datetime import date

from fleet.cloud.interfaces import efa_layout, interface_findings
from fleet.cloud.node_groups import Scaling, label_findings, scaling_findings
from fleet.cloud.node_images import preload_findings
from fleet.cloud.node_sharing import (
    MIG_IMAGE,
    NodeSharing,
    dynamic_findings,
    mig_findings,
    mig_image_findings,
    share_findings,
)
from fleet.cloud.purchase import (
    Buying,
    placement_findings,
    sold_findings,
    strategy_findings,
    target_findings,
)
from infra.autoscaling import ACCELERATOR_LABEL
from infra.finding_words import REMEDIES
from infra.gpu_pool import AMI_TYPES
from infra.gpu_sharing import OWN_LABELS
from infra.node_group_names import name_problems
from infra.problem import Problem, of_findings
from infra.stack_config import PoolConfig, StackConfig
from infra.version_checks import compared_version, release_problems
from infra.versions import DRA_FROM, numbers

DRIVER_FORM = re.compile(r"\d+(\.\d+){0,3}")
UNFILLED_DAY = date(1970, 1, 1)
"""A placeholder, which is told of with the others."""


def pool_problems(pool: PoolConfig, config: StackConfig, *, today: date) -> Iterator[Problem]:
    """Everything at once."""
    key = f"pools.{pool.name}"
    yield from _zones(key, pool, config)
    yield from _numbers(key, pool)
    yield from _purchase(key, pool, config, today)
    yield from _efa(key, pool, config)
    yield from _sharing(key, pool, config)
    yield from _image(key, pool, config)
    yield from name_problems(pool, config)
    for name, value in pool.labels.items():
        yield from of_findings(f"{key}.labels.{name}", value, label_findings({name: value}))
        if name in OWN_LABELS or name == ACCELERATOR_LABEL:
            message = f"the label {name}: {value} is one that the program sets itself"
            yield Problem(f"{key}.labels.{name}", value, message, "leave it out, or call yours otherwise")


def foreign_zones(config: StackConfig) -> list[str]:
    """The zones of the network that are none of the stack's region."""
    return sorted({zone for zone in config.network.zones if not zone.startswith(config.region)})


def places(pool: PoolConfig, config: StackConfig) -> tuple[str, ...]:
    """Where its nodes may stand, whether there are subnets or not."""
    return pool.zones or ((pool.zone,) if pool.zone else config.network.zones)


def says_two_things(pool: PoolConfig) -> bool:
    """Whether one zone is named and others beside it: nobody knows then where its nodes stand."""
    return bool(pool.zone and pool.zones) and pool.zones != (pool.zone,)


def _zones(key: str, pool: PoolConfig, config: StackConfig) -> Iterator[Problem]:
    if says_two_things(pool):
        message = f"zone {pool.zone} and zones {', '.join(pool.zones)} say different things"
        yield Problem(f"{key}.zones", ", ".join(pool.zones), message, "give one of the two")
    known = config.network.zones
    if foreign_zones(config):  # they are wrong themselves, which is told once
        return
    for zone in places(pool, config):
        if zone not in known and zone in (*pool.zones, pool.zone):
            yield Problem(
                f"{key}.{'zones' if pool.zones else 'zone'}",
                zone,
                f"no subnet stands in {zone}",
                f"take one of {', '.join(known)}",
            )


def _numbers(key: str, pool: PoolConfig) -> Iterator[Problem]:
    if not pool.max_nodes:
        found = "" if pool.max_nodes is None else "0"
        yield Problem(f"{key}.max_nodes", found, "a node group needs a limit", "give 1 or more")
        return
    desired = pool.desired_nodes or pool.min_nodes  # 0 = as few as allowed
    if list(scaling_findings(Scaling(pool.min_nodes, desired, pool.max_nodes))):
        yield _order(key, pool, pool.max_nodes)


def _order(key: str, pool: PoolConfig, most: int) -> Problem:
    """The number that is to blame, and what it may be."""
    if pool.min_nodes > most:
        message = f"min_nodes {pool.min_nodes} is above max_nodes {most}"
        return Problem(f"{key}.min_nodes", str(pool.min_nodes), message, f"take {most} or fewer, or a larger max_nodes")
    between = f"take {pool.min_nodes} to {most}"
    side = f"above max_nodes {most}" if pool.desired_nodes > most else f"below min_nodes {pool.min_nodes}"
    message = f"desired_nodes {pool.desired_nodes} is {side}"
    return Problem(f"{key}.desired_nodes", str(pool.desired_nodes), message, between)


def _purchase(key: str, pool: PoolConfig, config: StackConfig, today: date) -> Iterator[Problem]:
    buying = Buying.of(pool.purchase, pool.reservation_id)
    yield from of_findings(f"{key}.purchase", pool.purchase, sold_findings(pool.instance, buying))
    yield from of_findings(f"{key}.reservation_id", pool.reservation_id or "", target_findings(buying))
    zones = places(pool, config)
    if (pool.reservation_id or pool.purchase == "capacity-block") and len(zones) != 1:
        message = f"a reservation stands in one zone, and the pool may stand in {', '.join(zones)}"
        yield Problem(f"{key}.zone", ", ".join(zones), message, "give the zone of the reservation")
    if pool.has_ended(today) and pool.ends_on != UNFILLED_DAY:
        message = f"the capacity block ended on {pool.ends_on}"
        yield Problem(
            f"{key}.ends_on", str(pool.ends_on), message, "buy another and give its reservation, or drop the pool"
        )
    strategy = "cluster" if pool.placement_group else None
    found = placement_findings(strategy, zones=zones[:1], reservation_id=pool.reservation_id)
    yield from of_findings(f"{key}.placement_group", "true", found)
    if pool.placement_group:
        yield from of_findings(f"{key}.placement_group", "true", strategy_findings(pool.instance, "cluster"))
    if pool.placement_group and not pool.efa:
        message = "a placement group is for nodes that talk over EFA, and the pool has none"
        yield Problem(f"{key}.placement_group", "true", message, "leave it out, or set efa: true")


def _efa(key: str, pool: PoolConfig, config: StackConfig) -> Iterator[Problem]:
    if not pool.efa:
        return
    if not pool.instance.supports_efa:
        message = f"{pool.instance_type} has no EFA"
        yield Problem(f"{key}.efa", "true", message, "leave efa out, or take an instance with EFA")
        return
    if pool.max_nodes == 1 and not (config.weights.kind == "lustre" and config.weights.efa):
        message = "one node with EFA has no other to talk to"
        yield Problem(f"{key}.efa", "true", message, "leave efa out, or set max_nodes to 2 or more")
    layout = efa_layout(pool.instance)
    yield from of_findings(f"{key}.efa", "true", interface_findings(pool.instance, layout, wants_efa=True))


def _sharing(key: str, pool: PoolConfig, config: StackConfig) -> Iterator[Problem]:
    sharing = NodeSharing(pool.sharing, pool.mig_profile, pool.time_slices, uses_dra=pool.allocation == "dra")
    yield from of_findings(f"{key}.time_slices", pool.time_slices or "", share_findings(sharing))
    yield from of_findings(f"{key}.mig_profile", pool.mig_profile or "", mig_findings(pool.gpu, sharing))
    if not sharing.uses_dra:
        family = pool.image.family
        if list(mig_image_findings(pool.sharing, AMI_TYPES[family])):
            message = f"sharing '{pool.sharing.value}' on nodes with the image {family}"
            yield Problem(f"{key}.image.family", family, message, REMEDIES[MIG_IMAGE.id])
    kubernetes = config.cluster.kubernetes
    dynamic = list(dynamic_findings(sharing, kubernetes))
    yield from of_findings(f"{key}.allocation", pool.allocation, dynamic)
    if not dynamic and pool.allocation == "dra" and numbers(kubernetes) < DRA_FROM:
        wanted = ".".join(map(str, DRA_FROM))
        message = f"dynamic resource allocation needs Kubernetes {wanted}, and the cluster has {kubernetes}"
        yield Problem(f"{key}.allocation", "dra", message, f"set cluster.kubernetes to {wanted}, or take device-plugin")


def _image(key: str, pool: PoolConfig, config: StackConfig) -> Iterator[Problem]:
    image = pool.image
    yield from release_problems(f"{key}.image.release", image.release, image.family, compared_version(config))
    if image.driver is not None and not DRIVER_FORM.fullmatch(image.driver):
        remedy = "write the driver's version, such as 580.95.05, or leave it out while nobody knows it"
        yield Problem(f"{key}.image.driver", image.driver, f"'{image.driver}' is no version of a driver", remedy)
    snapshot = pool.preload.data_volume_snapshot
    found = preload_findings(pool.image.family, snapshot)
    yield from of_findings(f"{key}.preload.data_volume_snapshot", snapshot or "", found)
