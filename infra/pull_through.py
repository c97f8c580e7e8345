"""Registries that ECR can cache: an image is pulled through the account's own registry, and comes from there after."""

from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_PREFIX = 30

OPEN: Mapping[str, str] = {
    "ecr": "public.ecr.aws",
    "k8s": "registry.k8s.io",
    "quay": "quay.io",
}
"""Short name -> registry, for those that need no credential (ECR guide, pull through cache)."""
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
        if self.credential_arn is not None and ":secret:ecr-pullthroughcache/" not in self.credential_arn:
            raise NoPullThrough(f"{self.credential_arn} names no secret that begins with ecr-pullthroughcache/")

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
