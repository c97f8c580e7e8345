"""Pools that hand out GPUs by claims: a template for each number, and pods that name it instead of a resource."""

import pytest

from fleet.node_pools import NodePool
from tests.workloads.invented import pinned
from workloads import Reason, RenderGround, RenderRefused, render

CLAIMED = NodePool(name="h100-claims", instance_type="p5.48xlarge", allocation="dra")
PLAIN = NodePool(name="h100", instance_type="p5.48xlarge")
CUT = NodePool(name="cut", instance_type="p5.48xlarge", sharing="dynamic-slices", allocation="dra")


def pod(objects):
    return objects["Deployment"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_each_pod_gets_a_claim_for_its_number_of_whole_gpus(make, objects, gpus):
    parts = {"hardware": {"instance_type": "p5.48xlarge", "gpus": gpus}, "parallelism": {"tensor": gpus}}
    found = objects(make(**parts), RenderGround(pools=(CLAIMED,)))
    template = found["ResourceClaimTemplate"]
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": gpus}
    (claim,) = pod(found)["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    (container,) = pod(found)["containers"]
    assert container["resources"]["claims"] == [{"name": claim["name"]}]
    assert not any("nvidia" in key for kind in ("requests", "limits") for key in container["resources"][kind])


def test_a_template_never_changes_so_another_number_is_another_template(make, objects):
    def template(gpus):
        parts = {"hardware": {"instance_type": "p5.48xlarge", "gpus": gpus}, "parallelism": {"tensor": gpus}}
        return objects(make(**parts), RenderGround(pools=(CLAIMED,)))["ResourceClaimTemplate"]

    assert template(1)["metadata"]["name"] != template(2)["metadata"]["name"]
    assert len(template(8)["metadata"]["name"]) <= 63


def test_the_template_is_applied_before_the_pods_that_name_it(catalogue):
    kinds = [item["kind"] for item in render(pinned(), catalogue, RenderGround(pools=(CLAIMED,)))]
    assert kinds.index("ResourceClaimTemplate") < kinds.index("Deployment")


def test_a_pod_asks_in_one_way_and_by_resource_where_it_can(make, objects):
    found = objects(make(), RenderGround(pools=(CLAIMED, PLAIN)))
    assert "ResourceClaimTemplate" not in found
    term = pod(found)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["h100"]


def test_slices_that_are_cut_on_demand_are_nobody_s_yet(make, catalogue):
    with pytest.raises(RenderRefused, match=r"cut \(p5.48xlarge, on-demand, dynamic-slices\)") as raised:
        render(make(), catalogue, RenderGround(pools=(CUT,)))
    assert raised.value.reason is Reason.NO_POOL
