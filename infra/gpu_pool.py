"""A pool of GPU nodes: its node groups with their launch templates, EFA security group and placement groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2, eks, vpc

from fleet.cloud.labels import GPU_TAINT_KEY, GPU_TAINT_VALUE
from fleet.cloud.node_groups import LUSTRE_TAINT_KEY
from fleet.cloud.purchase import Buying
from infra.autoscaler import ScaledGroup
from infra.autoscaling import node_template, scaled_labels
from infra.gpu_sharing import node_labels
from infra.group_size import UNKNOWN_TO_THE_FILE, scaling_config
from infra.launch_template import TemplateArgs, launch_template
from infra.stack_config import PoolConfig
from infra.zone_groups import ZoneGroup, zone_groups

AMI_TYPES = {"al2023": "AL2023_x86_64_NVIDIA", "bottlerocket": "BOTTLEROCKET_x86_64_NVIDIA"}
"""Family of an image -> the AMI type that carries NVIDIA's driver."""
EFA_TIMEOUT = "60m"
"""Large instances with many interfaces take long to start, and longer to be found broken."""


@dataclass(frozen=True, slots=True)
class GpuPoolArgs:
    """What a pool is made of."""

    pool: PoolConfig
    cluster_name: pulumi.Input[str]
    kubernetes: str
    """The cluster's version; nodes have the same."""
    vpc_id: pulumi.Input[str]
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Zone -> its private subnet."""
    cluster_security_group_id: pulumi.Input[str]
    node_role_arn: pulumi.Input[str]
    has_lustre: bool
    """Pods mount the file system, so nodes keep them away until its driver is ready."""
    tags: Mapping[str, str]
    """For instances, volumes and interfaces, which the provider's default tags don't reach."""
    is_scaled: bool = False
    """The number of nodes is the autoscaler's."""
    extra_security_group_ids: Sequence[pulumi.Input[str]] = ()
    wait_for: Sequence[pulumi.Resource] = ()
    """What nodes need to join: the role's policies, the network add-on."""


class GpuPool(pulumi.ComponentResource):
    """Nodes of one instance type."""

    def __init__(self, name: str, args: GpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:GpuPool", name, None, opts)
        if args.pool.image.release is None:
            raise ValueError(f"pool {args.pool.name}: image.release is not filled in; pin the release of the AMI")
        self._args = args
        self.efa_security_group_id: pulumi.Output[str] | None = None
        """``None`` = the pool has no EFA."""
        self._efa_rules: list[pulumi.Resource] = []
        if args.pool.efa:
            self.efa_security_group_id = self._efa_group(name)
        found = zone_groups(args.pool, tuple(args.subnet_ids))
        self.node_groups = tuple(self._node_group(f"{name}{group.suffix}", group) for group in found)
        self.scaled = tuple(
            ScaledGroup(made, group.scaling.min, group.scaling.max)
            for made, group in zip(self.node_groups, found, strict=True)
            if args.is_scaled
        )
        """What the autoscaler gets."""
        names = [group.node_group_name for group in self.node_groups]
        self.register_outputs({"nodeGroupNames": names, "efaSecurityGroupId": self.efa_security_group_id})

    def _efa_group(self, name: str) -> pulumi.Output[str]:
        """All traffic with itself, in and out: EFA takes no wider egress for it."""
        child = pulumi.ResourceOptions(parent=self)
        what = f"EFA among the nodes of the pool {self._args.pool.name}"
        group = ec2.SecurityGroup(f"{name}-efa", description=what, vpc_id=self._args.vpc_id, opts=child)
        for rule, way in ((vpc.SecurityGroupIngressRule, "in"), (vpc.SecurityGroupEgressRule, "out")):
            made = rule(
                f"{name}-efa-{way}",
                security_group_id=group.id,
                referenced_security_group_id=group.id,
                ip_protocol="-1",
                description=what,
                opts=child,
            )
            self._efa_rules.append(made)
        return group.id

    def _node_group(self, name: str, group: ZoneGroup) -> eks.NodeGroup:
        args, pool = self._args, self._args.pool
        template = self._template(name)
        return eks.NodeGroup(
            f"{name}-nodes",
            cluster_name=args.cluster_name,
            version=args.kubernetes,
            ami_type=AMI_TYPES[pool.image.family],
            release_version=pool.image.release,
            capacity_type=Buying.of(pool.purchase, pool.reservation_id).capacity_type,
            node_role_arn=args.node_role_arn,
            subnet_ids=[args.subnet_ids[zone] for zone in group.zones],
            launch_template=eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=pulumi.Output.format("{0}", template.latest_version)
            ),
            scaling_config=scaling_config(group.scaling, is_scaled=args.is_scaled),
            update_config=_update(pool),
            node_repair_config=eks.NodeGroupNodeRepairConfigArgs(enabled=True),
            labels=scaled_labels(pool) if args.is_scaled else node_labels(pool),
            tags=node_template(pool) if args.is_scaled else None,
            taints=_taints(has_lustre=args.has_lustre),
            opts=self._group_options(),
        )

    def _template(self, name: str) -> ec2.LaunchTemplate:
        args = self._args
        template = TemplateArgs(
            pool=args.pool,
            cluster_security_group_id=args.cluster_security_group_id,
            efa_security_group_id=self.efa_security_group_id,
            placement_group=self._placement_group(name),
            tags=args.tags,
            extra_security_group_ids=args.extra_security_group_ids,
        )
        return launch_template(f"{name}-template", template, pulumi.ResourceOptions(parent=self))

    def _placement_group(self, name: str) -> pulumi.Output[str] | None:
        """Only where nodes talk to each other, and never beside a reservation, which has its own placement."""
        pool = self._args.pool
        if not (pool.placement_group and pool.efa) or pool.reservation_id is not None:
            return None
        group = ec2.PlacementGroup(f"{name}-placement", strategy="cluster", opts=pulumi.ResourceOptions(parent=self))
        return group.name

    def _group_options(self) -> pulumi.ResourceOptions:
        timeouts = pulumi.CustomTimeouts(create=EFA_TIMEOUT, update=EFA_TIMEOUT) if self._args.pool.efa else None
        return pulumi.ResourceOptions(
            parent=self,
            depends_on=[*self._args.wait_for, *self._efa_rules],
            ignore_changes=UNKNOWN_TO_THE_FILE if self._args.is_scaled else None,
            custom_timeouts=timeouts,
        )


def _update(pool: PoolConfig) -> eks.NodeGroupUpdateConfigArgs:
    """One node at a time; ``MINIMAL`` takes it away before the new one comes."""
    return eks.NodeGroupUpdateConfigArgs(max_unavailable=1, update_strategy=pool.update.upper())


def _taints(*, has_lustre: bool) -> list[eks.NodeGroupTaintArgs]:
    gpu = eks.NodeGroupTaintArgs(key=GPU_TAINT_KEY, value=GPU_TAINT_VALUE, effect="NO_SCHEDULE")
    return [gpu, eks.NodeGroupTaintArgs(key=LUSTRE_TAINT_KEY, effect="NO_EXECUTE")] if has_lustre else [gpu]
