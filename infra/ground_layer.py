"""What everything stands on: the network and the cluster, with the key of their logs."""

from dataclasses import dataclass

import pulumi

from infra.cluster import Cluster, ClusterArgs
from infra.encryption import EncryptionKey, EncryptionKeyArgs
from infra.iam_document import Statement
from infra.network import Network, NetworkArgs
from infra.stack_config import StackConfig


@dataclass(frozen=True, slots=True)
class GroundLayer:
    """Network and cluster."""

    network: Network
    cluster: Cluster


def is_protected(config: StackConfig) -> bool:
    """Whether losing something would hurt: everywhere but in dev."""
    return config.environment != "dev"


def ground_layer(base: str, config: StackConfig, opts: pulumi.ResourceOptions) -> GroundLayer:
    """Registers network and cluster."""
    protect = is_protected(config)
    key = EncryptionKey(
        f"{base}-logs",
        EncryptionKeyArgs(
            description=f"Logs of {base}", protect=protect, statements=[_logs_of_region(config.region, base)]
        ),
        opts,
    )
    # Logs can be encrypted only after the key's policy lets their service in.
    log_key = pulumi.Output.all(key.arn, key.policy.policy).apply(lambda found: str(found[0]))
    network = Network(f"{base}-network", NetworkArgs(config.network, config.region, log_key, protect), opts)
    cluster = Cluster(
        f"{base}-cluster",
        ClusterArgs(config.cluster, base, list(network.private_subnets.values()), log_key, protect),
        opts,
    )
    return GroundLayer(network, cluster)


def _logs_of_region(region: str, base: str) -> Statement:
    groups = [
        f"arn:*:logs:{region}:*:log-group:/{path}/*" for path in (f"aws/eks/{base}", f"enginehouse/{base}-network")
    ]
    return Statement(
        "Logs",
        ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"),
        ("*",),
        services=(f"logs.{region}.amazonaws.com",),
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )
