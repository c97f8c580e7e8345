"""The faults that stop a preview on the real engine: at least one for each file of policies."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.catalogue import load
from fleet.cloud.labels import ISOLATION_LABEL, MANIFEST_LABEL
from fleet.manifest import dump
from infra.stack_config import StackConfig
from tests.infra.stacks import PROD
from tests.pulumi.checkout import Checkout, Fault
from tests.pulumi.engine import Stack
from tests.workloads import invented
from workloads import RenderGround, render

CLUSTER = "aws:eks/cluster:Cluster"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:eks/nodeGroup:NodeGroup"
FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
RELEASE = "kubernetes:helm.sh/v3:Release"
H100, L4 = "-h100-block-eu-central-1a", "-l4"
DRIVER = "550.1"
"""Of the nodes: too old for the engine's image."""
SHARES = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


@dataclass(frozen=True)
class Planted:
    """A mistake in the program."""

    says: tuple[str, ...]
    """Parts of its policy's message: the resource, and the value or what is missing."""
    faults: tuple[Fault, ...] = ()
    """Empty = it stands in the objects or in the stack's configuration."""


def planted(*says: str, at: Fault) -> Planted:
    return Planted(says, (at,))


FAULTS: Mapping[str, Planted] = {
    # What one resource says by itself.
    "metadata-tokens": planted("X", at=(TEMPLATE, f"{L4}-template", ["metadataOptions", "httpTokens"], "optional")),
    "cluster-endpoint-open": planted("X", at=(CLUSTER, "-cluster", ["vpcConfig", "endpointPublicAccess"], True)),
    "lustre-capacity": planted("X", at=(FILE_SYSTEM, "-file-system", ["storageCapacity"], 1300)),
    "key-rotation": planted("X", at=("aws:kms/key:Key", "-logs-key", ["enableKeyRotation"], False)),
    "security-group-open": planted("X", at=(INGRESS, "-network-endpoints-https", ["cidrIpv4"], "0.0.0.0/0")),
    "iam-admin-policy": planted("X", at=(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "-node-AmazonEKSWorkerNodePolicy",
        ["policyArn"],
        "arn:aws:iam::aws:policy/AdministratorAccess",
    )),
    # What several say together, or what somebody left out and the cloud would fill in.
    "ami-release-unpinned": planted("X", at=(GROUP, f"{L4}-nodes", ["releaseVersion"], None)),
    "instance-type-places": planted("X", at=(GROUP, f"{L4}-nodes", ["instanceTypes"], ["g6.xlarge"])),
    "mig-without-hardware": planted("X", at=(GROUP, f"{L4}-nodes", ["labels", "nvidia.com/mig.config"], "all-1g.10gb")),
    "node-repair": planted("X", at=(GROUP, f"{L4}-nodes", ["nodeRepairConfig"], None)),
    "update-strategy": planted("X", at=(GROUP, f"{H100}-nodes", ["updateConfig"], None)),
    "capacity-block-target": planted("X", at=(TEMPLATE, f"{H100}-template", ["capacityReservationSpecification"], None)),
    "interface-index": planted("X", at=(TEMPLATE, f"{H100}-template", ["networkInterfaces", 5, "networkCardIndex"], 40)),
    "efa-security-group-self": Planted(("X",), (
        (EGRESS, "-h100-block-efa-out", ["referencedSecurityGroupId"], None),
        (EGRESS, "-h100-block-efa-out", ["cidrIpv4"], "0.0.0.0/0"),
    )),
    "data-without-own-key": planted("X", at=(FILE_SYSTEM, "-file-system", ["kmsKeyId"], None)),
    "bucket-public": planted("X", at=("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "-weights-private", ["blockPublicAcls"], False)),
    # What the objects of the cluster say; `objects` has them.
    "gpu-isolation-nodes": planted("X", at=(RELEASE, "-nvidia-device-plugin", ["values", "config", "map", "exclusive"], SHARES)),
    "image-digest": Planted(("X",)),
    "keda-fallback": Planted(("X",)),
    "admin-api-public": Planted(("X",)),
    "cuda-driver": Planted(("X",)),
    # What the policy pack's own configuration makes a fault.
    "cost-limit": Planted(("X",)),
}
"""Policy -> the mistake."""
LIMITS = {"cost-limit": {"max_usd_per_hour": 1.5}}
"""The policy pack's own configuration."""
CONTROL_PLANE = {"app.kubernetes.io/component": "control-plane"}


def faulty(checkout: Checkout) -> Stack:
    """A stack with every fault."""
    checkout.record_image("prod", invented.image("vllm"), cuda="13.0")
    faults = [fault for item in FAULTS.values() for fault in item.faults]
    return checkout.planted("faults", with_driver(DRIVER), faults, objects(), checkout.harmless_advisories())


def with_driver(version: str) -> StackConfig:
    """The stack with a driver in every pool."""
    image = PROD.pools[0].image.model_copy(update={"driver": version})
    pools = tuple(pool.model_copy(update={"image": image}) for pool in PROD.pools)
    return PROD.model_copy(update={"pools": pools})


def objects() -> dict[str, Any]:
    """A manifest, what it renders to and what somebody did to that, and a public admin API.

    The image goes by its tag, the scaler has no fallback, and the pods need isolation on GPUs that are shared.
    """
    hardware = {"instance_type": "p5.48xlarge", "gpus": 2, "purchase": "capacity-block"}
    manifest = invented.pinned("chat", hardware=hardware, scaling={"min": 1, "max": 4})
    rendered = {i["kind"]: copy.deepcopy(dict(i)) for i in render(manifest, load(), RenderGround(pools=PROD.pools))}
    deployment, scaler = rendered["Deployment"], rendered["ScaledObject"]
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "example.org/vllm:latest"
    deployment["metadata"]["labels"][ISOLATION_LABEL] = "hardware"
    scaler["spec"].pop("fallback", None)
    return {
        "chat": deployment,
        "chat-scaler": scaler,
        "manifest-chat": {
            **of_core("ConfigMap", "manifest-chat", {MANIFEST_LABEL: "chat"}),
            "data": {"manifest.yaml": dump(manifest)},
        },
        "admin": {
            **of_core("Service", "admin", CONTROL_PLANE),
            "spec": {"type": "LoadBalancer", "selector": CONTROL_PLANE, "ports": [{"port": 443}]},
        },
    }


def of_core(kind: str, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The head of an object."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "inference", "labels": labels}}
