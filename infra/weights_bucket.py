"""The bucket of weights: encrypted, private, versioned, and readable for the pods that serve them."""

from dataclasses import dataclass

import pulumi
from pulumi_aws import iam, s3

from infra.encryption import EncryptionKey, EncryptionKeyArgs
from infra.iam_document import Statement, document

UNFINISHED_UPLOAD_DAYS = 7
FSX_ROLES = "role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
"""The roles by which FSx reads a linked bucket: one per file system, made together with the link."""


@dataclass(frozen=True, slots=True)
class WeightsBucketArgs:
    """Where the bucket stands and how long it remembers."""

    region: str
    protect: bool
    old_version_days: int = 90
    """Overwritten and deleted weights can be had back for so long."""


class WeightsBucket(pulumi.ComponentResource):
    """The bucket, its key, and an IAM policy that lets pods read from it and nothing else."""

    def __init__(self, name: str, args: WeightsBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:WeightsBucket", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.bucket = s3.Bucket(
            f"{name}-bucket",
            force_destroy=False,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect, retain_on_delete=True),
        )
        self.key = EncryptionKey(
            f"{name}-encryption",
            EncryptionKeyArgs(
                description=f"Weights of {name}: the bucket and the file system",
                protect=args.protect,
                retain=True,
                statements=self.bucket.arn.apply(lambda arn: [_fsx_reads(arn, args.region)]),
            ),
            child,
        )
        versions = self._keeps_versions(name)
        self._lifecycle(name, args.old_version_days, versions)
        self._is_private(name)
        self.encrypted = self._is_encrypted(name)
        self.read_policy = iam.Policy(
            f"{name}-read",
            description=f"Reads the weights of {name}",
            policy=pulumi.Output.all(bucket=self.bucket.arn, key=self.key.arn).apply(
                lambda arns: read_document(arns["bucket"], arns["key"])
            ),
            opts=child,
        )
        self.name: pulumi.Output[str] = self.bucket.bucket
        self.uri: pulumi.Output[str] = self.name.apply(lambda bucket: f"s3://{bucket}/")
        self.register_outputs({"bucket": self.name, "keyArn": self.key.arn, "readPolicyArn": self.read_policy.arn})

    def _kept(self, *after: pulumi.Resource) -> pulumi.ResourceOptions:
        """What protects the bucket outlives the stack as the bucket does."""
        return pulumi.ResourceOptions(parent=self, retain_on_delete=True, depends_on=list(after))

    def _keeps_versions(self, name: str) -> s3.BucketVersioning:
        enabled = s3.BucketVersioningVersioningConfigurationArgs(status="Enabled")
        return s3.BucketVersioning(
            f"{name}-versions",
            bucket=self.bucket.bucket,
            versioning_configuration=enabled,
            opts=self._kept(),
        )

    def _lifecycle(self, name: str, days: int, versions: s3.BucketVersioning) -> None:
        rule = s3.BucketLifecycleConfigurationRuleArgs(
            id="old-versions",
            status="Enabled",
            filter=s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            noncurrent_version_expiration=s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                noncurrent_days=days
            ),
            abort_incomplete_multipart_upload=s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                days_after_initiation=UNFINISHED_UPLOAD_DAYS
            ),
        )
        s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=self.bucket.bucket,
            rules=[rule],
            opts=self._kept(versions),
        )

    def _is_private(self, name: str) -> None:
        blocked = s3.BucketPublicAccessBlock(
            f"{name}-private",
            bucket=self.bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._kept(),
        )
        s3.BucketPolicy(  # S3 takes one change of a bucket's access at a time
            f"{name}-encrypted-transport",
            bucket=self.bucket.bucket,
            policy=self.bucket.arn.apply(_no_plain_http),
            opts=self._kept(blocked),
        )

    def _is_encrypted(self, name: str) -> s3.BucketServerSideEncryptionConfiguration:
        by_key = s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="aws:kms", kms_master_key_id=self.key.arn
        )
        rule = s3.BucketServerSideEncryptionConfigurationRuleArgs(
            apply_server_side_encryption_by_default=by_key, bucket_key_enabled=True
        )
        return s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encrypted",
            bucket=self.bucket.bucket,
            rules=[rule],
            opts=self._kept(self.key.policy),
        )


def read_document(bucket_arn: str, key_arn: str) -> str:
    """Listing, reading and decrypting; nothing that writes."""
    return document(
        Statement("List", ("s3:ListBucket", "s3:GetBucketLocation"), (bucket_arn,)),
        Statement("Read", ("s3:GetObject", "s3:GetObjectVersion"), (f"{bucket_arn}/*",)),
        Statement("Decrypt", ("kms:Decrypt",), (key_arn,)),
    )


def _fsx_reads(bucket_arn: str, region: str) -> Statement:
    """FSx reads and decrypts objects of a linked bucket.

    A key's policy can't name its role, which exists only after the link is made, so the role is a condition. With S3
    bucket keys the encryption context is the bucket, without them the object.
    """
    return Statement(
        "FsxThroughS3",
        ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"),
        ("*",),
        principals=("*",),
        conditions={
            "StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"},
            "ArnLike": {"aws:PrincipalArn": f"arn:*:iam::*:{FSX_ROLES}"},
            "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, f"{bucket_arn}/*"]},
        },
    )


def _no_plain_http(bucket_arn: str) -> str:
    return document(
        Statement(
            "OnlyEncryptedTransport",
            ("s3:*",),
            (bucket_arn, f"{bucket_arn}/*"),
            principals=("*",),
            conditions={"Bool": {"aws:SecureTransport": "false"}},
            denies=True,
        )
    )
