"""`pulumi preview --policy-pack` on the real engine: one planted fault for each file of policies stops it."""

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from engines.catalogue import load
from tests.infra.stacks import PROD
from tests.pulumi.checkout import Checkout, Fault
from tests.pulumi.engine import Outcome
from tests.workloads import invented
from workloads import RenderGround, render

pytestmark = [pytest.mark.pulumi, pytest.mark.timeout(900)]

CLUSTER = "aws:eks/cluster:Cluster"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
FAULTS: dict[str, Fault] = {
    "metadata-tokens": (TEMPLATE, "-l4-template", ["metadataOptions", "httpTokens"], "optional"),
    "cluster-endpoint-open": (CLUSTER, "-cluster", ["vpcConfig", "endpointPublicAccess"], True),
    "lustre-capacity": ("aws:fsx/lustreFileSystem:LustreFileSystem", "-file-system", ["storageCapacity"], 1300),
    "key-rotation": ("aws:kms/key:Key", "-logs-key", ["enableKeyRotation"], False),
    "iam-admin-policy": (
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "-node-AmazonEKSWorkerNodePolicy",
        ["policyArn"],
        "arn:aws:iam::aws:policy/AdministratorAccess",
    ),
}


@pytest.fixture(scope="module")
def previews(checkout: Checkout, two_at_once: ThreadPoolExecutor) -> dict[str, Future[Outcome]]:
    """A preview of the stack with all of it, and one of the clean stack, side by side."""
    stacks = {
        "faults": checkout.planted("faults", PROD, list(FAULTS.values()), objects()),
        "clean": checkout.stack("clean", PROD),
    }
    words = ("--policy-pack", str(checkout.folder / "policies"))
    return {name: two_at_once.submit(stack.preview, *words) for name, stack in stacks.items()}


@pytest.fixture(scope="module")
def outcome(previews: dict[str, Future[Outcome]]) -> Outcome:
    """The preview of the stack with faults."""
    return previews["faults"].result()


def objects() -> dict[str, Any]:
    """What a manifest renders to, with an image by tag and a scaler without its fallback."""
    hardware = {"instance_type": "p5.48xlarge", "gpus": 2, "purchase": "capacity-block"}
    manifest = invented.pinned("chat", hardware=hardware, scaling={"min": 1, "max": 4})
    rendered = {i["kind"]: copy.deepcopy(dict(i)) for i in render(manifest, load(), RenderGround(pools=PROD.pools))}
    deployment, scaler = rendered["Deployment"], rendered["ScaledObject"]
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "example.org/vllm:latest"
    scaler["spec"].pop("fallback", None)
    return {"chat": deployment, "chat-scaler": scaler}


def mandatory(outcome: Outcome) -> dict[str, str]:
    """Policy -> the message of what it refuses."""
    return {item.policy: item.message for item in outcome.violations if item.level == "mandatory"}


def test_a_refused_preview_ends_with_an_error_and_changes_nothing(outcome: Outcome) -> None:
    outcome.refused()
    assert mandatory(outcome)


@pytest.mark.parametrize("policy", [*FAULTS, "image-digest", "keda-fallback"])
def test_a_planted_fault_is_refused_by_its_policy(policy: str, outcome: Outcome) -> None:
    assert policy in mandatory(outcome), sorted(mandatory(outcome))


def test_what_is_not_known_yet_is_never_a_pass(outcome: Outcome) -> None:
    later = [item for item in outcome.violations if "not judged yet" in item.message]
    assert later
    assert {item.level for item in later} == {"advisory"}


def test_a_clean_stack_has_no_violation(previews: dict[str, Future[Outcome]]) -> None:
    found = previews["clean"].result().ok()
    assert [item for item in found.violations if "not judged yet" not in item.message] == []
