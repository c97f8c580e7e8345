"""The launch template of a GPU pool: interfaces, disks, purchase, metadata service and tags of its instances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2

from fleet.cloud.interfaces import Interface, efa_layout
from fleet.cloud.purchase import Buying
from infra.stack_config import PoolConfig
from infra.user_data import PULL_MIB_PER_SECOND, encoded, pulls_in_parallel, user_data

TAGGED = ("instance", "volume", "network-interface")
"""Tags of a node group don't reach these, so the template gives them."""
_ROOT, _BOTTLEROCKET_DATA = "/dev/xvda", "/dev/xvdb"


@dataclass(frozen=True, slots=True)
class TemplateArgs:
    """What a launch template is made of."""

    pool: PoolConfig
    cluster_security_group_id: pulumi.Input[str]
    efa_security_group_id: pulumi.Input[str] | None
    """``None`` = the pool has no EFA."""
    placement_group: pulumi.Input[str] | None
    """Its name; ``None`` = nodes stand anywhere in the zone."""
    tags: Mapping[str, str]
    extra_security_group_ids: Sequence[pulumi.Input[str]] = ()

    @property
    def groups(self) -> list[pulumi.Input[str]]:
        """The security groups of the nodes; with none of its own, EKS attaches the cluster's by itself."""
        own = [*([self.efa_security_group_id] if self.efa_security_group_id else []), *self.extra_security_group_ids]
        return [self.cluster_security_group_id, *own] if own else []


def launch_template(name: str, args: TemplateArgs, opts: pulumi.ResourceOptions) -> ec2.LaunchTemplate:
    """The launch template; it names the instance type, so the node group names none."""
    pool, start = args.pool, user_data(args.pool)
    return ec2.LaunchTemplate(
        name,
        description=f"Nodes of the pool {pool.name}",
        update_default_version=True,
        instance_type=pool.instance_type,
        vpc_security_group_ids=None if pool.efa else (args.groups or None),
        network_interfaces=_interfaces(args) if pool.efa else None,
        block_device_mappings=_disks(pool),
        metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        ),
        monitoring=ec2.LaunchTemplateMonitoringArgs(enabled=True),
        instance_market_options=_market(pool),
        capacity_reservation_specification=_reservation(pool),
        placement=_placement(args.placement_group),
        user_data=None if start is None else encoded(start),
        tag_specifications=[
            ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={**args.tags, "Name": name})
            for kind in TAGGED
        ],
        opts=opts,
    )


def _interfaces(args: TemplateArgs) -> list[ec2.LaunchTemplateNetworkInterfaceArgs]:
    return [_interface(item, args.groups) for item in efa_layout(args.pool.instance)]


def _interface(item: Interface, groups: list[pulumi.Input[str]]) -> ec2.LaunchTemplateNetworkInterfaceArgs:
    """No subnet (EKS gives it), no public address (refused with several interfaces)."""
    return ec2.LaunchTemplateNetworkInterfaceArgs(
        network_card_index=item.card,
        device_index=item.device,
        interface_type=item.type,
        security_groups=groups,
        delete_on_termination="true",
    )


def _disks(pool: PoolConfig) -> list[ec2.LaunchTemplateBlockDeviceMappingArgs]:
    """Encrypted gp3; Bottlerocket has its system on one volume and everything else on another."""
    if pool.image.family == "al2023":
        return [_disk(_ROOT, pool, size_gib=pool.root_volume_gib)]
    snapshot = pool.preload.data_volume_snapshot
    return [_disk(_ROOT, None), _disk(_BOTTLEROCKET_DATA, pool, size_gib=pool.root_volume_gib, snapshot=snapshot)]


def _disk(
    device: str, pool: PoolConfig | None, *, size_gib: int | None = None, snapshot: str | None = None
) -> ec2.LaunchTemplateBlockDeviceMappingArgs:
    """``pool`` = images come onto this one."""
    is_fast = pool is not None and pulls_in_parallel(pool)
    ebs = ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
        volume_type="gp3",
        volume_size=size_gib,
        throughput=PULL_MIB_PER_SECOND if is_fast else None,
        snapshot_id=snapshot,
        encrypted="true",
        delete_on_termination="true",
    )
    return ec2.LaunchTemplateBlockDeviceMappingArgs(device_name=device, ebs=ebs)


def _market(pool: PoolConfig) -> ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    """Spot is the node group's to say; only a Capacity Block stands here too."""
    market = Buying.of(pool.purchase, pool.reservation_id).market_type
    return None if market is None else ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type=market)


def _reservation(pool: PoolConfig) -> ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    if pool.reservation_id is None:
        return None
    target = ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
        capacity_reservation_id=pool.reservation_id
    )
    return ec2.LaunchTemplateCapacityReservationSpecificationArgs(capacity_reservation_target=target)


def _placement(group: pulumi.Input[str] | None) -> ec2.LaunchTemplatePlacementArgs | None:
    return None if group is None else ec2.LaunchTemplatePlacementArgs(group_name=group)
