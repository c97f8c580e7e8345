"""What is not rendered says which reason and what would be right."""

import pytest

from fleet.node_pools import NodePool
from workloads import NodeLocalWeights, Reason, RenderGround, RenderRefused, SharedWeights, render

HOSTED = {"name": "groq", "endpoint": "https://invented.invalid", "api_key_ref": "groq", "model": "invented"}
SIDE = {"hardware": {"instance_type": "p5.48xlarge", "gpus": 2}, "parallelism": {"tensor": 2}}
REFUSED = {
    Reason.HOSTED: {"engine": None, "hosted": HOSTED, "batch": None, "hardware": None, "parallelism": {}},
    Reason.DISAGGREGATED: {
        "features": {"disaggregation": "prefill-decode"},
        "pools": {"prefill": SIDE, "decode": SIDE},
        "hardware": None,
    },
    Reason.SEVERAL_NODES: {
        "hardware": {"instance_type": "p5.48xlarge", "gpus": 16},
        "parallelism": {"tensor": 8, "pipeline": 2},
    },
    Reason.WITHOUT_IMAGE: {"engine": {"name": "vllm", "version": "0.33.0", "runtime": "process"}},
    Reason.ENGINE_REFUSED: {
        "engine": {"name": "deepspeed", "version": "0.19.8", "image": f"invented.invalid/ds@sha256:{'1' * 64}"}
    },
    Reason.ENGINE_BUILD: {
        "engine": {
            "name": "tensorrt-llm",
            "version": "1.2.1",
            "front": "triton",
            "image": f"invented.invalid/trt@sha256:{'1' * 64}",
        }
    },
    Reason.NO_POOL: {"hardware": {"instance_type": "p5en.48xlarge", "gpus": 2}},
    Reason.MIG_PROFILE: {
        "hardware": {"instance_type": "p5.48xlarge", "gpus": 1, "sharing": "mig"},
        "parallelism": {},
    },
    Reason.SCHEDULE: {"scaling": {"max": 2, "schedule": [{"cron": "0 8 * * 1-5", "min": 3}]}},
    Reason.WEIGHTS: {"features": {"lora": ["acme/tone"]}},
}
TWO_PROFILES = (
    NodePool(name="small", instance_type="p5.48xlarge", sharing="mig", mig_profile="1g.10gb"),
    NodePool(name="large", instance_type="p5.48xlarge", sharing="mig", mig_profile="3g.40gb"),
    NodePool(name="whole", instance_type="p5.48xlarge"),
)


def ground_of(reason):
    weights = NodeLocalWeights() if reason is Reason.WEIGHTS else SharedWeights()
    return RenderGround(pools=TWO_PROFILES, weights=weights)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_its_case_and_says_what_would_be_right(reason, make, catalogue):
    with pytest.raises(RenderRefused) as raised:
        render(make(**REFUSED[reason]), catalogue, ground_of(reason))
    refused = raised.value
    assert refused.reason is reason
    assert refused.message
    assert refused.remedy
    assert str(refused) == f"support-chat: {refused.message}; {refused.remedy}"


def test_a_mig_profile_that_nobody_says_is_refused(make, catalogue):
    with pytest.raises(RenderRefused, match="is not known") as raised:
        render(make(**REFUSED[Reason.MIG_PROFILE]), catalogue)
    assert raised.value.reason is Reason.MIG_PROFILE


def test_the_pools_that_there_are_stand_in_the_refusal(make, catalogue):
    with pytest.raises(RenderRefused, match=r"large \(p5.48xlarge, on-demand, mig\), small .*, whole "):
        render(make(**REFUSED[Reason.NO_POOL]), catalogue, RenderGround(pools=TWO_PROFILES))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"cron": "0 8 * *", "min": 1}, "4 fields"),
        ({"cron": "59 23 * * *", "min": 1}, "its day ends"),
        ({"cron": "0 8 * * *", "min": 9}, "above scaling.max 2"),
    ],
)
def test_a_schedule_that_keda_can_t_keep_says_which_entry(entry, words, make, catalogue):
    scaling = {"max": 2, "schedule": [{"cron": "0 6 * * *", "min": 1}, entry]}
    with pytest.raises(RenderRefused, match=rf"schedule\[1\].*{words}"):
        render(make(scaling=scaling), catalogue)


def test_a_schedule_is_refused_as_well_where_the_program_makes_the_scaler(make, catalogue):
    scaling = {**REFUSED[Reason.SCHEDULE]["scaling"], "managed_by": "pulumi"}
    with pytest.raises(RenderRefused):
        render(make(scaling=scaling), catalogue)
