"""Cluster Autoscaler: adds nodes for pods that find no place, and takes away those that nobody needs.

It is told each group by name with its limits. By tags it would find every managed node group of the cluster, those of
Capacity Blocks as well: EKS tags them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import eks, iam

from fleet.cloud.node_groups import LUSTRE_TAINT_KEY
from infra.charts import Values, Wanted, release
from infra.iam_document import Statement, document, pod_identity_trust
from infra.stack_config import Versions
from infra.versions import AUTOSCALER_IMAGES

NAME = "cluster-autoscaler"
NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class ScaledGroup:
    """A node group whose number of nodes is the autoscaler's."""

    node_group: eks.NodeGroup
    least: int
    most: int

    @property
    def scaling_group(self) -> pulumi.Output[str]:
        """The name of the Auto Scaling group that EKS made for it."""
        return self.node_group.resources.apply(lambda found: str((found[0].autoscaling_groups or [])[0].name))


@dataclass(frozen=True, slots=True)
class AutoscalerArgs:
    """What is scaled, and where."""

    cluster_name: pulumi.Input[str]
    kubernetes: str
    region: str
    groups: Sequence[ScaledGroup]
    versions: Versions


class Autoscaler(pulumi.ComponentResource):
    """The chart, and a role that may change the size of its groups and of no others."""

    def __init__(self, name: str, args: AutoscalerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Autoscaler", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            f"{name}-role", description="Cluster Autoscaler", assume_role_policy=pod_identity_trust(), opts=child
        )
        groups = [pulumi.Output.all(item.node_group.arn, item.scaling_group) for item in args.groups]
        policy = iam.RolePolicy(
            f"{name}-policy",
            role=role.name,
            policy=pulumi.Output.all(args.cluster_name, *groups).apply(
                lambda found: autoscaler_document(found[0], found[1:])
            ),
            opts=child,
        )
        association = eks.PodIdentityAssociation(
            f"{name}-identity",
            cluster_name=args.cluster_name,
            namespace=NAMESPACE,
            service_account=NAME,
            role_arn=role.arn,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        wanted = Wanted(NAME, NAMESPACE, _values(args))
        self.release = release(name, wanted, args.versions, pulumi.ResourceOptions(parent=self, depends_on=association))
        self.register_outputs({"groups": [item.scaling_group for item in args.groups]})


def _values(args: AutoscalerArgs) -> Values:
    tag = AUTOSCALER_IMAGES.get(args.kubernetes)
    groups = [{"name": item.scaling_group, "minSize": item.least, "maxSize": item.most} for item in args.groups]
    return {
        "cloudProvider": "aws",
        "awsRegion": args.region,
        "autoscalingGroups": groups,
        "fullnameOverride": NAME,
        "rbac": {"serviceAccount": {"create": True, "name": NAME}},
        "extraArgs": {
            "enforce-node-group-min-size": True,
            # A new node has it until the driver is there; no pod tolerates it, so no group would ever seem to fit.
            "startup-taint": LUSTRE_TAINT_KEY,
        },
        **({} if tag is None else {"image": {"tag": tag}}),
    }


def autoscaler_document(cluster: str, groups: Sequence[Sequence[str]]) -> str:
    """What the autoscaler may do; ``groups`` = each node group's ARN and the name of its Auto Scaling group.

    The cloud lists by ``*`` alone. ARNs of Auto Scaling groups hold an id that EKS does not tell.
    """
    scaled = []
    for arn, name in groups:
        _, partition, _, region, account, _ = arn.split(":", 5)
        scaled.append(f"arn:{partition}:autoscaling:{region}:{account}:autoScalingGroup:*:autoScalingGroupName/{name}")
    owned = {"StringEquals": {f"aws:ResourceTag/k8s.io/cluster-autoscaler/{cluster}": "owned"}}
    return document(
        Statement("Look", _LOOKS, ("*",)),
        Statement("Groups", ("eks:DescribeNodegroup",), tuple(arn for arn, _ in groups)),
        Statement("Scale", _CHANGES, tuple(scaled), conditions=owned),
    )


_LOOKS = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
)
_CHANGES = ("autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup")
