"""The IAM role that nodes run under: join the cluster, pull images, and nothing else; pods have roles of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import iam

from infra.iam_document import Statement, document

_TRUST = document(Statement("Nodes", ("sts:AssumeRole",), services=("ec2.amazonaws.com",)))
POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
"""The CNI's policy is not among them: vpc-cni has its own role by pod identity."""


@dataclass(frozen=True, slots=True)
class NodeRoleArgs:
    """What the role may do."""

    policies: Sequence[str] = POLICIES
    """Names of the cloud's own policies."""


class NodeRole(pulumi.ComponentResource):
    """The role of all nodes of a cluster; managed node groups get its access entry by themselves."""

    def __init__(self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:NodeRole", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(f"{name}-role", assume_role_policy=_TRUST, description="Nodes of the cluster", opts=child)
        self.arn: pulumi.Output[str] = role.arn
        """Of the role."""
        self.attachments = tuple(
            iam.RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=f"arn:aws:iam::aws:policy/{policy}",
                opts=child,
            )
            for policy in args.policies
        )
        """What node groups have to wait for: without them a node can't join, and at the end can't leave."""
        self.register_outputs({"arn": self.arn})
