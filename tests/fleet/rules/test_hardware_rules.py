"""GPUs, instance types, sharing and purchase."""

import pytest

from fleet.violation import Enforcement


def pool(gpus, tensor):
    return {"hardware": {"instance_type": "p5.48xlarge", "gpus": gpus}, "parallelism": {"tensor": tensor}}


def on(world, instance_type, gpus=1, **changes):
    hardware = {"instance_type": instance_type, "gpus": gpus} | changes
    return world.pinned(hardware=hardware, parallelism={"tensor": gpus})


@pytest.mark.parametrize("plan", [{"tensor": 8}, {"tensor": 2, "pipeline": 2, "data": 2}, {"tensor": 4, "context": 2}])
def test_gpus_are_the_product_of_the_plan(world, plan):
    assert world.review(world.pinned(hardware={"gpus": 8}, parallelism=plan)) == []


def test_expert_parallelism_never_multiplies(world):
    assert world.review(world.pinned(hardware={"gpus": 8}, parallelism={"tensor": 8, "expert": 8})) == []


def test_other_gpus_than_the_plan_refuse_with_the_product(world):
    (violation,) = world.review(world.pinned(hardware={"gpus": 4}, parallelism={"tensor": 2, "pipeline": 3}))
    assert (violation.rule, violation.pointer) == ("gpus-match-plan", "/spec/hardware/gpus")
    assert "2 x 3 x 1 x 1 = 6" in violation.message


def test_a_written_manifest_may_leave_the_plan_open(world):
    assert world.review(world.written(hardware={"gpus": 2})) == []
    assert world.refusing(world.review(world.written(hardware={"gpus": 2}, parallelism={"tensor": 4}))) == {
        "gpus-match-plan"
    }


def test_each_pool_has_its_own_plan(world):
    pools = {"prefill": pool(4, 4), "decode": pool(8, 4)}
    manifest = world.pinned(hardware=None, pools=pools, features={"disaggregation": "prefill-decode"})
    (violation,) = world.review(manifest)
    assert violation.pointer == "/spec/pools/decode/hardware/gpus"


def test_an_unknown_instance_type_names_the_nearest(world):
    (violation,) = world.review(on(world, "p5.48large"))
    assert (violation.rule, violation.severity) == ("instance-known", Enforcement.MANDATORY)
    assert "'p5.48large' is not known; did you mean 'p5.48xlarge'?" in violation.message
    assert violation.remedy == "take p5.48xlarge"


@pytest.mark.parametrize("gpus", [1, 4, 8, 16])
def test_a_part_of_a_node_or_whole_nodes_pass(world, gpus):
    assert world.review(on(world, "p5.48xlarge", gpus)) == []


def test_idle_gpus_of_the_last_node_are_told(world):
    (violation,) = world.review(on(world, "p5.48xlarge", 12))
    assert (violation.rule, violation.severity) == ("gpus-fit-instance", Enforcement.ADVISORY)
    assert "12 GPUs span 2 p5.48xlarge and leave 4 GPUs idle" in violation.message


def test_nodes_without_efa_are_told(world):
    (violation,) = world.review(on(world, "g6.xlarge", 2))
    assert "no EFA" in violation.message
    assert violation.severity is Enforcement.ADVISORY


def test_parts_of_a_gpu_can_not_work_together(world):
    assert world.review(on(world, "g6f.2xlarge")) == []
    (violation,) = world.review(on(world, "g6f.2xlarge", 2))
    assert (violation.rule, violation.severity) == ("gpus-fit-instance", Enforcement.MANDATORY)
    assert "0.25 of one L4" in violation.message


@pytest.mark.parametrize("sharing", ["exclusive", "mps", "time-slicing"])
def test_an_l4_can_be_shared_but_not_by_mig(world, sharing):
    share = {} if sharing == "exclusive" else {"memory_share": 0.45}
    assert world.review(on(world, "g6.xlarge", sharing=sharing, **share)) == []
    (violation,) = world.review(on(world, "g6.xlarge", sharing="mig"))
    assert (violation.rule, violation.pointer) == ("sharing-possible", "/spec/hardware/sharing")
    assert "the L4 of g6.xlarge can't be shared by mig" in violation.message


@pytest.mark.parametrize("sharing", ["mps", "time-slicing"])
def test_a_pin_on_a_shared_gpu_says_how_much_of_its_memory_it_takes(world, sharing):
    (violation,) = world.review(on(world, "g6.xlarge", sharing=sharing))
    assert violation.rule == "sharing-possible"
    assert "memory_share" in violation.remedy


@pytest.mark.parametrize("sharing", ["mps", "time-slicing"])
def test_hardware_isolation_is_not_had_by_sharing_a_gpu_among_processes(world, sharing):
    hardware = {"instance_type": "g6.xlarge", "gpus": 1, "sharing": sharing, "memory_share": 0.45}
    access = {"isolation": "hardware"}
    (violation,) = world.review(world.pinned(hardware=hardware, parallelism={"tensor": 1}, access=access))
    assert (violation.rule, violation.severity) == ("sharing-possible", Enforcement.MANDATORY)
    assert "isolation" in violation.message


def test_a_replica_of_several_gpus_needs_them_for_itself(world):
    assert world.review(on(world, "p5.48xlarge", sharing="mig")) == []
    (violation,) = world.review(on(world, "p5.48xlarge", 2, sharing="mig"))
    assert violation.rule == "sharing-possible"


def test_an_instance_that_is_not_sold_like_this_refuses(world):
    assert world.review(on(world, "p5.48xlarge", purchase="capacity-block")) == []
    (violation,) = world.review(on(world, "g6.xlarge", purchase="capacity-block"))
    assert (violation.rule, violation.pointer) == ("purchase-possible", "/spec/hardware/purchase")
    assert "only as on-demand, spot" in violation.message
