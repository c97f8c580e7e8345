"""Policies on data at rest: volumes, keys, buckets, file systems, repositories."""

from collections.abc import Iterator

from fleet.cloud import data
from fleet.cloud.data import Bucket
from fleet.cloud.finding import Finding
from fleet.cloud.identity import TRUST_EVERYONE, document_findings, statements_of
from policies.adapter import Check, Seen
from policies.groups import CLUSTER, TEMPLATE
from policies.lustre import FILE_SYSTEM
from policies.reading import at, document, flag, parts, text, texts

KEY = "aws:kms/key:Key"
ALIAS = "aws:kms/alias:Alias"
VOLUME = "aws:ebs/volume:Volume"
STORAGE_CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
REPOSITORY = "aws:ecr/repository:Repository"
_S3 = "aws:s3/bucket"
ENCRYPTION = f"{_S3}ServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
VERSIONS = f"{_S3}Versioning:BucketVersioning"
PUBLIC_BLOCK = f"{_S3}PublicAccessBlock:BucketPublicAccessBlock"
BUCKET_POLICY = f"{_S3}Policy:BucketPolicy"
_BLOCKS = {
    "blockPublicAcls": "block_public_acls",
    "blockPublicPolicy": "block_public_policy",
    "ignorePublicAcls": "ignore_public_acls",
    "restrictPublicBuckets": "restrict_public_buckets",
}
_BLOCK_DEVICE_DRIVERS = ("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs")


def _template_disks(seen: Seen) -> Iterator[Finding]:
    for item in parts(seen.props, "blockDeviceMappings"):
        if at(item, "ebs") is not None:
            device = text(item, "deviceName") or "a volume"
            yield from data.volume_findings(device, is_encrypted=flag(item, "ebs", "encrypted"))


def _volume(seen: Seen) -> Iterator[Finding]:
    yield from data.volume_findings(seen.name, is_encrypted=flag(seen.props, "encrypted"))


def _storage_class(seen: Seen) -> Iterator[Finding]:
    if text(seen.props, "provisioner") in _BLOCK_DEVICE_DRIVERS:
        is_encrypted = flag(seen.props, "parameters", "encrypted")
        yield from data.volume_findings(f"the storage class {seen.name}", is_encrypted=is_encrypted)


def _file_system_key(seen: Seen) -> Iterator[Finding]:
    has_key = seen.comes_from("kmsKeyId", KEY, ALIAS) or text(seen.props, "kmsKeyId") is not None
    yield from data.own_key_findings("file system", seen.name, has_own_key=has_key)


def _repository_key(seen: Seen) -> Iterator[Finding]:
    prop = "encryptionConfigurations"
    has_key = seen.comes_from(prop, KEY, ALIAS) or any(text(item, "kmsKey") for item in parts(seen.props, prop))
    yield from data.own_key_findings("repository", seen.name, has_own_key=has_key)


def _bucket_key(seen: Seen) -> Iterator[Finding]:
    beside = seen.stack.pointing_at(seen, ENCRYPTION, "bucket")
    has_key = any(item.comes_from("rules", KEY, ALIAS) or _names_key(item) for item in beside)
    yield from data.own_key_findings("bucket", seen.name, has_own_key=has_key)


def _names_key(encryption: Seen) -> bool:
    path = ("applyServerSideEncryptionByDefault", "kmsMasterKeyId")
    return any(text(item, *path) for item in parts(encryption.props, "rules"))


def _secrets(seen: Seen) -> Iterator[Finding]:
    prop = "encryptionConfig"
    has_key = seen.comes_from(prop, KEY, ALIAS) or text(seen.props, prop, "provider", "keyArn") is not None
    encrypted = frozenset(texts(seen.props, prop, "resources"))
    yield from data.secrets_findings(seen.name, encrypted=encrypted, has_own_key=has_key)


def _public_block(seen: Seen) -> Iterator[Finding]:
    beside = seen.stack.pointing_at(seen, PUBLIC_BLOCK, "bucket")
    blocks = frozenset(name for item in beside for key, name in _BLOCKS.items() if flag(item.props, key))
    acl = text(seen.props, "acl") or "private"
    yield from data.bucket_findings(Bucket(seen.name, True, True, blocks=blocks, acl=acl))


def _bucket_policy(seen: Seen) -> Iterator[Finding]:
    found = document(seen.props, "policy")
    if found is None:
        return
    findings = document_findings("resource", statements_of(found))
    lets_in = any(finding.rule is TRUST_EVERYONE for finding in findings)
    blocks = frozenset(data.BLOCKS)
    yield from data.bucket_findings(Bucket(seen.name, True, True, blocks=blocks, lets_everybody_in=lets_in))


def _versions(seen: Seen) -> Iterator[Finding]:
    beside = seen.stack.pointing_at(seen, VERSIONS, "bucket")
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
    Check((data.VOLUME_ENCRYPTED,), (TEMPLATE,), _template_disks),
    Check((data.VOLUME_ENCRYPTED,), (VOLUME,), _volume),
    Check((data.VOLUME_ENCRYPTED,), (STORAGE_CLASS,), _storage_class),
    Check((data.OWN_KEY,), (FILE_SYSTEM,), _file_system_key, relates=True),
    Check((data.OWN_KEY,), (REPOSITORY,), _repository_key, relates=True),
    Check((data.OWN_KEY,), BUCKETS, _bucket_key, relates=True),
    Check((data.SECRETS,), (CLUSTER,), _secrets, relates=True),
    Check((data.PUBLIC_BUCKET,), BUCKETS, _public_block, relates=True),
    Check((data.PUBLIC_BUCKET,), (BUCKET_POLICY,), _bucket_policy),
    Check((data.VERSIONED,), BUCKETS, _versions, relates=True),
    Check((data.ROTATION,), (KEY,), _rotation),
    Check((data.MUTABLE_TAGS,), (REPOSITORY,), _tags),
    Check((data.UNSCANNED,), (REPOSITORY,), _scans),
)
