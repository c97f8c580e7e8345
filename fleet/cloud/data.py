"""Data at rest: encrypted with a key of one's own, private, versioned, and images that stay what they were."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fleet.cloud.finding import CloudRule, Finding, Grade

VOLUME_ENCRYPTED = CloudRule(
    "volume-unencrypted",
    Grade.HIGH,
    "Every volume is encrypted",
    "set encrypted on the volume or the block device",
    "own rule: weights, prompts in caches and images lie on the volumes of nodes",
)
OWN_KEY = CloudRule(
    "data-without-own-key",
    Grade.MEDIUM,
    "Buckets, file systems and repositories are encrypted with a key of one's own",
    "name a KMS key of the account, so that access to it can be seen and ended",
    "own rule; without a key AWS takes one of its own",
)
SECRETS = CloudRule(
    "cluster-secrets-unencrypted",
    Grade.HIGH,
    "The secrets of a cluster are encrypted with a key of one's own",
    "add an encryption configuration for 'secrets' with a KMS key; a cluster can't lose it again",
    "EKS API, CreateCluster encryptionConfig",
)
PUBLIC_BUCKET = CloudRule(
    "bucket-public",
    Grade.CRITICAL,
    "No bucket can become public",
    "block public ACLs and policies, ignore public ACLs, restrict public buckets, and let no policy name everybody",
    "own rule; S3 guide, blocking public access",
)
VERSIONED = CloudRule(
    "bucket-unversioned",
    Grade.MEDIUM,
    "A bucket keeps the versions of its objects",
    "turn versioning on: weights that were overwritten can be had back",
    "own rule",
)
ROTATION = CloudRule(
    "key-rotation",
    Grade.MEDIUM,
    "KMS keys are rotated",
    "set enable_key_rotation",
    "KMS guide, rotating keys; only symmetric keys for encryption rotate",
)
MUTABLE_TAGS = CloudRule(
    "repository-mutable-tags",
    Grade.MEDIUM,
    "The tags of a repository can't be moved to another image",
    "set image_tag_mutability to IMMUTABLE",
    "own rule: what was reviewed is what runs",
)
UNSCANNED = CloudRule(
    "repository-unscanned",
    Grade.LOW,
    "Images are scanned when they are pushed",
    "set scan_on_push",
    "own rule",
)

Kind = Literal["bucket", "file system", "repository"]
BLOCKS = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
PUBLIC_ACLS = ("public-read", "public-read-write", "authenticated-read", "AllUsers", "AuthenticatedUsers")
ROTATING_SPEC = "SYMMETRIC_DEFAULT"


@dataclass(frozen=True, slots=True)
class Bucket:
    """What protects a bucket."""

    name: str
    has_own_key: bool
    is_versioned: bool
    blocks: frozenset[str] = frozenset()
    """Which of `BLOCKS` are on."""
    acls: tuple[str, ...] = ()
    """Canned ACLs, and the groups that others name (the end of their address)."""
    lets_everybody_in: bool = False
    """Whether its policy allows something to everybody without a condition."""


def volume_findings(name: str, *, is_encrypted: bool) -> Iterator[Finding]:
    """A volume, a block device of a launch template, a storage class."""
    if not is_encrypted:
        yield Finding(VOLUME_ENCRYPTED, f"{name} is not encrypted")


def is_own_key(key: str | None) -> bool:
    """Whether the id, ARN or alias of a key may be one of the account's own; those of AWS say so in their alias."""
    return bool(key) and re.search(r"(^|:)alias/aws/", str(key)) is None


def own_key_findings(kind: Kind, name: str, *, has_own_key: bool) -> Iterator[Finding]:
    """A store that AWS encrypts with a key of its own where none is named."""
    if not has_own_key:
        yield Finding(OWN_KEY, f"the {kind} {name} has no key of the account's own")


def secrets_findings(cluster: str, *, encrypted: frozenset[str], has_own_key: bool) -> Iterator[Finding]:
    """The encryption configuration of a cluster: the kinds of resources that it names."""
    if "secrets" not in encrypted or not has_own_key:
        yield Finding(SECRETS, f"the secrets of cluster {cluster} are not encrypted with a key of the account's own")


def bucket_findings(bucket: Bucket) -> Iterator[Finding]:
    """A bucket with all that stands beside it: key, versioning, public access block, policy."""
    yield from own_key_findings("bucket", bucket.name, has_own_key=bucket.has_own_key)
    missing = [block for block in BLOCKS if block not in bucket.blocks]
    if missing:
        yield Finding(PUBLIC_BUCKET, f"bucket {bucket.name} lacks {', '.join(missing)}")
    for acl in dict.fromkeys(bucket.acls):
        if acl in PUBLIC_ACLS:
            yield Finding(PUBLIC_BUCKET, f"bucket {bucket.name} has the ACL {acl}", "take no ACL")
    if bucket.lets_everybody_in:
        message = f"the policy of bucket {bucket.name} allows something to everybody"
        yield Finding(PUBLIC_BUCKET, message, "name the roles that it is for")
    if not bucket.is_versioned:
        yield Finding(VERSIONED, f"bucket {bucket.name} keeps no versions")


def key_findings(name: str, *, rotates: bool, spec: str = ROTATING_SPEC) -> Iterator[Finding]:
    """A KMS key; keys that can't rotate are left alone."""
    if spec == ROTATING_SPEC and not rotates:
        yield Finding(ROTATION, f"key {name} is not rotated")


def repository_findings(name: str, *, mutability: str, is_scanned: bool, has_own_key: bool) -> Iterator[Finding]:
    """An image repository."""
    yield from own_key_findings("repository", name, has_own_key=has_own_key)
    if mutability != "IMMUTABLE":
        yield Finding(MUTABLE_TAGS, f"the tags of repository {name} are {mutability}")
    if not is_scanned:
        yield Finding(UNSCANNED, f"images of repository {name} are not scanned on push")


RULES: tuple[CloudRule, ...] = (
    VOLUME_ENCRYPTED,
    OWN_KEY,
    SECRETS,
    PUBLIC_BUCKET,
    VERSIONED,
    ROTATION,
    MUTABLE_TAGS,
    UNSCANNED,
)
