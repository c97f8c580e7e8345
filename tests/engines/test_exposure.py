"""Code paths: on unless it can be told that they are off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import Catalogue, load
from fleet.codepath import ALWAYS_EXPOSED, KNOWN_PATHS
from fleet.spec import EngineName

KNOWN = [(name, version) for name in EngineName for version in load().books[name].versions]
PLAIN = {"structured_output": False, "tool_parser": None}
ONE_GPU = {"parallelism": {"tensor": 1}, "hardware": {"instance_type": "g6.xlarge", "gpus": 1}}


def paths(catalogue: Catalogue, manifest, version: str | None = None) -> frozenset[str]:
    engine = manifest.spec.engine
    return catalogue.exposure(manifest, engine.name, version or engine.version).paths


def test_a_plain_chat_on_one_gpu_opens_little_in_vllm(catalogue: Catalogue, pinned) -> None:
    manifest = pinned("vllm", "0.33.0", features=PLAIN, **ONE_GPU)
    assert paths(catalogue, manifest) == ALWAYS_EXPOSED | {"structured-output", "chat-template", "cache"}


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ({"--enable-prompt-embeds": True}, "prompt-embeds"),
        ({"--enable-mm-embeds": True}, "multimodal"),
        ({"--kv-transfer-config": '{"kv_connector":"x"}'}, "disaggregation"),
        ({"--kv-offloading-size": 8}, "disaggregation"),
        ({"--nnodes": 2}, "multi-node"),
        ({"--tool-call-parser": "hermes"}, "tool-parser"),
        ({"--enable-lora": True}, "lora"),
        ({"--spec-method": "ngram"}, "speculative"),
        ({"--grpc": True}, "grpc"),
        ({"--grpc-port": 5}, "grpc"),
        ({"--weight-transfer-config": '{"backend":"nccl"}'}, "weight-endpoints"),
        ({"--profiler-config": '{"profiler":"torch"}'}, "debug"),
    ],
)
def test_a_flag_of_vllm_opens_its_path_and_says_so(catalogue: Catalogue, pinned, flags, path) -> None:
    manifest = pinned("vllm", "0.33.0", flags=flags, features=PLAIN, **ONE_GPU)
    reasons = catalogue.exposure(manifest, EngineName.VLLM, "0.33.0").reasons
    assert next(iter(flags)) in reasons[path]
    assert path not in paths(catalogue, pinned("vllm", "0.33.0", features=PLAIN, **ONE_GPU))


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ({"features": {"lora": ["acme/tone"]}}, "lora"),
        ({"features": {"speculative": "ngram"}}, "speculative"),
        ({"features": {"tool_parser": "hermes"}}, "tool-parser"),
        ({"features": {"disaggregation": "prefill-decode"}}, "disaggregation"),
        ({"features": {"kv_offload": "host"}}, "disaggregation"),
        ({"features": {"modalities": ["text", "image"]}}, "multimodal"),
        ({"features": {"modalities": ["text", "audio"]}}, "media-ssrf"),
        ({"workload": "batch"}, "batch-runner"),
        ({"hardware": {"instance_type": "p5.48xlarge", "gpus": 2}, "parallelism": {"tensor": 2}}, "multi-node"),
        ({"hardware": {"instance_type": "p5.48xlarge", "gpus": 2}, "parallelism": {"data": 2}}, "multi-node"),
        ({"batch": {"max_model_len": 8, "enable_prefix_caching": True}}, "cache"),
        ({"choice": {"runtime": "image", "image": "x@sha256:" + "0" * 64}}, "image-build"),
    ],
)
def test_a_feature_opens_its_path_in_vllm(catalogue: Catalogue, pinned, parts, path) -> None:
    closed = {"features": PLAIN, "batch": {"max_model_len": 8, "enable_prefix_caching": False}, **ONE_GPU}
    assert path in paths(catalogue, pinned("vllm", "0.33.0", **{**closed, **parts}))
    assert path not in paths(catalogue, pinned("vllm", "0.33.0", **closed))


def test_text_only_is_a_property_of_model_and_flags(catalogue: Catalogue, pinned) -> None:
    """vLLM and SGLang get a limit of 0 rendered; without it only a model that takes text by nature is text only."""
    vision = {"id": "Qwen/Qwen3-VL-8B-Instruct", "revision": "abc"}
    zeros = '{"image":0,"video":0,"audio":0}'
    some = '{"image":1,"video":0,"audio":0}'
    is_open = {
        ("vllm", "0.33.0", "{}"): True,
        ("vllm", "0.33.0", some): True,
        ("vllm", "0.33.0", zeros): False,
        ("vllm", "0.33.0", "not json"): True,
    }
    for (engine, version, limit), expected in is_open.items():
        manifest = pinned(engine, version, model=vision, flags={"--limit-mm-per-prompt": limit})
        assert ("multimodal" in paths(catalogue, manifest)) is expected, limit
    assert "multimodal" not in paths(catalogue, pinned("vllm", "0.33.0", model=vision))
    assert "multimodal" not in paths(catalogue, pinned("sglang", "0.5.23", model=vision))
    assert "multimodal" in paths(catalogue, pinned("sglang", "0.4.10.post2", model=vision)), "no such flag yet"
    assert "multimodal" not in paths(catalogue, pinned("sglang", "0.4.10.post2"))
    assert "multimodal" in paths(catalogue, pinned("tensorrt-llm", "1.2.1", model=vision)), "no such flag at all"
    assert "multimodal" not in paths(catalogue, pinned("lmdeploy", "0.18.0", model=vision))


def test_a_model_that_the_data_does_not_know_may_take_media(catalogue: Catalogue, pinned) -> None:
    manifest = pinned("tensorrt-llm", "1.2.1", model={"id": "acme/unheard-of", "revision": "abc"})
    reasons = catalogue.exposure(manifest, EngineName.TENSORRT_LLM, "1.2.1").reasons
    assert "acme/unheard-of is not known to take text only" in reasons["multimodal"]


def test_sglang_without_a_grammar_backend_closes_structured_output(catalogue: Catalogue, pinned) -> None:
    assert "structured-output" not in paths(catalogue, pinned("sglang", "0.5.23", features=PLAIN))
    assert "structured-output" in paths(catalogue, pinned("sglang", "0.5.23", features={"structured_output": True}))
    assert "structured-output" in paths(catalogue, pinned("sglang", "0.4.3", features=PLAIN)), "no such choice yet"


def test_sglang_can_always_have_its_weights_replaced(catalogue: Catalogue, pinned) -> None:
    assert "weight-endpoints" in paths(catalogue, pinned("sglang", "0.5.23", features=PLAIN, **ONE_GPU))
    assert "weight-endpoints" not in paths(catalogue, pinned("vllm", "0.33.0", features=PLAIN, **ONE_GPU))


def test_while_the_hardware_is_open_there_may_be_several_gpus(catalogue: Catalogue, pinned) -> None:
    manifest = pinned("vllm", "0.33.0", features=PLAIN, **ONE_GPU)
    spec = manifest.spec.model_copy(update={"hardware": None})
    assert "multi-node" in paths(catalogue, manifest.model_copy(update={"spec": spec}))


def test_a_version_older_than_every_flag_list_opens_everything(catalogue: Catalogue, pinned) -> None:
    exposure = catalogue.exposure(pinned("vllm", "0.14.1"), EngineName.VLLM, "0.14.1")
    assert exposure.paths == frozenset(KNOWN_PATHS)
    assert "0.14.1" in exposure.reasons["multimodal"]


@given(st.sampled_from(KNOWN), st.data())
def test_asking_for_more_never_closes_a_path_but_grammars(catalogue: Catalogue, pinned, known, data):
    name, version = known
    less = {"modalities": ["text"], **PLAIN}
    more = {
        "modalities": ["text", "image"],
        "lora": ["acme/tone"],
        "disaggregation": "prefill-decode",
        "kv_offload": "host",
        "speculative": "mtp",
        "tool_parser": "qwen3_coder",
        "structured_output": True,
        "trust_remote_code": True,
    }
    chosen = data.draw(st.sets(st.sampled_from(sorted(more))))
    both = less | {key: more[key] for key in chosen}
    few, many = (paths(catalogue, pinned(name, version, features=found)) for found in (less, both))
    assert few <= many
    assert many >= ALWAYS_EXPOSED
    assert many <= frozenset(KNOWN_PATHS)
