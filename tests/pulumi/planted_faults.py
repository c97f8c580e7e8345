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
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
PUBLIC_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
RELEASE = "kubernetes:helm.sh/v3:Release"
H100, L4 = "-h100-block-eu-central-1a", "-l4"
CUDA, DRIVER = "13.0", "550.1"
"""Of the engine's image, and of the nodes, for which it is too new."""
SHARES = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


@dataclass(frozen=True)
class Planted:
    """A mistake in the program."""

    says: str
    """What its policy says of it: the resource and the value, or what is missing."""
    faults: tuple[Fault, ...]
    """Empty = it stands in the objects, or in the configuration of the stack or of the pack."""


def planted(says: str, *faults: Fault) -> Planted:
    """The mistake that some faults make together."""
    return Planted(says, faults)


FAULTS: Mapping[str, Planted] = {
    # What one resource says by itself.
    "metadata-tokens": planted(
        "l4-template: http_tokens is optional",
        (TEMPLATE, f"{L4}-template", ["metadataOptions", "httpTokens"], "optional"),
    ),
    "cluster-endpoint-open": planted(
        "cluster-cluster: the cluster endpoint is open to everybody",
        (CLUSTER, "-cluster", ["vpcConfig", "endpointPublicAccess"], True),
    ),
    "lustre-capacity": planted(
        "lustre-file-system: a capacity of 1300 GiB; take 9600 GiB",
        (FILE_SYSTEM, "-file-system", ["storageCapacity"], 1300),
    ),
    "key-rotation": planted("logs-key is not rotated", ("aws:kms/key:Key", "-logs-key", ["enableKeyRotation"], False)),
    "security-group-open": planted(
        "network-endpoints-https lets 0.0.0.0/0 in on tcp 443",
        (INGRESS, "-network-endpoints-https", ["cidrIpv4"], "0.0.0.0/0"),
    ),
    "iam-admin-policy": planted(
        "node-AmazonEKSWorkerNodePolicy: the policy AdministratorAccess is attached",
        (ATTACHMENT, "-node-AmazonEKSWorkerNodePolicy", ["policyArn"], "arn:aws:iam::aws:policy/AdministratorAccess"),
    ),
    # What several say together, or what somebody left out and the cloud would fill in.
    "ami-release-unpinned": planted(
        "l4-nodes: the release of the AMI is not set", (GROUP, f"{L4}-nodes", ["releaseVersion"], None)
    ),
    "instance-type-places": planted(
        "l4-nodes: the launch template says g6.xlarge and the node group g6.xlarge",
        (GROUP, f"{L4}-nodes", ["instanceTypes"], ["g6.xlarge"]),
    ),
    "mig-without-hardware": planted(
        "l4-nodes: sharing 'mig' on L4, which has no MIG",
        (GROUP, f"{L4}-nodes", ["labels", "nvidia.com/mig.config"], "all-1g.10gb"),
    ),
    "node-repair": planted(
        "l4-nodes: node repair is off for a group of GPU nodes", (GROUP, f"{L4}-nodes", ["nodeRepairConfig"], None)
    ),
    "update-strategy": planted(
        "h100-block-eu-central-1a-nodes: the update strategy of p5.48xlarge nodes is DEFAULT (nothing is said)",
        (GROUP, f"{H100}-nodes", ["updateConfig"], None),
    ),
    "capacity-block-target": planted(
        "h100-block-eu-central-1a-nodes: a Capacity Block without a reservation",
        (TEMPLATE, f"{H100}-template", ["capacityReservationSpecification"], None),
    ),
    "interface-index": planted(
        "h100-block-eu-central-1a-template: network card 40; p5.48xlarge has cards 0 to 31",
        (TEMPLATE, f"{H100}-template", ["networkInterfaces", 5, "networkCardIndex"], 40),
    ),
    "efa-security-group-self": planted(
        "h100-block-efa lets all traffic out to the group itself",
        (EGRESS, "-h100-block-efa-out", ["referencedSecurityGroupId"], None),
        (EGRESS, "-h100-block-efa-out", ["cidrIpv4"], "0.0.0.0/0"),
    ),
    "data-without-own-key": planted(
        "lustre-file-system has no key of the account's own", (FILE_SYSTEM, "-file-system", ["kmsKeyId"], None)
    ),
    "bucket-public": planted(
        "weights-bucket lacks block_public_acls", (PUBLIC_BLOCK, "-weights-private", ["blockPublicAcls"], False)
    ),
    # What the objects of the cluster say; `objects` has them.
    "gpu-isolation-nodes": planted(
        "inference/Deployment/chat needs isolation by hardware, and nvidia.com/gpu is a share of a GPU on h100-block",
        (RELEASE, "-nvidia-device-plugin", ["values", "config", "map", "exclusive"], SHARES),
    ),
    "image-digest": planted("container engine of inference/Deployment/chat runs example.org/vllm:latest"),
    "keda-fallback": planted("chat-scaler: chat has 3 Prometheus triggers and no fallback"),
    "admin-api-public": planted("admin: a Service opens the control plane to the internet"),
    "cuda-driver": planted(
        f"on pool h100-block has CUDA {CUDA}, which needs driver 580 or newer; the node has {DRIVER}"
    ),
    # What the pack's own configuration does not allow.
    "cost-limit": planted(
        "USD an hour, the limit is 1.50; the dearest is enginehouse-prod-h100-block-eu-central-1a-nodes"
    ),
}
"""Policy -> the mistake."""
LIMITS = {"cost-limit": {"max_usd_per_hour": 1.5}}
"""The policy pack's own configuration."""
CONTROL_PLANE = {"app.kubernetes.io/component": "control-plane"}


def faulty(checkout: Checkout) -> Stack:
    """A stack with every fault."""
    checkout.record_image("prod", invented.image("vllm"), cuda=CUDA)
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
