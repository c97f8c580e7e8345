"""Constants of a start-up: chosen by version, said where they are not the version's own."""

from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.memory_constants import (
    ModelClass,
    batch_defaults,
    constants_for,
    default_utilization,
    memory_file,
    static_fraction,
)

MEASURED = {
    "LlamaForCausalLM": (1.89, 128256, ModelClass.DENSE),
    "Qwen2ForCausalLM": (2.25, 151936, ModelClass.DENSE),
    "Qwen3ForCausalLM": (2.21, 151936, ModelClass.DENSE),
    "Mistral3ForConditionalGeneration": (2.1, 131072, ModelClass.MULTIMODAL),
    "DeepseekV2ForCausalLM": (1.93, 102400, ModelClass.MOE),
    "GraniteForCausalLM": (0.85, 49155, ModelClass.DENSE),
    "LlavaNextForConditionalGeneration": (0.79, 32064, ModelClass.MULTIMODAL),
    "MixtralForCausalLM": (1.21, 32000, ModelClass.MOE),
    "Phi3ForCausalLM": (1.52, 100352, ModelClass.DENSE),
    "Qwen2MoeForCausalLM": (2.47, 151936, ModelClass.MOE),
    "Qwen3MoeForCausalLM": (2.68, 151936, ModelClass.MOE),
    "Gemma2ForCausalLM": (3.65, 256000, ModelClass.DENSE),
    "Gemma3ForCausalLM": (3.94, 262208, ModelClass.MULTIMODAL),
    "GemmaForCausalLM": (3.63, 256000, ModelClass.DENSE),
}
"""GiB (vLLM 0.19.0, H100, 1024 sequences; llm-d-planner 0.3.3), vocabulary of the measured checkpoint, class."""


@given(engine=st.text(max_size=12), version=st.one_of(st.none(), st.text(max_size=12)))
def test_every_engine_and_version_gets_constants_and_an_unmeasured_one_a_note(engine, version):
    chosen = constants_for(engine, version)
    assert chosen.constants in memory_file().constants or version is None
    if engine not in {item.engine for item in memory_file().constants}:
        assert "was measured" in chosen.note
    assert 0.5 < default_utilization(engine, version) <= 1


@given(gib=st.floats(min_value=8, max_value=300), ranks=st.integers(min_value=1, max_value=64))
def test_the_static_share_stays_a_share(gib, ranks):
    share = static_fraction(int(gib * 2**30), chunk_tokens=8192, graph_sequences=256, data_ranks=ranks)
    assert 0.05 <= share < 1


def test_the_nearest_measured_version_stands_in_and_says_so():
    assert constants_for("vllm", "0.11.2").note is None
    assert constants_for("vllm", "0.19.1").note is None
    for version, nearest in (("0.9.0", "0.11.0"), ("0.14.0", "0.11.0"), ("0.17.0", "0.19.0"), ("0.33.0", "0.19.0")):
        chosen = constants_for("vllm", version)
        assert chosen.constants.measured_on == nearest
        assert version in chosen.note
        assert nearest in chosen.note
    assert "not a release number" in constants_for("vllm", "nightly-dev").note


def test_an_open_version_takes_the_largest_of_each():
    chosen = constants_for("vllm", None).constants
    assert chosen.activation.bytes_per_sequence_and_vocabulary_entry == 38.9
    assert chosen.non_torch_gib.tensor == 2.10


def test_the_activation_peak_follows_the_vocabulary_on_every_measured_architecture():
    constants = constants_for("vllm", "0.19.0").constants.activation
    for name, (gib, vocabulary, model_class) in MEASURED.items():
        peak = constants.peak_bytes(model_class, sequences=1024, vocabulary=vocabulary) / 2**30
        assert abs(peak - gib) <= 0.25, (name, peak, gib)


def test_defaults_are_those_of_the_version():
    assert default_utilization("vllm", "0.18.1") == 0.90
    assert default_utilization("vllm", "0.20.2") == 0.92
    assert default_utilization("vllm", None) == 0.90


def test_large_gpus_batch_more_and_the_a100_does_not():
    sizes = {
        name: batch_defaults("vllm", hardware.gpu(name), hardware.gpu(name).memory_bytes).max_num_seqs
        for name in ("L4", "A100-80", "H100", "B300")
    }
    assert sizes == {"L4": 256, "A100-80": 256, "H100": 1024, "B300": 1024}
