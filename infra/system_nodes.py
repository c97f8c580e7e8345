"""Nodes for what is no engine: DNS, KEDA, Kueue, the gateway, the control plane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2, eks

from fleet.cloud.labels import POOL_LABEL
from fleet.cloud.node_groups import Scaling
from fleet.cloud.node_types import is_arm
from infra.autoscaler import ScaledGroup
from infra.group_size import UNKNOWN_TO_THE_FILE, scaling_config
from infra.stack_config import SystemNodesConfig

POOL = "system"
ROOT_GIB = 100
TAGGED = ("instance", "volume", "network-interface")


@dataclass(frozen=True, slots=True)
class SystemNodesArgs:
    """What the nodes are, and what they wait for."""

    nodes: SystemNodesConfig
    release: str
    """The AMI release."""
    cluster_name: pulumi.Input[str]
    kubernetes: str
    subnet_ids: Sequence[pulumi.Input[str]]
    node_role_arn: pulumi.Input[str]
    tags: Mapping[str, str]
    """For instances, volumes and interfaces, which the provider's default tags don't reach."""
    wait_for: Sequence[pulumi.Resource] = ()
    is_scaled: bool = False
    """The number of nodes is the autoscaler's."""


class SystemNodes(pulumi.ComponentResource):
    """One group over all zones, without a taint."""

    def __init__(self, name: str, args: SystemNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:SystemNodes", name, None, opts)
        template = self._template(name, args)
        scaling = Scaling(args.nodes.min_nodes, args.nodes.min_nodes, args.nodes.max_nodes)
        self.node_group = eks.NodeGroup(
            f"{name}-nodes",
            cluster_name=args.cluster_name,
            version=args.kubernetes,
            ami_type=ami_type(args.nodes.instance_types),
            release_version=args.release,
            capacity_type="ON_DEMAND",
            instance_types=list(args.nodes.instance_types),
            node_role_arn=args.node_role_arn,
            subnet_ids=list(args.subnet_ids),
            launch_template=eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=pulumi.Output.format("{0}", template.latest_version)
            ),
            scaling_config=scaling_config(scaling, is_scaled=args.is_scaled, floor=1),
            update_config=eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            node_repair_config=eks.NodeGroupNodeRepairConfigArgs(enabled=True),
            labels={POOL_LABEL: POOL},
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(args.wait_for),
                ignore_changes=UNKNOWN_TO_THE_FILE if args.is_scaled else None,
            ),
        )
        self.scaled = (ScaledGroup(self.node_group, scaling.min, scaling.max),) if args.is_scaled else ()
        """What the autoscaler gets."""
        self.register_outputs({"nodeGroupName": self.node_group.node_group_name})

    def _template(self, name: str, args: SystemNodesArgs) -> ec2.LaunchTemplate:
        """No security group: EKS then attaches the cluster's by itself."""
        disk = ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=ROOT_GIB, volume_type="gp3", encrypted="true", delete_on_termination="true"
        )
        return ec2.LaunchTemplate(
            f"{name}-template",
            description="System nodes",
            update_default_version=True,
            block_device_mappings=[
                ec2.LaunchTemplateBlockDeviceMappingArgs(device_name="/dev/xvda", ebs=disk),
            ],
            metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
            ),
            tag_specifications=[
                ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={**args.tags, "Name": name})
                for kind in TAGGED
            ],
            opts=pulumi.ResourceOptions(parent=self),
        )


def ami_type(instance_types: Sequence[str]) -> str:
    """The image for the types, which have one architecture."""
    return "AL2023_ARM_64_STANDARD" if is_arm(instance_types[0]) else "AL2023_x86_64_STANDARD"
