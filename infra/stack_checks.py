"""Everything that can be known to be wrong with a stack before anything is registered, all of it at once.

Types and single values are `StackConfig`'s own business; here stands what takes several of them, or the environment's
folder. Rules about the cloud are `fleet.cloud`'s and are asked there.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from ipaddress import IPv4Network

from fleet.cloud.interfaces import efa_layout
from fleet.cloud.network import (
    ZONE_LETTERS,
    Endpoint,
    NodeDemand,
    address_interfaces,
    endpoint_findings,
    gpu_node_pods,
    subnet_findings,
    subnet_plan,
)
from fleet.cloud.node_types import is_arm
from fleet.hardware import instance_types
from fleet.nearest import did_you_mean
from fleet.node_pools import NodePool
from fleet.sharing import SharingWay
from infra.finding_words import LUSTRE_KEYS
from infra.lustre_wish import wish_findings
from infra.name_checks import regions, stack_name_problems
from infra.pool_checks import foreign_zones, places, pool_problems, says_two_things
from infra.problem import Problem, of_findings, of_repeated
from infra.pull_through import SECRET_PREFIX
from infra.stack_config import LustreWeights, PoolConfig, StackConfig
from infra.unfilled import unfilled_problems
from infra.version_checks import compared_version, release_problems, version_problems

INSTANCE_FORM = re.compile(r"[a-z][a-z0-9-]*\d[a-z0-9-]*\.(nano|micro|small|medium|\d*x?large|metal(-\d+xl)?)")
LARGEST_VPC = 16
"""Its length as a prefix (VPC user guide, VPC sizing)."""
LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""For how long CloudWatch can keep logs (API, PutRetentionPolicy); 0 = for ever."""


def problems(
    config: StackConfig, *, today: date, pools: Sequence[NodePool] = (), others: Collection[str] = ()
) -> list[Problem]:
    """What is wrong with a stack.

    ``pools`` = those of the environment's ``pools.yaml``, empty where it has none; ``others`` = the project's other
    environments.
    """
    found = [
        *unfilled_problems(config),
        *stack_name_problems(config, others),
        *_zones(config),
        *_network(config),
        *_cluster(config),
        *_system_nodes(config),
        *version_problems(config),
        *_secrets(config),
        *_weights(config),
    ]
    for pool in config.pools:
        found += pool_problems(pool, config, today=today)
    found += _folder_pools(config, pools)
    return found


def _zones(config: StackConfig) -> Iterator[Problem]:
    zones = config.network.zones
    foreign = foreign_zones(config)
    if foreign and config.region in regions():  # a region that is none is told of itself
        message = f"{', '.join(foreign)} are not of the region {config.region}"
        remedy = f"take zones such as {config.region}a, or change region"
        yield Problem("network.zones", ", ".join(zones), message, remedy)
    if config.weights.kind == "lustre" and config.weights.zone not in zones and not foreign:
        message = f"no subnet stands in {config.weights.zone}"
        yield Problem("weights.zone", config.weights.zone, message, f"take one of {', '.join(zones)}")
    for zone in zones:
        if zone[-1] not in ZONE_LETTERS and zone not in foreign:
            remedy = f"take one that ends in a letter from {ZONE_LETTERS[0]} to {ZONE_LETTERS[-1]}"
            yield Problem("network.zones", zone, f"{zone} has no place in the network", remedy)
    yield from of_repeated("network.zones", zones, "name two zones at least, each once")


def _network(config: StackConfig) -> Iterator[Problem]:
    cidr = config.network.cidr
    if cidr.prefixlen < LARGEST_VPC:
        remedy = f"take /{LARGEST_VPC} or smaller"
        yield Problem("network.cidr", str(cidr), f"{cidr} is larger than a VPC can be", remedy)
        return
    if cidr.is_loopback or cidr.is_link_local or cidr.is_multicast or cidr.is_reserved or cidr.is_unspecified:
        message = f"{cidr} are addresses of no network"
        yield Problem("network.cidr", str(cidr), message, "take private ones, such as 10.40.0.0/16")
        return
    crowded = _crowded(config, cidr)
    if crowded:
        yield Problem("network.cidr", str(cidr), crowded, _size_that_fits(config, cidr))
    yield from _log_days("network.flow_log_days", config.network.flow_log_days)


def _crowded(config: StackConfig, cidr: IPv4Network) -> str:
    """What finds no place in a network; empty = everything does."""
    try:
        plans = subnet_plan(cidr, [zone for zone in config.network.zones if zone[-1] in ZONE_LETTERS])
    except ValueError as error:
        return str(error).partition("; ")[0]
    found = (
        finding.message
        for plan in plans
        for finding in subnet_findings(plan.private, list(_demands(config, plan.zone)), prefix_delegation=True)
    )
    return next(found, "")  # the other subnets are as small; one message is enough


def _size_that_fits(config: StackConfig, cidr: IPv4Network) -> str:
    """What to write: the smallest network around this one in which everything finds its place."""
    for length in range(cidr.prefixlen - 1, LARGEST_VPC - 1, -1):
        if not _crowded(config, cidr.supernet(new_prefix=length)):
            return f"take /{length} or larger" if length > LARGEST_VPC else f"take /{length}"
    return f"no network is large enough: take /{LARGEST_VPC}, and a smaller max_nodes"


def _demands(config: StackConfig, zone: str) -> Iterator[NodeDemand]:
    """All nodes of a pool may come to stand in one zone: where the others have none to give."""
    yield NodeDemand("system", config.system_nodes.max_nodes)
    for pool in config.pools:
        if zone in places(pool, config):
            interfaces = address_interfaces(efa_layout(pool.instance)) if pool.efa else 1
            pods = gpu_node_pods(pool.instance.gpus, shares_per_gpu=_shares(pool))
            yield NodeDemand(pool.name, pool.max_nodes or 0, interfaces, pods)


def _shares(pool: PoolConfig) -> int:
    """Into how many parts a GPU is cut at most."""
    slices = [profile.per_gpu for profile in pool.gpu.mig_profiles if pool.mig_profile in (None, profile.name)]
    if pool.sharing in (SharingWay.MIG, SharingWay.DYNAMIC_SLICES):
        return max(slices, default=1)
    return pool.time_slices or 1


def _cluster(config: StackConfig) -> Iterator[Problem]:
    cluster = config.cluster
    cidrs = tuple(str(cidr) for cidr in cluster.public_cidrs)
    if cluster.endpoint == "private" and cidrs:
        message = "networks are named that reach a public endpoint, and the endpoint is private"
        yield Problem(
            "cluster.public_cidrs", ", ".join(cidrs), message, "leave public_cidrs out, or set endpoint: public"
        )
    endpoint = Endpoint(is_public=cluster.endpoint == "public", is_private=True, public_cidrs=cidrs)
    yield from of_findings("cluster.public_cidrs", ", ".join(cidrs), endpoint_findings(endpoint))
    yield from of_repeated("cluster.admins", cluster.admins, "name each role once")
    for index, admin in enumerate(cluster.admins):
        if ":role/" not in admin:
            remedy = "name a role that people and the runner take on, such as arn:aws:iam::<account>:role/platform"
            yield Problem(f"cluster.admins[{index}]", admin, f"{admin} is no role", remedy)
    yield from _log_days("cluster.log_days", cluster.log_days)


def _log_days(key: str, days: int) -> Iterator[Problem]:
    if days and days not in LOG_DAYS:
        longer = next((item for item in LOG_DAYS if item > days), LOG_DAYS[-1])
        yield Problem(key, str(days), f"logs can't be kept for {days} days", f"take {longer}, or 0 for ever")


def _system_nodes(config: StackConfig) -> Iterator[Problem]:
    nodes = config.system_nodes
    if nodes.min_nodes > nodes.max_nodes:
        message = f"min_nodes {nodes.min_nodes} is above max_nodes {nodes.max_nodes}"
        yield Problem("system_nodes.max_nodes", str(nodes.max_nodes), message, f"take {nodes.min_nodes} or more")
    if len({is_arm(name) for name in nodes.instance_types}) > 1:
        names = ", ".join(nodes.instance_types)
        message = f"{names} have processors of two architectures, and a node group has one image"
        yield Problem("system_nodes.instance_types", names, message, "take types of one architecture")
    yield from of_repeated("system_nodes.instance_types", nodes.instance_types, "name each type once")
    for index, name in enumerate(nodes.instance_types):
        yield from _system_type(f"system_nodes.instance_types[{index}]", name)
    yield from release_problems("system_nodes.release", nodes.release, "al2023", compared_version(config))


def _system_type(key: str, name: str) -> Iterator[Problem]:
    """There is no table of types without GPUs, so a misspelt one is told by its form alone."""
    if name in instance_types():
        yield Problem(key, name, f"{name} has GPUs, and system nodes run no engine", "take one such as m7i.xlarge")
    elif not INSTANCE_FORM.fullmatch(name):
        remedy = "write a family and a size, such as m7i.xlarge"
        yield Problem(key, name, f"'{name}' is no instance type", remedy)


def _secrets(config: StackConfig) -> Iterator[Problem]:
    """ECR reads a secret of its own account and region alone."""
    for registry, arn in config.pull_through_secrets.items():
        key = f"pull_through_secrets.{registry}"
        here = f"arn:aws:secretsmanager:{config.region}:{config.account}:secret:{SECRET_PREFIX}"
        _, _, service, region, account, rest = arn.split(":", 5)
        if (service, region, account) != ("secretsmanager", config.region, config.account):
            message = "it is no secret of this account and region, and ECR takes no other"
            yield Problem(key, arn, message, f"give an ARN that begins with {here}")
        elif not rest.startswith(f"secret:{SECRET_PREFIX}"):
            message = f"the name of the secret does not begin with {SECRET_PREFIX}, and ECR takes no other"
            yield Problem(key, arn, message, f"give an ARN that begins with {here}")


def _weights(config: StackConfig) -> Iterator[Problem]:
    weights = config.weights
    if weights.kind != "lustre":
        return
    for finding in wish_findings(weights):
        name = LUSTRE_KEYS.get(finding.rule.id, "kind")
        yield from of_findings(f"weights.{name}", getattr(weights, name), [finding])
    if weights.efa:
        yield from _lustre_efa(weights, config)


def _lustre_efa(weights: LustreWeights, config: StackConfig) -> Iterator[Problem]:
    """EFA does not leave a zone, and a file system alone has nobody to talk to."""
    pools = [pool for pool in config.pools if pool.efa]
    if not pools:
        message = "the file system is reached over EFA, and no pool has EFA"
        yield Problem("weights.efa", "true", message, "leave it out, or set efa to true for a pool")
        return
    known = config.network.zones
    zones = dict.fromkeys(zone for pool in pools for zone in places(pool, config) if zone in known)
    is_clear = not any(says_two_things(pool) for pool in pools)
    if is_clear and zones and weights.zone not in zones and weights.zone in known:
        message = f"the file system stands in {weights.zone}, and the pools with EFA in {', '.join(zones)}"
        yield Problem("weights.zone", weights.zone, message, f"take {' or '.join(zones)}, or leave weights.efa out")


def _folder_pools(config: StackConfig, pools: Sequence[NodePool]) -> Iterator[Problem]:
    """Workloads are placed by the folder's pools, so what it says of them has to be what is built."""
    if not pools:
        return
    file = f"environments/{config.environment}/pools.yaml"
    built = {pool.name: pool for pool in config.pools}
    for pool in pools:
        if pool.name not in built:
            message = f"{file} has the pool {pool.name}, which the stack does not build"
            hint = did_you_mean(pool.name, built).removeprefix("; ") or f"add it here, or take it out of {file}"
            yield Problem("pools", "", message, hint)
            continue
        yield from _differences(built[pool.name], pool, file)
    for name in built.keys() - {pool.name for pool in pools}:
        message = f"{file} lacks the pool {name}, so no workload would be placed on it"
        yield Problem(f"pools.{name}", name, message, f"add it to {file}")


def _differences(built: NodePool, written: NodePool, file: str) -> Iterator[Problem]:
    for field in NodePool.model_fields:
        here, there = getattr(built, field), getattr(written, field)
        if here != there and not (field == "zone" and there is None):
            message = f"{file} says {_shown(there)} where the stack says {_shown(here)}"
            yield Problem(f"pools.{built.name}.{field}", str(here), message, "make both say the same")


def _shown(value: object) -> str:
    return "nothing" if value is None else str(value)
