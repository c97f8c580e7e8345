"""A value for every key that a stack has to have, section by section: messages and the reference show them.

Releases and versions stay open: only AWS knows those of an account, and `infra.fill_versions` asks it.
"""

from collections.abc import Mapping

from fleet.value import Value
from infra import stack_config as config

NETWORK = {"cidr": "10.0.0.0/16", "zones": ["eu-central-1a", "eu-central-1b"], "nat": "one"}
CLUSTER = {"kubernetes": "1.36", "admins": ["arn:aws:iam::111122223333:role/platform-admins"]}
SYSTEM_NODES = {"instance_types": ["m7i.xlarge"], "min_nodes": 2, "max_nodes": 4, "release": None}
IMAGE = {"family": "al2023", "release": None}
PRELOAD = {"parallel_pull": True}
POOL = {"name": "l4", "instance_type": "g6.xlarge", "purchase": "spot", "max_nodes": 4, "image": IMAGE}
LUSTRE = {"kind": "lustre", "capacity_gib": 2400, "mb_per_second_per_tib": 250, "zone": "eu-central-1a"}
NODE_LOCAL = {"kind": "node-local"}
BUDGET = {"usd_per_month": 2000, "emails": ["platform@example.org"]}
VERSIONS: dict[str, object] = {"addons": {}, "charts": {}}
STACK = {
    "version": 1,
    "environment": "dev",
    "account": "111122223333",
    "region": "eu-central-1",
    "owner": "platform",
    "network": NETWORK,
    "cluster": CLUSTER,
    "system_nodes": SYSTEM_NODES,
    "pools": [POOL],
    "weights": NODE_LOCAL,
    "budget": BUDGET,
}

EXAMPLES: Mapping[type[Value], Mapping[str, object]] = {
    config.StackConfig: STACK,
    config.NetworkConfig: NETWORK,
    config.ClusterConfig: CLUSTER,
    config.SystemNodesConfig: SYSTEM_NODES,
    config.PoolConfig: POOL,
    config.NodeImage: IMAGE,
    config.Preload: PRELOAD,
    config.LustreWeights: LUSTRE,
    config.NodeLocalWeights: NODE_LOCAL,
    config.BudgetConfig: BUDGET,
    config.Versions: VERSIONS,
}
"""Model -> what may stand in its section."""
