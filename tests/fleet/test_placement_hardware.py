"""Placement by example: what is open is completed, what is written stays, each limit is a rejection with numbers."""

import itertools
from datetime import date
from typing import Any

import pytest

from engines.catalogue import load
from fleet.facts import AdvisoryData, Facts
from fleet.manifest import Manifest, PinnedManifest
from fleet.node_pools import NodePool
from fleet.placement import Choice, choose, repin
from fleet.placement.document import choice_document
from fleet.placement.ground import Origin
from fleet.placement.hardware_search import search_hardware
from fleet.policy import Policy
from fleet.rules import review, stale
from fleet.spec import EngineName
from fleet.violation import refuses
from sources.snapshot import bundled

CATALOGUE = load()
FACTS = Facts(
    today=date(2026, 11, 29),
    data=bundled(),
    policy=Policy(allow_runtime_process=True),
    catalogue_digest=CATALOGUE.digest,
)
COMMIT = "0" * 40  # invented
SMALL, MIDDLE, LARGE = "Qwen/Qwen3-0.6B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.3-70B-Instruct"


def written(model: str = MIDDLE, *, more: dict[str, Any] | None = None, **spec: object) -> Manifest:
    whole = {"workload": "chat", "model": {"id": model, "revision": COMMIT, **(more or {})}, **spec}
    return Manifest.model_validate({"metadata": {"name": "placed"}, "spec": whole})


def pool(instance_type: str, **more: object) -> NodePool:
    return NodePool.model_validate({"name": "only", "instance_type": instance_type, **more})


def placed(manifest: Manifest, *pools: NodePool, **facts: object) -> Choice:
    return choose(manifest, FACTS.model_copy(update={"pools": pools, **facts}), CATALOGUE)


def rules_of(choice: Choice) -> set[str]:
    """Of the places that were looked at."""
    return {item.rule for item in choice.rejections if item.instance_type}


def test_a_manifest_without_hardware_and_batch_gets_both_in_its_pin() -> None:
    choice = placed(written())
    assert choice.pinned is not None
    assert choice.chosen is not None
    assert choice.chosen.plan is not None
    spec = choice.pinned.spec
    assert spec.hardware is not None
    assert spec.batch is not None
    assert (spec.hardware.instance_type, spec.hardware.gpus) == (choice.chosen.instance_type, choice.chosen.plan.gpus)
    assert spec.parallelism.gpus == spec.hardware.gpus
    assert not refuses(review(choice.pinned, FACTS, CATALOGUE))


def test_a_model_that_nobody_knows_is_placed_by_its_engine_alone_and_a_note_says_so() -> None:
    hardware = {"instance_type": "g6.xlarge", "gpus": 1}
    choice = placed(written("example/unknown", hardware=hardware, batch={"max_model_len": 4096}))
    assert choice.chosen is not None
    assert choice.chosen.plan is None
    assert choice.pinned is not None
    assert "no configuration of example/unknown is known" in choice.notes[0]
    assert "models/example--unknown.json" in choice.notes[0]


def test_a_configuration_of_the_environment_makes_the_same_model_known() -> None:
    config = dict(CONFIG)
    choice = placed(written("example/unknown"), model_configs={"example/unknown": config})
    assert choice.chosen is not None
    assert choice.chosen.plan is not None


CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def test_a_written_plan_is_kept_as_it_is() -> None:
    hardware = {"instance_type": "p5.48xlarge", "gpus": 8}
    choice = placed(written(hardware=hardware, parallelism={"tensor": 4, "pipeline": 2}, batch={"max_model_len": 8192}))
    assert choice.pinned is not None
    parallelism = choice.pinned.spec.parallelism
    assert (parallelism.tensor, parallelism.pipeline, parallelism.gpus) == (4, 2, 8)
    assert choice.pinned.spec.batch is not None
    assert choice.pinned.spec.batch.max_model_len == 8192


def test_a_written_plan_that_can_not_be_is_rejected_by_its_rule() -> None:
    hardware = {"instance_type": "p5.48xlarge", "gpus": 7}
    choice = placed(written(hardware=hardware, parallelism={"tensor": 7}))
    assert choice.chosen is None
    assert "heads-divisible" in rules_of(choice)
    plans = {item.plan for item in choice.rejections if item.instance_type}
    assert plans == {"TP7"}


def test_gpus_without_a_plan_get_one() -> None:
    hardware = {"instance_type": "p5.48xlarge", "gpus": 4}
    choice = placed(written(LARGE, hardware=hardware))
    assert choice.pinned is not None, choice.rejections[:3]
    assert choice.pinned.spec.parallelism.tensor == 4


def test_what_runs_keeps_its_hardware_plan_and_batch_when_it_is_pinned_again() -> None:
    hardware = {"instance_type": "p5.48xlarge", "gpus": 4, "purchase": "spot"}
    batch = {"max_model_len": 4096, "max_num_seqs": 7, "max_num_batched_tokens": 4096}
    before = placed(written(hardware=hardware, parallelism={"tensor": 4}, batch=batch, engine={"name": "vllm"})).pinned
    assert before is not None
    assert before.spec.engine is not None
    old = before.spec.engine.model_copy(update={"version": "0.30.0"})
    running = before.model_copy(update={"spec": before.spec.model_copy(update={"engine": old})})
    elsewhere = FACTS.model_copy(update={"pools": (pool("g6.xlarge"),)})
    for facts in (FACTS, elsewhere):
        again = repin(running, facts, CATALOGUE)
        assert again.pinned is not None
        assert again.pinned.spec.hardware == running.spec.hardware
        assert again.pinned.spec.parallelism == running.spec.parallelism
        assert again.pinned.spec.batch == running.spec.batch
        assert again.pinned.spec.engine != running.spec.engine
    assert "the planner says" in repin(running, elsewhere, CATALOGUE).notes[0]


TRITON = {"name": "tensorrt-llm", "front": "triton"}


NO_RECORDS = AdvisoryData(published=FACTS.data.published)
"""The bundled records refuse every version of which engine builds are known."""


def test_an_engine_that_has_to_be_built_says_so_with_its_time_and_its_job() -> None:
    choice = placed(written(engine=TRITON), data=NO_RECORDS)
    chosen = choice.chosen
    assert chosen is not None, choice.rejections
    assert chosen.build is not None
    operations = next(score for score in chosen.scores if score.name == "operations")
    assert operations.value == 0
    assert chosen.build.job in operations.reason
    assert 0 < chosen.build.seconds.low < chosen.build.seconds.high
    assert any(chosen.build.job in note for note in choice.notes)
    assert choice.pinned is not None
    assert choice.pinned.spec.batch is not None
    job = choice_document(choice)["choice"]["build"]["job"]
    assert job["name"] == "placed-engine-build"
    given = dict(itertools.pairwise(job["argv"]))
    assert given["--tp_size"] == str(choice.pinned.spec.parallelism.tensor)
    assert given["--max_seq_len"] == str(choice.pinned.spec.batch.max_model_len)
    assert chosen.build.most_gpus >= choice.pinned.spec.parallelism.gpus
    served = placed(written(engine={"name": "tensorrt-llm"})).chosen
    assert served is not None
    assert served.build is None


def test_a_version_that_builds_no_engines_is_refused_where_one_has_to_be_built() -> None:
    choice = placed(written(engine={**TRITON, "version": "1.3.0rc29"}))
    assert choice.chosen is None
    assert [(item.rule, item.version) for item in choice.rejections] == [("engine-build", "1.3.0rc29")]
    assert "removed" in choice.rejections[0].reason


def test_a_plan_is_refused_that_is_wider_than_a_built_engine() -> None:
    model, wide = "meta-llama/Meta-Llama-3.1-405B", {"instance_type": "p5.48xlarge", "gpus": 16}
    choice = placed(written(model, engine=TRITON, hardware=wide), data=NO_RECORDS)
    assert choice.chosen is None
    assert {item.evidence.get("gpus") for item in choice.rejections if item.rule == "engine-build"} == {16}


def test_a_build_is_refused_where_the_first_request_would_wait_for_it() -> None:
    wish = {"engine": TRITON, "objectives": {"ttft_p95_seconds": 2.0}}
    assert placed(written(**wish), data=NO_RECORDS).chosen is not None
    choice = placed(written(**wish, scaling={"min": 0, "idle": "scale-to-zero"}), data=NO_RECORDS)
    assert choice.chosen is None
    late = next(item for item in choice.rejections if item.rule == "engine-build")
    assert late.evidence["ttft_p95_seconds"] == 2.0
    assert "scale-to-zero" in late.reason


def test_a_pool_of_slices_gives_one_slice_without_tensor_parallelism_at_its_part_of_the_price() -> None:
    whole = placed(written(SMALL), pool("p5.48xlarge")).chosen
    choice = placed(written(SMALL), pool("p5.48xlarge", sharing="mig", mig_profile="1g.10gb"))
    sliced = choice.chosen
    assert sliced is not None
    assert whole is not None
    assert sliced.plan is not None
    assert (sliced.sharing, sliced.plan.gpus, sliced.plan.tensor) == ("mig", 1, 1)
    assert choice.pinned is not None
    assert choice.pinned.spec.hardware is not None
    assert choice.pinned.spec.hardware.sharing == "mig"
    for part, one in ((sliced, whole),):
        assert part.estimate is not None
        assert one.estimate is not None
        assert part.estimate.usd_per_hour == pytest.approx((one.estimate.usd_per_hour or 0) / 7)
        assert part.estimate.latency.tpot is not None
        assert one.estimate.latency.tpot is not None
        assert part.estimate.latency.tpot.mid > one.estimate.latency.tpot.mid


def test_a_model_that_a_slice_does_not_hold_is_rejected_by_memory_never_spread_over_slices() -> None:
    choice = placed(written(MIDDLE), pool("p5.48xlarge", sharing="mig", mig_profile="1g.10gb"))
    assert choice.chosen is None
    assert rules_of(choice) == {"memory"}


def test_a_part_of_a_gpu_is_judged_by_its_own_memory() -> None:
    choice = placed(written("Qwen/Qwen3-8B"), pool("g6f.xlarge"))
    assert choice.chosen is None
    memory = next(item for item in choice.rejections if item.rule == "memory")
    assert memory.evidence["visible_bytes"] == 2861 * 1024**2


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"purchase": "capacity-block", "max_nodes": 1, "ends_on": date(2026, 11, 28)}, "capacity-block-end"),
        ({"max_nodes": 0}, "max-nodes"),
        ({"sharing": "time-slicing"}, "isolation"),
    ],
)
def test_a_pool_that_can_not_be_used_is_a_rejection_that_names_it(more: dict[str, object], rule: str) -> None:
    choice = placed(written(SMALL, access={"isolation": "hardware"}), pool("p5.48xlarge", **more))
    assert choice.chosen is None
    found = next(item for item in choice.rejections if item.rule == rule)
    assert found.pool == "only"


def test_hardware_that_no_pool_has_is_rejected_and_another_place_is_named() -> None:
    hardware = {"instance_type": "p5.48xlarge", "gpus": 2, "purchase": "spot"}
    choice = placed(written(LARGE, hardware=hardware), pool("g6.xlarge"))
    assert choice.chosen is None
    assert rules_of(choice) == {"instance-type"}
    assert any(change.startswith("fits on") for change in choice.would_fit)


def test_replicas_beyond_a_pools_nodes_are_rejected_with_the_numbers() -> None:
    objectives = {"requests_per_second": 400, "input_tokens": 1000, "output_tokens": 300}
    wish = written(objectives=objectives, scaling={"max": 1000})
    choice = placed(wish, pool("p5.48xlarge", max_nodes=1))
    assert choice.chosen is None
    crowded = next(item for item in choice.rejections if item.rule == "max-nodes")
    assert int(crowded.evidence["nodes_needed"]) > 1
    assert placed(wish, pool("p5.48xlarge", max_nodes=500)).chosen is not None


def test_more_gpus_are_taken_where_the_smallest_plan_is_too_slow() -> None:
    only = pool("p5.48xlarge")
    easy = placed(written(LARGE), only).chosen
    strict = placed(written(LARGE, objectives={"tpot_p95_seconds": 0.008}), only).chosen
    assert easy is not None
    assert strict is not None
    assert easy.plan is not None
    assert strict.plan is not None
    assert strict.plan.gpus > easy.plan.gpus


def test_an_objective_that_nothing_meets_says_what_would_be_met() -> None:
    choice = placed(written(LARGE, objectives={"tpot_p95_seconds": 0.0001}), pool("p5.48xlarge"))
    assert choice.chosen is None
    missed = next(item for item in choice.rejections if item.rule == "objective-tpot")
    assert float(missed.evidence["low_seconds"]) > 0.0001
    assert any("objectives.tpot_p95_seconds of" in change for change in choice.would_fit)


def test_a_checkpoint_that_does_not_fit_is_quantised_as_it_is_loaded_where_the_manifest_leaves_that_open() -> None:
    manifest = written(LARGE, hardware={"instance_type": "p5.48xlarge", "gpus": 1}, batch={"max_model_len": 4096})
    choice = placed(manifest)
    assert choice.chosen is not None
    assert (choice.chosen.origin, choice.chosen.quantization) == (Origin.AT_LOAD, "fp8")
    assert choice.pinned is not None
    assert choice.pinned.spec.model == manifest.spec.model.model_copy(update={"quantization": "fp8"})
    assert stale(manifest, choice.pinned) == []
    assert not refuses(review(choice.pinned, FACTS, CATALOGUE))
    as_stored = next(item for item in choice.rejections if item.model_id == LARGE and item.quantization is None)
    assert as_stored.rule == "memory"
    assert any("was not measured" in note for note in choice.notes)
    kept = repin(choice.pinned, FACTS, CATALOGUE).pinned
    assert kept is not None
    assert kept.spec.model.quantization == "fp8"


def test_a_model_that_is_named_after_a_quantisation_which_it_has_not_is_never_loaded_in_it() -> None:
    where: dict[str, object] = {
        "hardware": {"instance_type": "g6.xlarge", "gpus": 1},
        "batch": {"max_model_len": 1024},
        "engine": {"name": "vllm"},
    }
    config = {**CONFIG, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 36}
    found = [
        placed(written(name, **where), model_configs={name: config}).chosen
        for name in ("example/big", "example/fp8-study")
    ]
    assert [None if item is None else item.quantization for item in found] == ["fp8", None]
    assert found[1] is None


def test_the_length_of_requests_is_judged_by_its_rule_alone() -> None:
    manifest = written(SMALL, batch={"max_model_len": 1024}, objectives={"input_tokens": 1024, "output_tokens": 1024})
    choice = placed(manifest)
    assert choice.chosen is None
    assert "requests-fit-context" in {item.rule for item in choice.rejections if item.engine == "vllm"}
    searched = search_hardware(manifest.spec, EngineName.VLLM, "0.33.0", FACTS)
    assert searched is not None
    assert searched.options


def test_a_checkpoint_that_fits_is_served_as_it_is_and_what_fewer_bits_would_save_is_said() -> None:
    choice = placed(written(LARGE))
    assert choice.chosen is not None
    assert choice.chosen.origin is Origin.ASKED
    smaller = [item for item in choice.rejections if item.quantization == "fp8" and item.rule == "score"]
    assert smaller
    assert any("it would cost $" in item.reason for item in smaller)


def test_what_does_not_fit_says_which_change_would_do() -> None:
    hardware = {"instance_type": "p5.48xlarge", "gpus": 1}
    choice = placed(written(LARGE, more={"quantization": "bf16"}, hardware=hardware))
    assert choice.chosen is None
    memory = next(item for item in choice.rejections if item.rule == "memory")
    assert memory.evidence["weights_bytes"] > memory.evidence["visible_bytes"]
    assert any("fp8" in change or "GPUs" in change for change in choice.would_fit)


def test_an_alternative_that_is_taken_is_pinned_with_its_own_revision_and_the_pin_is_not_stale() -> None:
    alternatives = [{"id": SMALL, "revision": "1" * 40, "kind": "smaller"}]
    manifest = written(LARGE, more={"alternatives": alternatives})
    choice = placed(manifest, pool("g6.xlarge"))
    assert choice.pinned is not None
    assert (choice.pinned.spec.model.id, choice.pinned.spec.model.revision) == (SMALL, "1" * 40)
    assert stale(manifest, choice.pinned) == []
    assert any(item.rule == "memory" and item.model_id == LARGE for item in choice.rejections)


def test_separate_prefill_and_decode_stay_as_they_are_written() -> None:
    side = {"hardware": {"instance_type": "p5.48xlarge", "gpus": 2}, "parallelism": {"tensor": 2}}
    wish = {"features": {"disaggregation": "prefill-decode"}, "batch": {"max_model_len": 8192}}
    choice = placed(written(LARGE, **wish, pools={"prefill": side, "decode": side}, engine={"name": "vllm"}))
    assert choice.chosen is not None, choice.rejections
    assert choice.chosen.plan is None
    if choice.pinned is not None:
        assert choice.pinned.spec.hardware is None
        assert choice.pinned.spec.pools is not None
    narrow = {"hardware": {"instance_type": "g6.xlarge", "gpus": 1}, "parallelism": {"tensor": 1}}
    failed = placed(written(LARGE, **wish, pools={"prefill": side, "decode": narrow}, engine={"name": "vllm"}))
    assert failed.chosen is None
    assert any(item.rule == "memory" and item.reason.startswith("decode: ") for item in failed.rejections)


@pytest.mark.parametrize(
    ("model", "ttft", "is_named"), [(LARGE, 0.04, True), (LARGE, 0.06, False), (MIDDLE, 0.04, False)]
)
def test_hosted_engines_are_named_for_a_very_early_first_token_of_a_large_model(
    model: str, ttft: float, is_named: bool
) -> None:
    choice = placed(written(model, objectives={"ttft_p95_seconds": ttft}))
    hosted = [item for item in choice.rejections if item.rule == "hosted-endpoint"]
    assert {item.engine for item in hosted} == (set(map(str, CATALOGUE.hosted_names)) if is_named else set())


@pytest.mark.parametrize(
    ("spec", "engine"),
    [
        ({"workload": "chat"}, "vllm"),
        ({"workload": "multimodal", "features": {"modalities": ["text", "image"]}}, "vllm"),
        ({"workload": "structured-output", "features": {"structured_output": True}}, "sglang"),
        ({"workload": "moe"}, "sglang"),
        ({"workload": "reasoning"}, "vllm"),
        ({"workload": "embedding"}, "vllm"),
        (
            {
                "workload": "chat",
                "batch": {"max_model_len": 16384, "enable_prefix_caching": True},
                "objectives": {"input_tokens": 8000, "output_tokens": 200},
            },
            "sglang",
        ),
    ],
)
def test_a_workload_goes_to_the_engine_that_suits_it_among_those_that_the_rules_accept(
    spec: dict[str, Any], engine: str
) -> None:
    model = "Qwen/Qwen3-30B-A3B" if spec["workload"] == "moe" else "Qwen/Qwen3-8B"
    chosen = placed(written(model, **spec)).chosen
    assert chosen is not None
    assert chosen.engine == engine


def test_the_latency_critical_deployment_prefers_tensorrt_llm_where_its_version_is_acceptable() -> None:
    manifest = written("Qwen/Qwen3-8B", workload="latency-critical")
    scores = {name: CATALOGUE.preference(manifest, name).score for name in CATALOGUE.names}
    assert max(scores, key=lambda name: scores[name]) == "tensorrt-llm"


def test_the_share_of_a_gpu_that_others_use_is_written_into_the_pin_and_asked_again_stays() -> None:
    shared = pool("g6.xlarge", sharing="mps")
    choice = placed(written(SMALL, batch={"max_model_len": 4096}, engine={"name": "vllm"}), shared)
    assert isinstance(choice.pinned, PinnedManifest)
    assert choice.pinned.spec.hardware is not None
    share = choice.pinned.spec.hardware.memory_share
    assert share is not None
    assert 0 < share < 0.5
    again = placed(written(SMALL, hardware=choice.pinned.spec.hardware.model_dump(), engine={"name": "vllm"}), shared)
    assert again.pinned is not None
    assert again.pinned.spec.hardware == choice.pinned.spec.hardware
    alone = placed(written(SMALL), pool("g6.xlarge")).pinned
    assert alone is not None
    assert alone.spec.hardware is not None
    assert alone.spec.hardware.memory_share is None
    named = placed(written(SMALL, engine={"name": "tensorrt-llm"}), shared)
    assert named.chosen is None
    assert "sharing" in rules_of(named)
