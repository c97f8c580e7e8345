"""`pulumi preview --policy-pack` on the real engine: planted faults stop the first preview, each by its own policy."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from engines.catalogue import load
from fleet.cloud.labels import MANIFEST_LABEL
from fleet.manifest import dump
from infra.stack_config import StackConfig
from tests.infra.stacks import PROD
from tests.pulumi.checkout import Checkout, Fault
from tests.pulumi.engine import Outcome, Stack
from tests.workloads import invented
from workloads import RenderGround, render

pytestmark = [pytest.mark.pulumi, pytest.mark.timeout(900)]

CLUSTER = "aws:eks/cluster:Cluster"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:eks/nodeGroup:NodeGroup"
FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
H100, L4 = "-h100-block-eu-central-1a", "-l4"
FAULTS: Mapping[str, list[Fault]] = {
    # What one resource says by itself.
    "metadata-tokens": [(TEMPLATE, f"{L4}-template", ["metadataOptions", "httpTokens"], "optional")],
    "cluster-endpoint-open": [(CLUSTER, "-cluster", ["vpcConfig", "endpointPublicAccess"], True)],
    "lustre-capacity": [(FILE_SYSTEM, "-file-system", ["storageCapacity"], 1300)],
    "key-rotation": [("aws:kms/key:Key", "-logs-key", ["enableKeyRotation"], False)],
    "security-group-open": [(INGRESS, "-network-endpoints-https", ["cidrIpv4"], "0.0.0.0/0")],
    "iam-admin-policy": [
        (
            "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            "-node-AmazonEKSWorkerNodePolicy",
            ["policyArn"],
            "arn:aws:iam::aws:policy/AdministratorAccess",
        )
    ],
    # What several say together, or what somebody left out and the cloud would fill in.
    "ami-release-unpinned": [(GROUP, f"{L4}-nodes", ["releaseVersion"], None)],
    "instance-type-places": [(GROUP, f"{L4}-nodes", ["instanceTypes"], ["g6.xlarge"])],
    "mig-without-hardware": [(GROUP, f"{L4}-nodes", ["labels", "nvidia.com/mig.config"], "all-1g.10gb")],
    "node-repair": [(GROUP, f"{L4}-nodes", ["nodeRepairConfig"], None)],
    "update-strategy": [(GROUP, f"{H100}-nodes", ["updateConfig"], None)],
    "capacity-block-target": [(TEMPLATE, f"{H100}-template", ["capacityReservationSpecification"], None)],
    "interface-index": [(TEMPLATE, f"{H100}-template", ["networkInterfaces", 5, "networkCardIndex"], 40)],
    "efa-security-group-self": [
        (EGRESS, "-h100-block-efa-out", ["referencedSecurityGroupId"], None),
        (EGRESS, "-h100-block-efa-out", ["cidrIpv4"], "0.0.0.0/0"),
    ],
    "data-without-own-key": [(FILE_SYSTEM, "-file-system", ["kmsKeyId"], None)],
}
"""Policy -> the mistake in the program."""
OF_OBJECTS = {"image-digest", "keda-fallback", "admin-api-public", "cuda-driver"}
LIMITS = {"cost-limit": {"max_usd_per_hour": 1.5}}
"""The policy pack's own configuration."""
CONTROL_PLANE = {"app.kubernetes.io/component": "control-plane"}


@pytest.fixture(scope="module")
def outcome(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A first preview of the stack with all of it."""
    limits = tmp_path_factory.mktemp("limits") / "limits.json"
    limits.write_text(json.dumps(LIMITS), encoding="utf-8")
    return faulty(checkout).preview(*checkout.judged, "--policy-pack-config", str(limits))


def faulty(checkout: Checkout) -> Stack:
    """A stack with every fault, and with nodes whose driver is too old for the engine's image."""
    checkout.record_image("prod", invented.image("vllm"), cuda="13.0")
    faults = [fault for planted in FAULTS.values() for fault in planted]
    return checkout.planted("faults", with_driver("550.1"), faults, objects(), checkout.harmless_advisories())


def with_driver(version: str) -> StackConfig:
    """The stack with a driver in every pool."""
    image = PROD.pools[0].image.model_copy(update={"driver": version})
    pools = tuple(pool.model_copy(update={"image": image}) for pool in PROD.pools)
    return PROD.model_copy(update={"pools": pools})


def objects() -> dict[str, Any]:
    """A manifest, what it renders to with an image by tag and a scaler without its fallback, and a public admin API."""
    hardware = {"instance_type": "p5.48xlarge", "gpus": 2, "purchase": "capacity-block"}
    manifest = invented.pinned("chat", hardware=hardware, scaling={"min": 1, "max": 4})
    rendered = {i["kind"]: copy.deepcopy(dict(i)) for i in render(manifest, load(), RenderGround(pools=PROD.pools))}
    deployment, scaler = rendered["Deployment"], rendered["ScaledObject"]
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "example.org/vllm:latest"
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


def mandatory(outcome: Outcome) -> dict[str, str]:
    """Policy -> the message of what it refuses."""
    return {item.policy: item.message for item in outcome.violations if item.level == "mandatory"}


def test_each_planted_fault_is_refused_at_the_first_preview_by_its_policy_and_no_other(outcome: Outcome) -> None:
    assert set(mandatory(outcome.refused())) == {*FAULTS, *OF_OBJECTS, *LIMITS}


def test_what_is_computed_from_other_resources_is_never_a_pass(outcome: Outcome) -> None:
    pending = [item for item in outcome.violations if "not judged yet" in item.message]
    assert pending
    assert {item.level for item in pending} == {"advisory"}
