"""The stacks that tests build: one for each kind of cluster that the program knows.

Releases, drivers, versions, reservations and accounts are invented; nothing that ships reads this file.
"""

from collections.abc import Mapping
from datetime import date

from infra.stack_config import LustreWeights, NodeLocalWeights, PoolConfig, StackConfig

REGION = "eu-central-1"
ZONE = f"{REGION}a"
ZONES = (ZONE, f"{REGION}b", f"{REGION}c")
ADMIN = "arn:aws:iam::111122223333:role/platform"  # the account of the cloud's own examples
RELEASE = "1.36.0-20300101"  # invented
IMAGE = {"release": RELEASE, "driver": "580.0.0"}  # invented
RESERVATION = "cr-0123456789abcdef0"  # invented
ADD_ON_VERSIONS = {  # invented
    "vpc-cni": "v1.99.0-eksbuild.1",
    "kube-proxy": "v1.36.0-eksbuild.99",
    "coredns": "v1.99.0-eksbuild.1",
    "eks-pod-identity-agent": "v1.99.0-eksbuild.1",
    "aws-fsx-csi-driver": "v1.99.0-eksbuild.1",
    "metrics-server": "v0.99.0-eksbuild.1",
}
LAST_DAY = date(2099, 12, 31)
"""Of capacity blocks."""


def pool(**fields: object) -> PoolConfig:
    """A pool with an image."""
    return PoolConfig.model_validate({"image": IMAGE, "max_nodes": 4, **fields})


L4 = pool(name="l4", instance_type="g6.xlarge", purchase="spot", max_nodes=6)
L4_SHARED = pool(
    name="l4-shared", instance_type="g6.2xlarge", sharing="time-slicing", time_slices=4, max_nodes=2, min_nodes=1
)
H100 = pool(name="h100", instance_type="p5.48xlarge", max_nodes=4, zone=ZONE, efa=True, placement_group=True)
H100_BLOCK = pool(
    name="h100-block",
    instance_type="p5.48xlarge",
    purchase="capacity-block",
    max_nodes=4,
    zone=ZONE,
    efa=True,
    reservation_id=RESERVATION,
    ends_on=LAST_DAY,
)
B300_BLOCK = H100_BLOCK.model_copy(update={"name": "b300", "instance_type": "p6-b300.48xlarge", "max_nodes": 2})
H100_MIG = pool(
    name="h100-mig", instance_type="p5.48xlarge", sharing="mig", mig_profile="1g.10gb", max_nodes=1, zone=ZONE
)
LUSTRE = LustreWeights(kind="lustre", capacity_gib=4800, mb_per_second_per_tib=250, zone=ZONE)
LUSTRE_EFA = LUSTRE.model_copy(
    update={"capacity_gib": 9600, "mb_per_second_per_tib": 500, "efa": True, "metadata_iops": 12000}
)
NODE_LOCAL = NodeLocalWeights(kind="node-local")


def stack(environment: str = "prod", **fields: object) -> StackConfig:
    """A stack of an environment with some fields of its own."""
    content = {
        "version": 1,
        "environment": environment,
        "region": REGION,
        "account": "111122223333",  # the account of the cloud's own examples
        "owner": "platform",
        "network": {"zones": ZONES},
        "cluster": {"kubernetes": "1.36", "admins": [ADMIN]},
        "system_nodes": {"release": RELEASE},
        "pools": [L4],
        "weights": NODE_LOCAL,
        "budget": {"usd_per_month": 50000, "emails": ["platform@example.org"]},
        "repositories": ["enginehouse/gateway", "enginehouse/control-plane"],
        "versions": {"addons": ADD_ON_VERSIONS},
    }
    return StackConfig.model_validate({**content, **fields})


DEV = stack(
    "dev",
    network={"zones": ZONES[:2], "nat": "one"},
    pools=[L4, L4_SHARED],
    budget={"usd_per_month": 2000, "emails": ["platform@example.org"]},
)
STAGING = stack("staging", pools=[H100, L4], weights=LUSTRE, autoscaler="cluster-autoscaler")
PROD = stack("prod", pools=[H100_BLOCK, L4], weights=LUSTRE_EFA)
B300 = stack("prod", pools=[B300_BLOCK, L4], weights=LUSTRE)
MIG = stack("staging", pools=[H100_MIG, L4], weights=LUSTRE, autoscaler="cluster-autoscaler")
WITHOUT_LUSTRE = stack("prod", pools=[H100_BLOCK, L4])
VARIANTS: Mapping[str, StackConfig] = {
    "dev": DEV,
    "staging": STAGING,
    "prod": PROD,
    "b300": B300,
    "mig": MIG,
    "without-lustre": WITHOUT_LUSTRE,
}


def config_of(config: StackConfig) -> dict[str, object]:
    """The Pulumi configuration of a stack."""
    return {"enginehouse:stack": config.model_dump(mode="json", exclude_none=True), "aws:region": config.region}
