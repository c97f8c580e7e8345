"""Registries that ECR can cache: an image is pulled through the account's own registry, and comes from there after."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LONGEST_PREFIX = 30
SECRET_PREFIX = "ecr-pullthroughcache/"
"""What the name of a secret begins with (ECR guide, pull through cache)."""

OPEN: Mapping[str, str] = {
    "ecr": "public.ecr.aws",
    "k8s": "registry.k8s.io",
    "quay": "quay.io",
}
"""Short name -> registry, for those that need no credential (ECR guide, pull through cache)."""
Closed = Literal["docker", "github", "gitlab"]
CLOSED: Mapping[str, str] = {
    "docker": "registry-1.docker.io",
    "github": "ghcr.io",
    "gitlab": "registry.gitlab.com",
}
"""Those that need a secret of Secrets Manager whose name begins with ``ecr-pullthroughcache/``."""


class NoPullThrough(ValueError):
    """A cache that ECR would refuse."""


@dataclass(frozen=True, slots=True)
class PullThrough:
    """A cache of one registry."""

    upstream: str
    """A name of `OPEN` or `CLOSED`. ECR caches no other registry without a choice of its own (nvcr.io never)."""
    credential_arn: str | None = None
    """Of the secret; ``None`` = the registry needs none."""

    def __post_init__(self) -> None:
        if self.upstream not in {**OPEN, **CLOSED}:
            raise NoPullThrough(f"'{self.upstream}' can't be cached; ECR caches {', '.join((*OPEN, *CLOSED))}")
        if self.upstream in CLOSED and self.credential_arn is None:
            what = f"the cache of {self.registry} needs the ARN of a secret named ecr-pullthroughcache/…"
            raise NoPullThrough(f"{what}; give one, or leave the cache out")
        if self.upstream in OPEN and self.credential_arn is not None:
            raise NoPullThrough(f"the cache of {self.registry} takes no secret; leave credential_arn out")
        if self.credential_arn is not None and f":secret:{SECRET_PREFIX}" not in self.credential_arn:
            raise NoPullThrough(f"{self.credential_arn} names no secret that begins with {SECRET_PREFIX}")

    @property
    def registry(self) -> str:
        """Where the images come from."""
        return {**OPEN, **CLOSED}[self.upstream]

    def prefix(self, environment: str) -> str:
        """What its repositories begin with; caches belong to the account, so each environment has its own.

        Raises:
            NoPullThrough: when it is longer than ECR takes.
        """
        prefix = f"{environment}/{self.upstream}"
        if len(prefix) > LONGEST_PREFIX:
            raise NoPullThrough(f"the prefix {prefix} has {len(prefix)} letters, ECR takes {LONGEST_PREFIX}")
        return prefix


OPEN_CACHES: tuple[PullThrough, ...] = tuple(PullThrough(name) for name in OPEN)


def caches(secrets: Mapping[Closed, str]) -> tuple[PullThrough, ...]:
    """The open ones, and those whose secret is given (short name -> ARN), in the order of their names.

    Raises:
        NoPullThrough: a secret that ECR would refuse.
    """
    return (*OPEN_CACHES, *(PullThrough(name, secrets[name]) for name in sorted(secrets)))
