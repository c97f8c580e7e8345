"""Policies on data at rest: storage classes, keys, buckets, file systems, repositories."""

from collections.abc import Iterator

from pulumi_policy.proxy import UnknownValueError

from fleet.cloud import data
from fleet.cloud.data import Bucket
from fleet.cloud.finding import Finding
from policies.adapter import Check, Props, Seen
from policies.groups import CLUSTER
from policies.lustre import FILE_SYSTEM
from policies.reading import flag, parts, text, texts

KEY = "aws:kms/key:Key"
ALIAS = "aws:kms/alias:Alias"
STORAGE_CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
REPOSITORY = "aws:ecr/repository:Repository"
_S3 = "aws:s3/bucket"
ENCRYPTIONS = tuple(
    f"{_S3}ServerSideEncryptionConfiguration{kind}:BucketServerSideEncryptionConfiguration{kind}" for kind in ("", "V2")
)
VERSIONS = tuple(f"{_S3}Versioning{kind}:BucketVersioning{kind}" for kind in ("", "V2"))
"""What stands beside a bucket; the SDK has each under its name of before as well."""
_BLOCK_DEVICE_DRIVERS = ("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs")


def _storage_class(seen: Seen) -> Iterator[Finding]:
    if text(seen.props, "provisioner") in _BLOCK_DEVICE_DRIVERS:
        is_encrypted = flag(seen.props, "parameters", "encrypted")
        yield from data.volume_findings(f"the storage class {seen.name}", is_encrypted=is_encrypted)


def _file_system_key(seen: Seen) -> Iterator[Finding]:
    yield from data.own_key_findings("file system", seen.name, has_own_key=_has_own_key(seen, "kmsKeyId", seen.props))


def _repository_key(seen: Seen) -> Iterator[Finding]:
    prop = "encryptionConfigurations"
    items = parts(seen.props, prop)
    has_key = bool(items) and all(_has_own_key(seen, prop, item, "kmsKey") for item in items)
    yield from data.own_key_findings("repository", seen.name, has_own_key=has_key)


def _bucket_key(seen: Seen) -> Iterator[Finding]:
    beside = _beside(seen, ENCRYPTIONS)
    rules = [(item, rule) for item in beside for rule in parts(item.props, "rules")]
    has_key = bool(rules) and all(_encrypts_with_own_key(item, rule) for item, rule in rules)
    yield from data.own_key_findings("bucket", seen.name, has_own_key=has_key)


def _beside(bucket: Seen, types: tuple[str, ...]) -> tuple[Seen, ...]:
    return tuple(item for type_ in types for item in bucket.stack.pointing_at(bucket, type_, "bucket"))


def _encrypts_with_own_key(encryption: Seen, rule: Props) -> bool:
    default = "applyServerSideEncryptionByDefault"
    is_kms = (text(rule, default, "sseAlgorithm") or "").startswith("aws:kms")
    return is_kms and _has_own_key(encryption, "rules", rule, default, "kmsMasterKeyId")


def _has_own_key(seen: Seen, prop: str, props: Props, *path: str) -> bool:
    """Whether a key of the account's own is named: by what stands there, else by what it will come from."""
    try:
        return data.is_own_key(text(props, *(path or (prop,))))
    except UnknownValueError:
        if seen.comes_from(prop, KEY, ALIAS):
            return True
        raise


def _secrets(seen: Seen) -> Iterator[Finding]:
    prop = "encryptionConfig"
    has_key = _has_own_key(seen, prop, seen.props, prop, "provider", "keyArn")
    encrypted = frozenset(texts(seen.props, prop, "resources"))
    yield from data.secrets_findings(seen.name, encrypted=encrypted, has_own_key=has_key)


def _versions(seen: Seen) -> Iterator[Finding]:
    beside = _beside(seen, VERSIONS)
    is_on = any(text(item.props, "versioningConfiguration", "status") == "Enabled" for item in beside)
    blocks = frozenset(data.BLOCKS)
    yield from data.bucket_findings(Bucket(seen.name, True, is_on, blocks=blocks))


def _rotation(seen: Seen) -> Iterator[Finding]:
    spec = text(seen.props, "customerMasterKeySpec") or data.ROTATING_SPEC
    yield from data.key_findings(seen.name, rotates=flag(seen.props, "enableKeyRotation"), spec=spec)


def _tags(seen: Seen) -> Iterator[Finding]:
    mutability = text(seen.props, "imageTagMutability") or "MUTABLE"
    yield from data.repository_findings(seen.name, mutability=mutability, is_scanned=True, has_own_key=True)


def _scans(seen: Seen) -> Iterator[Finding]:
    is_scanned = flag(seen.props, "imageScanningConfiguration", "scanOnPush")
    yield from data.repository_findings(seen.name, mutability="IMMUTABLE", is_scanned=is_scanned, has_own_key=True)


CHECKS = (
    Check((data.VOLUME_ENCRYPTED,), (STORAGE_CLASS,), _storage_class),
    Check((data.OWN_KEY,), (FILE_SYSTEM,), _file_system_key, relates=True),
    Check((data.OWN_KEY,), (REPOSITORY,), _repository_key, relates=True),
    Check((data.OWN_KEY,), BUCKETS, _bucket_key, relates=True),
    Check((data.SECRETS,), (CLUSTER,), _secrets, relates=True),
    Check((data.VERSIONED,), BUCKETS, _versions, relates=True),
    Check((data.ROTATION,), (KEY,), _rotation),
    Check((data.MUTABLE_TAGS,), (REPOSITORY,), _tags),
    Check((data.UNSCANNED,), (REPOSITORY,), _scans),
)
