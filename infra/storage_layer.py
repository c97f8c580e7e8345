"""What outlives nodes: the bucket of weights, the file system before it, image repositories; and the alarm on money."""

from dataclasses import dataclass

import pulumi

from infra.budget import Budget, BudgetArgs
from infra.ground_layer import GroundLayer, is_protected
from infra.lustre import Lustre, LustreArgs
from infra.node_layer import NodeLayer
from infra.pull_through import caches
from infra.repositories import Repositories, RepositoriesArgs
from infra.stack_config import LustreWeights, StackConfig
from infra.weights_bucket import WeightsBucket, WeightsBucketArgs


@dataclass(frozen=True, slots=True)
class StorageLayer:
    """Weights and images."""

    bucket: WeightsBucket
    lustre: Lustre | None
    """``None`` = weights are streamed to the nodes' own disks."""
    repositories: Repositories
    budget: Budget


def storage_layer(
    base: str, config: StackConfig, ground: GroundLayer, nodes: NodeLayer, opts: pulumi.ResourceOptions
) -> StorageLayer:
    """Registers all of it."""
    protect = is_protected(config)
    bucket = WeightsBucket(f"{base}-weights", WeightsBucketArgs(config.region, protect), opts)
    lustre = None
    if isinstance(config.weights, LustreWeights):
        groups: dict[str, pulumi.Input[str]] = {"cluster": ground.cluster.cluster_security_group_id}
        if config.weights.efa:
            groups |= {f"pool-{name}": group for name, group in nodes.efa_groups.items()}
        lustre = Lustre(
            f"{base}-lustre",
            LustreArgs(
                weights=config.weights,
                vpc_id=ground.network.vpc_id,
                subnet_id=ground.network.private_subnets[config.weights.zone],
                node_groups=groups,
                bucket=bucket.name,
                key_arn=bucket.key.arn,
                protect=protect,
            ),
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[bucket.encrypted])),
        )
    images = RepositoriesArgs(config.environment, config.repositories, protect, caches(config.pull_through_secrets))
    repositories = Repositories(f"{base}-images", images, opts)
    return StorageLayer(bucket, lustre, repositories, Budget(f"{base}-budget", BudgetArgs(config.budget), opts))
