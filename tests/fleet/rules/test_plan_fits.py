"""A pinned plan that can't start is refused with numbers; what is not known, or nearly fits, refuses nothing."""

from datetime import date

import pytest

from engines.catalogue import load
from fleet.facts import AdvisoryData, Facts
from fleet.manifest import Manifest, PinnedManifest, PinRecord
from fleet.policy import Policy
from fleet.rules import review
from fleet.rules.fit import PLAN_FITS
from fleet.spec import Metadata, Spec
from fleet.violation import Enforcement, Violation

FACTS = Facts(today=date(2030, 1, 1), data=AdvisoryData(), policy=Policy(allow_runtime_process=True))
MODEL = "Qwen/Qwen3-32B"


def said(
    model: str = MODEL,
    *,
    gpus: int = 2,
    instance: str = "p5.48xlarge",
    context: int = 8192,
    facts: Facts = FACTS,
    **more,
) -> list[Violation]:
    spec = {
        "workload": "chat",
        "model": {"id": model, "revision": "0" * 40, **more},
        "engine": {"name": "vllm", "version": "0.33.0", "runtime": "process"},
        "batch": {"max_model_len": context, "max_num_batched_tokens": 8192, "max_num_seqs": 128},
        "hardware": {"instance_type": instance, "gpus": gpus},
        "parallelism": {"tensor": gpus},
    }
    pin = PinRecord(source_digest="", facts_digest="", catalogue_digest="", runtime="process")
    manifest = PinnedManifest(metadata=Metadata(name="x"), spec=Spec.model_validate(spec), pin=pin)
    return [item for item in review(manifest, facts, load()) if item.rule == PLAN_FITS]


def test_a_plan_that_fits_says_nothing():
    assert said() == []


def test_heads_that_do_not_divide_are_refused_with_both_numbers():
    (found,) = said("Qwen/Qwen2.5-7B-Instruct", gpus=8)
    assert found.severity is Enforcement.MANDATORY
    assert found.evidence["reason"] == "heads-divisible"
    assert "28" in found.message


def test_weights_larger_than_the_gpus_are_refused():
    found = said("deepseek-ai/DeepSeek-V3", gpus=1, instance="p5.4xlarge")
    assert any(item.evidence["reason"] == "memory" and item.severity is Enforcement.MANDATORY for item in found)


def test_a_context_above_the_models_own_is_refused_at_the_batch():
    found = next(item for item in said(context=1_000_000) if item.evidence["reason"] == "context-length")
    assert found.pointer == "/spec/batch/max_model_len"


@pytest.mark.parametrize("model", ["invented/model", "ibm-granite/granite-4.0-h-1b"])
def test_a_model_of_which_too_little_is_known_refuses_nothing(model: str):
    assert said(model) == []


def test_the_environments_own_configuration_counts_before_the_catalogues():
    tiny = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 10,
        "num_key_value_heads": 10,
        "head_dim": 64,
        "num_hidden_layers": 4,
        "vocab_size": 32000,
        "max_position_embeddings": 8192,
    }
    facts = FACTS.model_copy(update={"model_configs": {MODEL: tiny}})
    (found,) = said(gpus=4, facts=facts)
    assert found.evidence["reason"] == "heads-divisible"


def said_of_written(
    model: str = MODEL,
    *,
    hardware: tuple[str, int] | None = ("p5.48xlarge", 2),
    split: dict[str, int] | None = None,
    version: str | None = "0.33.0",
    **batch: int,
) -> list[Violation]:
    spec: dict[str, object] = {
        "workload": "chat",
        "model": {"id": model},
        "engine": {"name": "vllm"} | ({"version": version} if version else {}),
        "batch": {"max_model_len": 8192} | batch,
    }
    if hardware:
        spec["hardware"] = {"instance_type": hardware[0], "gpus": hardware[1]}
    if split:
        spec["parallelism"] = split
    manifest = Manifest(metadata=Metadata(name="x"), spec=Spec.model_validate(spec))
    return [item for item in review(manifest, FACTS, load()) if item.rule == PLAN_FITS]


def test_a_written_split_that_does_not_divide_the_heads_is_refused_before_it_is_pinned():
    found = said_of_written(hardware=("p5.48xlarge", 3), split={"tensor": 3})
    heads = next(item for item in found if item.evidence["reason"] == "heads-divisible")
    assert heads.severity is Enforcement.MANDATORY
    assert heads.pointer == "/spec/parallelism"
    assert "64" in heads.message


@pytest.mark.parametrize("hardware", [("p5.4xlarge", 1), ("p5.48xlarge", 2)])
def test_a_written_context_above_the_models_own_is_refused_before_it_is_pinned(hardware: tuple[str, int]):
    split = {"tensor": hardware[1]} if hardware[1] > 1 else None
    found = said_of_written(hardware=hardware, split=split, max_model_len=500_000)
    assert any(item.evidence["reason"] == "context-length" for item in found)


@pytest.mark.parametrize(
    "open_part", [{"version": None, "split": {"tensor": 3}}, {"hardware": None}, {"hardware": ("p5.48xlarge", 3)}]
)
def test_what_a_written_manifest_leaves_open_is_not_judged(open_part: dict):
    assert said_of_written(max_model_len=500_000, **open_part) == []


def test_an_unknown_model_in_a_written_manifest_refuses_nothing():
    assert said_of_written("invented/model", hardware=("p5.48xlarge", 3), split={"tensor": 3}) == []


def test_batch_fields_that_nobody_wrote_are_the_engines_own_and_written_ones_count():
    l4 = ("g6.xlarge", 1)
    assert said_of_written("Qwen/Qwen3-8B", hardware=l4, max_model_len=16384) == []
    found = said_of_written("Qwen/Qwen3-8B", hardware=l4, max_model_len=16384, max_num_batched_tokens=65536)
    assert [item.evidence["reason"] for item in found] == ["memory"]


def test_each_pool_of_a_written_manifest_is_judged_where_its_split_is_written():
    instance = "p5.48xlarge"
    pools = {
        "prefill": {"hardware": {"instance_type": instance, "gpus": 3}, "parallelism": {"tensor": 3}},
        "decode": {"hardware": {"instance_type": instance, "gpus": 3}},
    }
    spec = {
        "workload": "chat",
        "model": {"id": MODEL},
        "engine": {"name": "vllm", "version": "0.33.0"},
        "batch": {"max_model_len": 8192},
        "pools": pools,
        "features": {"disaggregation": "prefill-decode"},
    }
    manifest = Manifest(metadata=Metadata(name="x"), spec=Spec.model_validate(spec))
    found = {item.pointer for item in review(manifest, FACTS, load()) if item.rule == PLAN_FITS}
    assert found == {"/spec/pools/prefill/parallelism"}
