"""Rendered objects have the properties and kinds that the Kubernetes SDK states: a check by other people's types."""

import pulumi_kubernetes as kubernetes
import pytest

from engines.catalogue import load
from tests.infra.sdk_shapes import wire_faults
from tests.workloads.invented import POOLS, pinned
from workloads import NodeLocalWeights, RenderGround, render

SHAPES = {
    "ServiceAccount": kubernetes.core.v1.ServiceAccountInitArgs,
    "ConfigMap": kubernetes.core.v1.ConfigMapInitArgs,
    "Service": kubernetes.core.v1.ServiceInitArgs,
    "NetworkPolicy": kubernetes.networking.v1.NetworkPolicyInitArgs,
    "Deployment": kubernetes.apps.v1.DeploymentInitArgs,
    "PodDisruptionBudget": kubernetes.policy.v1.PodDisruptionBudgetInitArgs,
}
GROUNDS = (RenderGround(), RenderGround(pools=POOLS), RenderGround(weights=NodeLocalWeights("hugging-face")))


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_every_property_is_one_of_the_api(engine: str, ground: RenderGround) -> None:
    found = render(pinned("chat", engine, scaling={"max": 2}), load(), ground)
    assert {item["kind"] for item in found} - SHAPES.keys() == {"ScaledObject"}
    for item in found:
        if item["kind"] in SHAPES:
            assert list(wire_faults(item, SHAPES[item["kind"]], item["kind"])) == []


def test_a_property_of_another_name_would_be_seen() -> None:
    (found,) = (item for item in render(pinned(), load()) if item["kind"] == "Deployment")
    found["spec"]["template"]["spec"]["terminationGraceSeconds"] = 3
    assert len(list(wire_faults(found, SHAPES["Deployment"], "Deployment"))) == 1
