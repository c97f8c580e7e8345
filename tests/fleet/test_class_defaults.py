"""What a key means that is not stated: a size of no model is guessed, and a section means its class's own values."""

import json
from functools import cache
from pathlib import Path

import pytest

from fleet.kv_cache import kv_bytes_per_token, kv_sliding, state_bytes_per_sequence
from fleet.model import Missing
from fleet.model_reading import read_model
from fleet.model_reading.class_defaults import class_defaults, demanded, is_encoder_decoder
from fleet.model_reading.family_table import FAMILIES
from fleet.model_reading.names import ALIASES
from fleet.weights import weights_bytes_total

DATA = Path(__file__).resolve().parents[1] / "data" / "models"
CONFIGS = sorted((DATA / "configs").glob("*.json"))
PUBLISHED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in CONFIGS}
DEMANDS = [
    (name, figure)
    for name, config in PUBLISHED.items()
    for figure in demanded(config.get("model_type"))
    if not config.keys().isdisjoint((figure, *ALIASES.get(figure, ())))
]
DENSE = json.loads((DATA / "dense.json").read_text(encoding="utf-8"))
GQA = {key: value for key, value in DENSE.items() if key not in ("architectures", "model_type", "num_key_value_heads")}
GQA |= {"hidden_size": 512, "intermediate_size": 1024, "head_dim": 64, "sliding_window": None}
MIXTURE = {"num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}


def figures(config: dict[str, object]) -> tuple[object, ...]:
    model = read_model(config, id="x")
    known = (weights_bytes_total(model, "bf16"), kv_bytes_per_token(model, "bf16"))
    return (*known, kv_sliding(model, "bf16"), state_bytes_per_sequence(model))


@cache
def whole_figures(name: str) -> tuple[object, ...]:
    return figures(PUBLISHED[name])


@pytest.mark.parametrize(("name", "figure"), DEMANDS)
def test_a_figure_that_a_published_configuration_loses_is_unknown_with_its_key_and_never_another_number(name, figure):
    whole = PUBLISHED[name]
    cut = {key: value for key, value in whole.items() if key not in (figure, *ALIASES.get(figure, ()))}
    spelled = demanded(whole["model_type"])[figure]
    for had, has in zip(whole_figures(name)[:2], figures(cut)[:2], strict=True):
        assert has == had or (isinstance(has, Missing) and has.key == spelled), (figure, had, has)


def test_some_published_configurations_are_cut():
    assert {"num_key_value_heads", "kv_lora_rank", "num_experts"} <= {figure for _, figure in DEMANDS}


@pytest.mark.parametrize("kind", ["mixtral", "qwen3", "qwen3_moe", "mistral", "glm4", "yi", "bailing_moe"])
def test_kv_heads_are_not_taken_for_as_many_as_the_others_where_the_class_has_a_number_of_its_own(kind):
    lacking = kv_bytes_per_token(read_model({**GQA, **MIXTURE, "model_type": kind}, id="x"), "bf16")
    assert isinstance(lacking, Missing)
    assert lacking.key == "num_key_value_heads"


@pytest.mark.parametrize("kind", ["llama", "internlm2", "minicpm", "olmo", "phi3"])
def test_kv_heads_are_as_many_as_the_others_where_the_class_says_so(kind):
    assert kv_bytes_per_token(read_model({**GQA, "model_type": kind}, id="x"), "bf16") == 4 * 8 * 2 * 64 * 2


@pytest.mark.parametrize("kind", ["mixtral", "minimax_m2", "glm4_moe"])
def test_a_null_where_the_class_takes_none_states_nothing(kind):
    config = {**GQA, **MIXTURE, "model_type": kind, "num_key_value_heads": None}
    if kind == "glm4_moe":
        config |= {"n_shared_experts": 1, "first_k_dense_replace": 1, "num_nextn_predict_layers": 0}
    lacking = kv_bytes_per_token(read_model(config, id="x"), "bf16")
    assert isinstance(lacking, Missing)
    assert lacking.key == "num_key_value_heads"
    experts = {**config, "num_key_value_heads": 2, "num_local_experts": None}
    assert isinstance(weights_bytes_total(read_model(experts, id="x")), Missing)


@pytest.mark.parametrize("kind", ["olmo2", "qwen3", "llama"])
def test_kv_heads_that_are_null_are_as_many_as_the_others(kind):
    config = {**GQA, **MIXTURE, "model_type": kind, "num_key_value_heads": None}
    assert kv_bytes_per_token(read_model(config, id="x"), "bf16") == 4 * 8 * 2 * 64 * 2


@pytest.mark.parametrize(("kind", "heads"), [("qwen3_moe", 4), ("mistral", 8), ("qwen3", 32), ("gemma", 16)])
def test_a_section_without_kv_heads_has_those_of_its_class(kind, heads):
    section = {**GQA, **MIXTURE, "model_type": kind, "num_attention_heads": 32}
    config = {"model_type": "invented_wrapper", "text_config": section, "tie_word_embeddings": False}
    assert kv_bytes_per_token(read_model(config, id="x"), "bf16") == 4 * heads * 2 * 64 * 2


def test_lists_of_layers_are_the_classs_only_for_as_many_layers():
    same = class_defaults("mllama_text_model", "text", layers=40)
    assert len(same["cross_attention_layers"]) == 8
    assert "cross_attention_layers" not in class_defaults("mllama_text_model", "text", layers=12)
    assert class_defaults("mllama_text_model", "text") == same


@pytest.mark.parametrize(
    ("changed", "stated"),
    [
        ({"model_type": "seed_oss", "num_key_value_heads": 2}, {"attention_bias": True, "attention_out_bias": False}),
        ({"model_type": "glm4_moe", "num_key_value_heads": 2}, {"attention_bias": False, "use_qk_norm": False}),
        ({"model_type": "jais2", "num_key_value_heads": 2}, {"attention_bias": True, "mlp_bias": True}),
        ({"model_type": "falcon"}, {"multi_query": True}),
        ({"model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 4096}, {}),
    ],
)
def test_switches_that_are_not_stated_are_the_architectures_own(changed, stated):
    more = {"n_shared_experts": 1, "first_k_dense_replace": 1, **MIXTURE} if changed["model_type"] == "glm4_moe" else {}
    plain = {key: value for key, value in {**GQA, **more, **changed}.items() if value is not None}
    if not stated:
        del plain["sliding_window"]
    assert figures(plain) == figures({**GQA, **more, **changed, **stated})


@pytest.mark.parametrize("kind", ["bert", "gpt_neox", "opt", "phi", "persimmon", "xglm"])
def test_a_width_is_four_times_the_models_only_where_the_class_says_so(kind):
    config = {key: value for key, value in GQA.items() if key != "intermediate_size"}
    config |= {"model_type": kind, "max_position_embeddings": 512, "type_vocab_size": 2}
    lacking = weights_bytes_total(read_model(config, id="x"))
    assert isinstance(lacking, Missing)
    assert lacking.key == {"opt": "ffn_dim", "xglm": "ffn_dim"}.get(kind, "intermediate_size")
    assert not isinstance(weights_bytes_total(read_model({**config, "model_type": "gpt2"}, id="x")), Missing)


def test_what_is_demanded_belongs_to_architectures_that_are_read():
    text = Path(__file__).resolve().parents[2] / "fleet" / "model_reading" / "class_defaults.json"
    known = json.loads(text.read_text(encoding="utf-8"))
    assert "transformers 5.24.0" in known["source"]
    for kind, figures_of_class in known["demanded"].items():
        assert not FAMILIES.keys().isdisjoint((kind, kind.removesuffix("_text"))) or is_encoder_decoder(kind)
        assert figures_of_class


MEANT = {
    "tie_word_embeddings": "not tied",
    "head_dim": "hidden_size divided by the heads (qwen3_moe)",
    "num_key_value_heads": "as many as the others (llama, olmo3, granitemoehybrid)",
    "first_k_dense_replace": "no dense layer (deepseek_v2)",
    "moe_latent_size": "experts as wide as the model (nemotron_h)",
    "mtp_layers_block_type": "attention and experts (nemotron_h)",
    "num_nextn_predict_layers": "none (nemotron_h)",
    "attention_bias": "none (glm4_moe)",
}
"""Keys that published configurations may lose for what their class takes instead: null, and nothing is a size."""
SECTIONS = {"text_config", "vision_config", "audio_config"}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_whatever_a_published_configuration_loses_its_figures_are_the_same_or_unknown_or_what_its_class_means(name):
    whole = PUBLISHED[name]
    before = figures(whole)[:2]
    for key in whole.keys() - SECTIONS:
        after = figures({other: value for other, value in whole.items() if other != key})[:2]
        same = all(now == had or isinstance(now, Missing) for had, now in zip(before, after, strict=True))
        assert same or (key in MEANT and after == figures({**whole, key: None})[:2]), (key, before, after)


@pytest.mark.parametrize(
    ("name", "lost", "named"),
    [
        ("deepseek-ai--DeepSeek-R1", "n_routed_experts", "n_routed_experts"),
        ("mistralai--Mixtral-8x7B-v0.1", "intermediate_size", "intermediate_size"),
        ("openai--gpt-oss-20b", "sliding_window", "sliding_window"),
        ("ai21labs--Jamba-v0.1", "mamba_d_state", "mamba_d_state"),
        ("ai21labs--Jamba-v0.1", "attn_layer_period", "attn_layer_period"),
        ("openai--whisper-large-v3-turbo", "decoder_layers", "decoder_layers"),
        ("moonshotai--Kimi-Linear-48B-A3B-Instruct", "num_experts_per_token", "num_experts_per_token"),
    ],
)
def test_the_key_that_is_missing_is_named_as_the_architecture_spells_it(name, lost, named):
    cut = {key: value for key, value in PUBLISHED[name].items() if key != lost}
    lacking = figures(cut)[0]
    assert isinstance(lacking, Missing)
    assert lacking.key == named


def test_what_the_cache_lacks_is_named_apart_from_what_the_weights_lack():
    config = {**GQA, "model_type": "qwen3_moe", **MIXTURE}
    del config["num_experts_per_tok"]
    weights, cache, *_ = figures(config)
    assert (weights.key, cache.key) == ("num_experts_per_tok", "num_key_value_heads")


def test_a_section_is_as_deep_as_its_list_of_layers_and_not_as_its_class():
    whole = PUBLISHED["Qwen--Qwen3.5-122B-A10B"]
    section = {key: value for key, value in whole["text_config"].items() if key != "num_hidden_layers"}
    assert figures({**whole, "text_config": section}) == figures(whole)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_without_a_model_type_the_class_names_the_architecture_or_nothing_is_known(name):
    whole = PUBLISHED[name]
    cut = {key: value for key, value in whole.items() if key != "model_type"}
    named, unnamed = figures(cut)[:2], figures({key: value for key, value in cut.items() if key != "architectures"})[:2]
    if SECTIONS.isdisjoint(whole):
        assert all(has == had or isinstance(has, Missing) for has, had in zip(named, figures(whole)[:2], strict=True))
        assert all(isinstance(has, Missing) and has.key == "model_type" for has in unnamed) or unnamed == named
