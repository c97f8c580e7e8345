"""Pods that read weights from the bucket themselves: one role, bound to their service accounts by EKS Pod Identity."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import eks, iam

from infra.iam_document import pod_identity_trust


@dataclass(frozen=True, slots=True, order=True)
class ServiceAccountName:
    """A service account of the cluster; it may not be there yet."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class WeightsReaderArgs:
    """Who reads."""

    cluster_name: pulumi.Input[str]
    read_policy_arn: pulumi.Input[str]
    service_accounts: Sequence[ServiceAccountName]


class WeightsReader(pulumi.ComponentResource):
    """The role and its associations; the cluster needs the add-on eks-pod-identity-agent."""

    def __init__(self, name: str, args: WeightsReaderArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:WeightsReader", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.role = iam.Role(
            f"{name}-role",
            description="Reads weights; for pods by EKS Pod Identity",
            assume_role_policy=pod_identity_trust(),
            opts=child,
        )
        attached = iam.RolePolicyAttachment(
            f"{name}-may-read", role=self.role.name, policy_arn=args.read_policy_arn, opts=child
        )
        for account in sorted(set(args.service_accounts)):
            eks.PodIdentityAssociation(
                f"{name}-{account.namespace}-{account.name}",
                cluster_name=args.cluster_name,
                namespace=account.namespace,
                service_account=account.name,
                role_arn=self.role.arn,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[attached]),
            )
        self.register_outputs({"roleArn": self.role.arn})
