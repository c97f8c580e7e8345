"""Values that a stack's configuration leaves open and AWS knows, asked for one by one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial

from fleet.cloud.node_types import is_arm
from infra.cloud_client import CloudClosed, CloudUnanswered, Ec2, Eks, Ssm
from infra.cloud_lookups import add_on, image_release, offered_zones, reservation
from infra.name_checks import repeated_pools
from infra.pool_checks import UNFILLED_DAY, places
from infra.problem import Problem
from infra.stack_config import PoolConfig, StackConfig
from infra.versions import add_on_version, add_ons_of


@dataclass(frozen=True, slots=True)
class Clients:
    """Of the region of the stack."""

    ec2: Ec2
    eks: Eks
    ssm: Ssm


@dataclass(frozen=True, slots=True)
class Fill:
    """One open value and what AWS says."""

    path: tuple[str, ...]
    """Below ``enginehouse:stack``; a pool is named by its name."""
    value: str | None
    """``None`` = AWS has none."""
    reason: str = ""
    """Why there is no value."""

    @property
    def key(self) -> str:
        """The path as messages have it."""
        return ".".join(self.path)


def fills(config: StackConfig, clients: Clients) -> Iterator[Fill]:
    """Every open version, release and last day."""
    yield from _add_ons(config, clients.eks)
    release = partial(image_release, clients.ssm, config.cluster.kubernetes)
    if not config.system_nodes.release:
        architecture = "arm64" if is_arm(config.system_nodes.instance_types[0]) else "x86_64"
        question = partial(release, "al2023", has_gpu=False, architecture=architecture)
        yield _answer(("system_nodes", "release"), question)
    for pool in config.pools:
        if not pool.image.release:
            question = partial(release, pool.image.family, has_gpu=True)
            yield _answer(("pools", pool.name, "image", "release"), question)
        if pool.ends_on == UNFILLED_DAY and pool.reservation_id:
            yield _answer(("pools", pool.name, "ends_on"), partial(_last_day, pool.reservation_id, clients.ec2))


def contradictions(config: StackConfig, ec2: Ec2) -> Iterator[Problem]:
    """What the configuration says of zones and reservations and AWS denies; raises `CloudUnanswered`."""
    yield from repeated_pools(config)
    for pool in config.pools:
        offered = offered_zones(ec2, pool.instance_type)
        missing = [zone for zone in places(pool, config) if zone not in offered]
        if missing:
            message = f"{pool.instance_type} is not offered in {', '.join(missing)}"
            remedy = f"take {', '.join(sorted(offered))}" if offered else "take another region or instance type"
            yield Problem(f"pools.{pool.name}.zones", ", ".join(missing), message, remedy)
        if pool.reservation_id:
            yield from _reservation(pool, pool.reservation_id, config, ec2)


def version_contradictions(config: StackConfig, eks: Eks) -> Iterator[Problem]:
    """Versions of add-ons that the configuration states and EKS does not have; raises `CloudClosed`."""
    for name in add_ons_of(config):
        version, kubernetes = config.versions.addons.get(name), config.cluster.kubernetes
        if version:
            yield from _version(eks, name, version, kubernetes)


def last_whole_day(ends_at: datetime) -> date:
    """The last day that a block covers wholly: it ends within the day of its end."""
    return ends_at.date() - timedelta(days=1)


def _add_ons(config: StackConfig, eks: Eks) -> Iterator[Fill]:
    for name in add_ons_of(config):
        if add_on_version(name, config.versions) is None:
            ask = partial(_add_on, eks, name, config.cluster.kubernetes)
            yield _answer(("versions", "addons", name), ask)


def _version(eks: Eks, name: str, version: str, kubernetes: str) -> Iterator[Problem]:
    key = f"versions.addons.{name}"
    try:
        choice = add_on(eks, name, kubernetes)
    except CloudClosed:
        raise
    except CloudUnanswered as error:
        yield Problem(key, version, str(error), "ask again, or take another cluster.kubernetes")
        return
    if version not in choice.versions:
        message = f"EKS has no version {version} of {name} for Kubernetes {kubernetes}"
        yield Problem(key, version, message, f"take {choice.default or ' or '.join(choice.versions)}")


def _add_on(eks: Eks, name: str, kubernetes: str) -> str:
    choice = add_on(eks, name, kubernetes)
    if choice.default is None:
        raise CloudUnanswered(f"EKS names no default; it has {', '.join(choice.versions)}")
    return choice.default


def _last_day(reservation_id: str, ec2: Ec2) -> str:
    ends_at = reservation(ec2, reservation_id).ends_at
    if ends_at is None:
        raise CloudUnanswered(f"the reservation {reservation_id} has no end")
    return last_whole_day(ends_at).isoformat()


def _answer(path: tuple[str, ...], question: Callable[[], str]) -> Fill:
    """A question that AWS does not answer leaves its value open; one that nobody may ask ends everything."""
    try:
        return Fill(path, question())
    except CloudClosed:
        raise
    except CloudUnanswered as error:
        return Fill(path, None, str(error))


def _reservation(pool: PoolConfig, reservation_id: str, config: StackConfig, ec2: Ec2) -> Iterator[Problem]:
    key = f"pools.{pool.name}"
    try:
        found = reservation(ec2, reservation_id)
    except CloudClosed:
        raise
    except CloudUnanswered as error:
        yield Problem(f"{key}.reservation_id", reservation_id, str(error), "give a reservation of this account")
        return
    if found.instance_type != pool.instance_type:
        message = f"{reservation_id} holds {found.instance_type}, the pool has {pool.instance_type}"
        yield Problem(f"{key}.instance_type", pool.instance_type, message, f"take {found.instance_type}")
    wanted = places(pool, config)
    if tuple(wanted) != (found.zone,):
        message = f"{reservation_id} stands in {found.zone}, the pool in {', '.join(wanted)}"
        yield Problem(f"{key}.zone", ", ".join(wanted), message, f"take zone {found.zone}")
    if found.is_block != (pool.purchase == "capacity-block"):
        kind = "a Capacity Block" if found.is_block else "no Capacity Block"
        message = f"{reservation_id} is {kind}, the pool's purchase is {pool.purchase}"
        right = "capacity-block" if found.is_block else "on-demand"
        yield Problem(f"{key}.purchase", pool.purchase, message, f"take {right}")
    if pool.max_nodes is not None and pool.max_nodes > found.total:
        message = f"{reservation_id} has {found.total} instances, the pool may have {pool.max_nodes}"
        yield Problem(f"{key}.max_nodes", str(pool.max_nodes), message, f"take {found.total} at most")
