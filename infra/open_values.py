"""Values that a stack's configuration leaves open and AWS knows, asked for one by one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial

from fleet.cloud.node_types import is_arm
from infra.cloud_client import CloudClosed, CloudUnanswered, Ec2, Eks, Ssm
from infra.cloud_lookups import Family, add_on, image_release, offered_zones, reservation
from infra.name_checks import repeated_pools
from infra.pool_checks import UNFILLED_DAY, places
from infra.problem import Problem
from infra.stack_config import PoolConfig, StackConfig
from infra.version_checks import AL2023_FORM
from infra.versions import add_on_version, add_ons_of, numbers

_DAY = len("20300101")
_ELSE = "ask again, or take another cluster.kubernetes"


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


@dataclass(frozen=True, slots=True)
class _NodeImage:
    """What some nodes start from."""

    path: tuple[str, ...]
    """Of its release."""
    stated: str | None
    kubernetes: str
    family: Family
    has_gpu: bool
    architecture: str = "x86_64"

    def newest(self, ssm: Ssm) -> str:
        """The newest release; raises `CloudUnanswered`."""
        return image_release(ssm, self.kubernetes, self.family, has_gpu=self.has_gpu, architecture=self.architecture)


def fills(config: StackConfig, clients: Clients) -> Iterator[Fill]:
    """Every open version, release and last day."""
    yield from _add_ons(config, clients.eks)
    for image in _node_images(config):
        if not image.stated:
            yield _answer(image.path, partial(image.newest, clients.ssm))
    for pool in config.pools:
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


def release_contradictions(config: StackConfig, ssm: Ssm) -> Iterator[Problem]:
    """Image releases of nodes that the configuration states and AWS can't have; raises `CloudClosed`.

    AWS tells the newest release alone, so an older one may be right or not.
    """
    for image in _node_images(config):
        if not image.stated:
            continue
        key = ".".join(image.path)
        try:
            newest = image.newest(ssm)
        except CloudClosed:
            raise
        except CloudUnanswered as error:
            yield Problem(key, image.stated, str(error), _ELSE)
            continue
        if not may_be_published(image.stated, newest):
            message = f"AWS has no release {image.stated}: the newest for Kubernetes {image.kubernetes} is {newest}"
            yield Problem(key, image.stated, message, f"take {newest}")


def may_be_published(release: str, newest: str) -> bool:
    """Whether there may be a release of nodes beside the newest: what is no older is that one, or there is none."""
    if AL2023_FORM.fullmatch(release) and AL2023_FORM.fullmatch(newest):
        is_older = release[-_DAY:] < newest[-_DAY:] and numbers(release) <= numbers(newest)
        return is_older or release == newest
    is_same = release in (newest, newest.partition("-")[0])  # Bottlerocket's may be said without its commit
    return is_same or numbers(release) < numbers(newest)


def last_whole_day(ends_at: datetime) -> date:
    """The last day that a block covers wholly: it ends within the day of its end."""
    return ends_at.date() - timedelta(days=1)


def _node_images(config: StackConfig) -> Iterator[_NodeImage]:
    nodes, kubernetes = config.system_nodes, config.cluster.kubernetes
    architecture = "arm64" if is_arm(nodes.instance_types[0]) else "x86_64"
    yield _NodeImage(("system_nodes", "release"), nodes.release, kubernetes, "al2023", False, architecture)
    for pool in config.pools:
        path = ("pools", pool.name, "image", "release")
        yield _NodeImage(path, pool.image.release, kubernetes, pool.image.family, has_gpu=True)


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
        yield Problem(key, version, str(error), _ELSE)
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
