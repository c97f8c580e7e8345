"""Image repositories of the account's own registry, and caches of the public registries that it can cache."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ecr, iam

from infra.encryption import EncryptionKey, EncryptionKeyArgs
from infra.iam_document import Statement, document
from infra.pull_through import OPEN_CACHES, PullThrough


@dataclass(frozen=True, slots=True)
class RepositoriesArgs:
    """Which repositories and caches."""

    environment: str
    names: Sequence[str]
    protect: bool
    caches: Sequence[PullThrough] = OPEN_CACHES
    untagged_days: int = 14
    """Untagged images are pruned after so long; tagged ones stay, as a pin may name their digest."""
    cached_days: int = 180
    """The same for caches, where everything that was pulled by digest is untagged."""


class Repositories(pulumi.ComponentResource):
    """Repositories whose tags can't move, whose images are scanned, encrypted with a key of the account's own.

    Repositories that a cache makes by itself get the same by a template; ECR takes a role to use the key for them.
    """

    def __init__(self, name: str, args: RepositoriesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Repositories", name, None, opts)
        key_args = EncryptionKeyArgs(description=f"Images of {name}", protect=args.protect)
        self._child = pulumi.ResourceOptions(parent=self)
        self.key = EncryptionKey(f"{name}-encryption", key_args, self._child)
        self._untagged = _lifecycle(args.untagged_days)
        self.urls: dict[str, pulumi.Output[str]] = {}
        for repository in sorted(set(args.names)):
            self.urls[repository] = self._repository(f"{name}-{repository}", repository, args.protect)
        self.prefixes = [cache.prefix(args.environment) for cache in args.caches]
        if args.caches:
            self._caches(name, args)
        self.register_outputs({"urls": self.urls, "cachePrefixes": self.prefixes})

    def _repository(self, name: str, repository: str, protect: bool) -> pulumi.Output[str]:
        made = ecr.Repository(
            name,
            name=repository,
            image_tag_mutability="IMMUTABLE",
            image_scanning_configuration=ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
            encryption_configurations=[
                ecr.RepositoryEncryptionConfigurationArgs(encryption_type="KMS", kms_key=self.key.arn)
            ],
            force_delete=not protect,  # a stack that is thrown away takes its images with it
            opts=pulumi.ResourceOptions(parent=self, protect=protect),
        )
        ecr.LifecyclePolicy(f"{name}-pruning", repository=made.name, policy=self._untagged, opts=self._child)
        return made.repository_url

    def _caches(self, name: str, args: RepositoriesArgs) -> None:
        role = self._template_role(name, args.environment)
        for cache, prefix in zip(args.caches, self.prefixes, strict=True):
            template = ecr.RepositoryCreationTemplate(
                f"{name}-{cache.upstream}-template",
                prefix=prefix,
                applied_fors=["PULL_THROUGH_CACHE"],
                description=f"Images of {cache.registry}",
                custom_role_arn=role.arn,
                image_tag_mutability="IMMUTABLE",
                encryption_configurations=[
                    ecr.RepositoryCreationTemplateEncryptionConfigurationArgs(
                        encryption_type="KMS", kms_key=self.key.arn
                    )
                ],
                lifecycle_policy=_lifecycle(args.cached_days),
                opts=self._child,
            )
            ecr.PullThroughCacheRule(
                f"{name}-{cache.upstream}-cache",
                ecr_repository_prefix=prefix,
                upstream_registry_url=cache.registry,
                credential_arn=cache.credential_arn,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[template]),
            )

    def _template_role(self, name: str, environment: str) -> iam.Role:
        trust = document(Statement("Ecr", ("sts:AssumeRole",), services=("ecr.amazonaws.com",)))
        role = iam.Role(
            f"{name}-template-role",
            description="ECR makes the repositories of its caches with the account's key",
            assume_role_policy=trust,
            opts=self._child,
        )
        iam.RolePolicy(
            f"{name}-template-policy",
            role=role.name,
            policy=self.key.arn.apply(lambda arn: template_document(arn, environment)),
            opts=self._child,
        )
        return role


def template_document(key_arn: str, environment: str) -> str:
    """What ECR needs to make encrypted repositories below an environment's prefix, in the region of the key."""
    _, partition, _, region, account, _ = key_arn.split(":")
    repositories = f"arn:{partition}:ecr:{region}:{account}:repository/{environment}/*"
    return document(
        Statement("Make", ("ecr:CreateRepository", "ecr:ReplicateImage", "ecr:TagResource"), (repositories,)),
        Statement("Encrypt", ("kms:CreateGrant", "kms:RetireGrant", "kms:DescribeKey"), (key_arn,)),
    )


def _lifecycle(days: int) -> str:
    untagged = {"tagStatus": "untagged", "countType": "sinceImagePushed", "countUnit": "days", "countNumber": days}
    rule = {"rulePriority": 1, "description": "Untagged images", "selection": untagged, "action": {"type": "expire"}}
    return json.dumps({"rules": [rule]})
