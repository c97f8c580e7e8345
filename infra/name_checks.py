"""Names and tags that a stack gives: free, different from each other, and of a form that the cloud takes."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from botocore.loaders import create_loader  # type: ignore[import-untyped]
from botocore.regions import EndpointResolver  # type: ignore[import-untyped]

from fleet.nearest import did_you_mean
from infra.cluster_names import admin_word
from infra.node_group_names import LONGEST_ENVIRONMENT, registered_names
from infra.problem import Problem, of_repeated
from infra.providers import own_tags
from infra.stack_config import StackConfig

LONGEST_TAG_KEY, LONGEST_TAG = 128, 256
"""Characters (EC2 user guide, tag restrictions)."""
_TAG_FORM = re.compile(r"[\w\s+\-=.:/@]*")
SYSTEM = "system"
"""What the program calls its own node group."""


def stack_name_problems(config: StackConfig, others: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the names of a stack; ``others`` = the project's other environments."""
    yield from _owner(config)
    if len(config.environment) > LONGEST_ENVIRONMENT:
        message = f"{len(config.environment)} characters are too long for the names of roles"
        yield Problem("environment", config.environment, message, f"take {LONGEST_ENVIRONMENT} at most")
    yield from _region(config.region)
    yield from of_repeated("repositories", config.repositories, "name each repository once")
    yield from _foreign_repositories(config, others)
    for key, value in config.tags.items():
        yield from _tag(key, value, config)
    yield from repeated_pools(config)
    yield from _pools(config)
    yield from _admins(config)


def _owner(config: StackConfig) -> Iterator[Problem]:
    if not config.owner.strip():
        yield Problem("owner", "", "owner is empty", "write who answers for it, such as owner: platform")
    else:
        yield from _tag_value("owner", config.owner)


def _tag(key: str, value: str, config: StackConfig) -> Iterator[Problem]:
    if key in own_tags(config) or key.lower().startswith("aws:"):
        remedy = "leave it out: the program sets it itself, or the cloud keeps it"
        yield Problem(f"tags.{key}", value, f"the tag {key} is taken", remedy)
    elif len(key) > LONGEST_TAG_KEY or not key.strip() or not _TAG_FORM.fullmatch(key):
        yield Problem(f"tags.{key}", value, "no tag can be called that", _tag_remedy(LONGEST_TAG_KEY))
    else:
        yield from _tag_value(f"tags.{key}", value)


def _tag_value(key: str, value: str) -> Iterator[Problem]:
    if len(value) > LONGEST_TAG or not _TAG_FORM.fullmatch(value):
        yield Problem(key, value, "no tag can hold it", _tag_remedy(LONGEST_TAG))


def _tag_remedy(longest: int) -> str:
    return f"give {longest} characters at most: letters, digits, spaces and + - = . _ : / @"


@lru_cache(maxsize=1)
def regions() -> tuple[str, ...]:
    """Where EKS is, as the installed botocore knows it; no profile is read, which may be missing."""
    resolver = EndpointResolver(create_loader().load_data("endpoints"))
    partitions = resolver.get_available_partitions()
    return tuple(sorted(name for each in partitions for name in resolver.get_available_endpoints("eks", each)))


def _region(region: str) -> Iterator[Problem]:
    if region not in regions():
        hint = did_you_mean(region, regions()).removeprefix("; ") or "take one such as eu-central-1"
        message = f"botocore knows no EKS in the region {region}"
        yield Problem("region", region, message, f"{hint}; for a newer region install a newer botocore")


def _foreign_repositories(config: StackConfig, others: Collection[str]) -> Iterator[Problem]:
    """A name belongs to one stack of an account; whoever copies another's file keeps its names."""
    own = config.environment
    for name in dict.fromkeys(config.repositories):
        parts = name.split("/")
        foreign = next((part for part in parts if part in others), None)
        if foreign is not None and own not in parts:
            right = "/".join(own if part == foreign else part for part in parts)
            message = f"{name} carries the name of the environment {foreign}, and an account has each name once"
            yield Problem("repositories", name, message, f"take {right}")


def repeated_pools(config: StackConfig) -> Iterator[Problem]:
    """A pool's name is its id."""
    yield from of_repeated("pools", (pool.name for pool in config.pools), "give each pool its own name")


def _pools(config: StackConfig) -> Iterator[Problem]:
    """Two pools whose node groups would be registered under one name, or one that is called as our own is."""
    taken = {SYSTEM: "the program's own nodes"}
    for pool in {pool.name: pool for pool in config.pools}.values():
        names = registered_names(pool, config.network.zones)
        for name in names:
            if name in taken:
                message = f"{name} is already the name of {taken[name]}"
                yield Problem(f"pools.{pool.name}.name", pool.name, message, "give the pool another name")
                break
        taken |= dict.fromkeys(names, f"nodes of the pool {pool.name}")


def _admins(config: StackConfig) -> Iterator[Problem]:
    """Access entries are registered by account and path of the role."""
    taken: dict[str, str] = {}
    for index, admin in enumerate(config.cluster.admins):
        word = admin_word(admin)
        if taken.setdefault(word, admin) != admin:
            message = f"it would be registered under one name with {taken[word]}"
            yield Problem(f"cluster.admins[{index}]", admin, message, "give one of the roles another name or path")


def foreign_admins(config: StackConfig) -> Iterator[str]:
    """Roles of other accounts may be meant; a slip of a digit looks the same."""
    accounts = {admin: admin.split(":")[4] for admin in config.cluster.admins}
    for index, (admin, account) in enumerate(accounts.items()):
        if account != config.account:
            yield f"cluster.admins[{index}]: {admin} is of the account {account}, and the stack's is {config.account}"
    if config.account not in accounts.values():
        yield (
            f"cluster.admins: none is of the account {config.account}, with whose credentials the program works; "
            "a role that the cluster does not let in can't make its objects"
        )
