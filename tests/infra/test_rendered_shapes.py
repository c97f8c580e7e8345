"""Rendered objects have the properties and kinds that the Kubernetes SDK states: a check by other people's types."""

import pulumi_kubernetes as kubernetes
import pytest

from engines.catalogue import load
from fleet.node_pools import NodePool
from tests.infra.sdk_shapes import wire_faults
from tests.workloads.invented import POOLS, image, pinned
from workloads import NodeLocalWeights, RenderGround, render

SHAPES = {
    "ServiceAccount": kubernetes.core.v1.ServiceAccountInitArgs,
    "ConfigMap": kubernetes.core.v1.ConfigMapInitArgs,
    "Service": kubernetes.core.v1.ServiceInitArgs,
    "NetworkPolicy": kubernetes.networking.v1.NetworkPolicyInitArgs,
    "Deployment": kubernetes.apps.v1.DeploymentInitArgs,
    "ResourceClaimTemplate": kubernetes.resource.v1.ResourceClaimTemplateInitArgs,
    "PodDisruptionBudget": kubernetes.policy.v1.PodDisruptionBudgetInitArgs,
}
CLAIMED = NodePool(name="claims", instance_type="p5.48xlarge", allocation="dra")
COPIED = NodeLocalWeights(copy_image=image("aws-cli"))
GROUNDS = (RenderGround(), RenderGround(pools=POOLS), RenderGround(weights=COPIED), RenderGround(pools=(CLAIMED,)))


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_every_property_is_one_of_the_api(engine: str, ground: RenderGround) -> None:
    found = render(pinned("chat", engine, scaling={"max": 2}), load(), ground)
    assert {item["kind"] for item in found} - SHAPES.keys() == {"ScaledObject"}
    assert ground.pools != (CLAIMED,) or "ResourceClaimTemplate" in {item["kind"] for item in found}
    for item in found:
        if item["kind"] in SHAPES:
            assert list(wire_faults(item, SHAPES[item["kind"]], item["kind"])) == []


def test_a_template_s_property_of_another_name_would_be_seen_too() -> None:
    (found,) = (
        i for i in render(pinned(), load(), RenderGround(pools=(CLAIMED,))) if i["kind"] == "ResourceClaimTemplate"
    )
    assert list(wire_faults(found, SHAPES[found["kind"]], found["kind"])) == []
    found["spec"]["spec"]["devices"]["requests"][0]["exactly"]["counts"] = 1
    assert len(list(wire_faults(found, SHAPES[found["kind"]], found["kind"]))) == 1


def test_a_property_of_another_name_would_be_seen() -> None:
    (found,) = (item for item in render(pinned(), load()) if item["kind"] == "Deployment")
    found["spec"]["template"]["spec"]["terminationGraceSeconds"] = 3
    assert len(list(wire_faults(found, SHAPES["Deployment"], "Deployment"))) == 1
