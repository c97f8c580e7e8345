"""The EKS cluster: who administers it, what encrypts its secrets, what it logs."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import cloudwatch, eks, iam

from infra.cluster_names import admin_word
from infra.encryption import EncryptionKey, EncryptionKeyArgs
from infra.iam_document import Statement, document
from infra.stack_config import ClusterConfig

LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")
CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
CREATE_MINUTES = 60


@dataclass(frozen=True, slots=True)
class ClusterArgs:
    """What the cluster is, and where it stands."""

    cluster: ClusterConfig
    cluster_name: str
    """Fixed, so that it can be named in commands and in its log group."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private ones of two zones at least."""
    log_key_arn: pulumi.Input[str]
    """The key of the control plane's logs."""
    protect: bool


class Cluster(pulumi.ComponentResource):
    """A cluster whose access is by explicit entries: the identity that makes it has none of its own."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Cluster", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        self.key = EncryptionKey(
            f"{name}-secrets",
            EncryptionKeyArgs(description=f"Secrets of the cluster {args.cluster_name}", protect=args.protect),
            self._child,
        )
        role = iam.Role(
            f"{name}-role",
            description=f"The control plane of {args.cluster_name}",
            assume_role_policy=document(
                Statement("Eks", ("sts:AssumeRole", "sts:TagSession"), services=("eks.amazonaws.com",))
            ),
            opts=self._child,
        )
        attached = iam.RolePolicyAttachment(
            f"{name}-policy", role=role.name, policy_arn=CLUSTER_POLICY, opts=self._child
        )
        logs = cloudwatch.LogGroup(  # made here, or EKS makes it without a key and an end
            f"{name}-logs",
            name=f"/aws/eks/{args.cluster_name}/cluster",
            retention_in_days=args.cluster.log_days,
            kms_key_id=args.log_key_arn,
            opts=self._child,
        )
        self.cluster = self._cluster(name, args, role.arn, [attached, logs, self.key.policy])
        self.access = [
            resource for principal in args.cluster.admins for resource in self._admin(f"{name}-admin", principal)
        ]
        """What the Kubernetes provider has to wait for."""
        self.name: pulumi.Output[str] = self.cluster.name
        self.endpoint: pulumi.Output[str] = self.cluster.endpoint
        self.ca: pulumi.Output[str] = self.cluster.certificate_authority.apply(lambda authority: authority.data or "")
        self.cluster_security_group_id: pulumi.Output[str] = self.cluster.vpc_config.apply(
            lambda vpc: vpc.cluster_security_group_id or ""
        )
        self.register_outputs({"name": self.name, "endpoint": self.endpoint})

    def _cluster(
        self, name: str, args: ClusterArgs, role_arn: pulumi.Output[str], wait_for: Sequence[pulumi.Resource]
    ) -> eks.Cluster:
        is_public = args.cluster.endpoint == "public"
        return eks.Cluster(
            f"{name}-cluster",
            name=args.cluster_name,
            version=args.cluster.kubernetes,
            role_arn=role_arn,
            bootstrap_self_managed_addons=False,  # they come as add-ons, with versions of ours
            deletion_protection=args.cluster.deletion_protection,
            enabled_cluster_log_types=list(LOGS),
            access_config=eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=False
            ),
            encryption_config=eks.ClusterEncryptionConfigArgs(
                provider=eks.ClusterEncryptionConfigProviderArgs(key_arn=self.key.arn), resources=["secrets"]
            ),
            upgrade_policy=eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            vpc_config=eks.ClusterVpcConfigArgs(
                subnet_ids=list(args.subnet_ids),
                endpoint_private_access=True,
                endpoint_public_access=is_public,
                public_access_cidrs=[str(cidr) for cidr in args.cluster.public_cidrs] if is_public else None,
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=args.protect,
                depends_on=list(wait_for),
                custom_timeouts=pulumi.CustomTimeouts(create=f"{CREATE_MINUTES}m"),
            ),
        )

    def _admin(self, name: str, principal: str) -> list[pulumi.Resource]:
        own = f"{name}-{admin_word(principal)}"
        entry = eks.AccessEntry(
            own, cluster_name=self.cluster.name, principal_arn=principal, type="STANDARD", opts=self._child
        )
        policy = eks.AccessPolicyAssociation(
            own,
            cluster_name=self.cluster.name,
            principal_arn=principal,
            policy_arn=ADMIN_POLICY,
            access_scope=eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[entry]),
        )
        return [entry, policy]
