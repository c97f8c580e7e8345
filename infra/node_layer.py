"""The nodes and what they need to become ready, in the order that they need it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from infra.add_ons import BEFORE_NODES, AddOns, AddOnsArgs
from infra.autoscaler import ScaledGroup
from infra.autoscaling import is_scaled, is_system_scaled
from infra.gpu_pool import GpuPool, GpuPoolArgs
from infra.ground_layer import GroundLayer
from infra.node_role import NodeRole, NodeRoleArgs
from infra.providers import tags_of
from infra.stack_config import StackConfig
from infra.system_nodes import SystemNodes, SystemNodesArgs
from infra.versions import add_on_version, add_ons_of


@dataclass(frozen=True, slots=True)
class NodeLayer:
    """Nodes and add-ons."""

    system: SystemNodes
    add_ons: AddOns
    """Those that run on nodes."""
    pools: Mapping[str, GpuPool]

    @property
    def scaled(self) -> tuple[ScaledGroup, ...]:
        """The groups whose number of nodes is the autoscaler's."""
        return (*self.system.scaled, *(group for pool in self.pools.values() for group in pool.scaled))

    @property
    def efa_groups(self) -> dict[str, pulumi.Output[str]]:
        """Pool -> the security group of its EFA interfaces, for pools that have them."""
        found = {name: pool.efa_security_group_id for name, pool in self.pools.items()}
        return {name: group for name, group in found.items() if group is not None}


def node_layer(base: str, config: StackConfig, ground: GroundLayer, opts: pulumi.ResourceOptions) -> NodeLayer:
    """Registers the role, the add-ons that nodes wait for, the nodes, and the add-ons that wait for nodes."""
    versions = {name: add_on_version(name, config.versions) or "" for name in add_ons_of(config)}
    role = NodeRole(f"{base}-node", NodeRoleArgs(), opts)
    early = {name: version for name, version in versions.items() if name in BEFORE_NODES}
    first = AddOns(f"{base}-node-add-ons", AddOnsArgs(ground.cluster.name, early), opts)
    ready = [*role.attachments, *first.add_ons]
    system = SystemNodes(f"{base}-system", _system_args(config, ground, role, ready), opts)
    late = {name: version for name, version in versions.items() if name not in BEFORE_NODES}
    then = AddOns(f"{base}-add-ons", AddOnsArgs(ground.cluster.name, late, [system.node_group]), opts)
    pools = {
        pool.name: GpuPool(
            f"{base}-{pool.name}",
            GpuPoolArgs(
                pool=pool,
                cluster_name=ground.cluster.name,
                kubernetes=config.cluster.kubernetes,
                vpc_id=ground.network.vpc_id,
                subnet_ids=ground.network.private_subnets,
                cluster_security_group_id=ground.cluster.cluster_security_group_id,
                node_role_arn=role.arn,
                has_lustre=config.weights.kind == "lustre",
                tags=tags_of(config),
                is_scaled=is_scaled(pool, config),
                wait_for=ready,
            ),
            opts,
        )
        for pool in config.pools
    }
    return NodeLayer(system, then, pools)


def _system_args(
    config: StackConfig, ground: GroundLayer, role: NodeRole, ready: Sequence[pulumi.Resource]
) -> SystemNodesArgs:
    return SystemNodesArgs(
        nodes=config.system_nodes,
        release=config.system_nodes.release or "",
        cluster_name=ground.cluster.name,
        kubernetes=config.cluster.kubernetes,
        subnet_ids=list(ground.network.private_subnets.values()),
        node_role_arn=role.arn,
        tags=tags_of(config),
        wait_for=ready,
        is_scaled=is_system_scaled(config),
    )
