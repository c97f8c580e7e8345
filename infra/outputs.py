"""What a stack tells: how to reach the cluster, where things are, what the nodes cost. Nothing secret."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fleet.cloud.costs import pool_cost
from fleet.prices import Price, bundled, with_own
from infra.stack_config import StackConfig

if TYPE_CHECKING:
    from infra.program import Platform


def outputs_of(config: StackConfig, platform: "Platform", prices: tuple[Price, ...]) -> Mapping[str, Any]:
    """The outputs by name; ``prices`` are the environment's own, which count first."""
    cluster, storage = platform.ground.cluster, platform.storage
    lustre, manifests = storage.lustre, platform.objects.manifests
    return {
        "cluster_name": cluster.name,
        "cluster_endpoint": cluster.endpoint,
        "kubeconfig_command": cluster.name.apply(
            lambda name: f"aws eks update-kubeconfig --region {config.region} --name {name}"
        ),
        "vpc_id": platform.ground.network.vpc_id,
        "weights_bucket": storage.bucket.name,
        "lustre": None
        if lustre is None
        else {"file_system_id": lustre.id, "dns_name": lustre.dns_name, "mount_name": lustre.mount_name},
        "repositories": storage.repositories.urls,
        "pool_costs": pool_costs(config, prices),
        "identities": {} if manifests is None else dict(manifests.manifests.identities),
    }


def pool_costs(config: StackConfig, prices: tuple[Price, ...]) -> list[dict[str, Any]]:
    """What each pool costs an hour with the nodes that it starts with, and with all; dated, unknown with the reason."""
    table = with_own(prices) or bundled()
    return [
        asdict(pool_cost(pool, nodes=max(pool.min_nodes, pool.desired_nodes), region=config.region, prices=table))
        for pool in config.pools
    ]
