"""Reading any configuration: a model or an error with the key; then the odd keys of single architectures."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.kv_cache import cross_bytes_per_sequence, kv_bytes_per_token, kv_sliding, state_bytes_per_sequence
from fleet.model import ChunkedAttention, FullAttention, Missing, Model, UncachedAttention, UnknownAttention
from fleet.model_config import ConfigError
from fleet.model_reading import read_model
from fleet.model_reading.family_table import FAMILIES
from fleet.model_reading.names import ALIASES
from fleet.weights import parameters_active, parameters_total, weights_bytes_total

DATA = Path(__file__).resolve().parents[1] / "data" / "models"
CONFIGS = sorted((DATA / "configs").glob("*.json"))
PUBLISHED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in CONFIGS}
LLAMA = json.loads((DATA / "dense.json").read_text(encoding="utf-8"))
THIN = {"head_dim": 32, "v_head_dim": 32}
KEYS = st.sampled_from(
    sorted(
        {
            *ALIASES,
            *(name for names in ALIASES.values() for name in names),
            *(key for config in PUBLISHED.values() for key in config),
            *("text_config", "block_configs", "vision_config", "layer_types", "quantization_config", "model_type"),
        }
    )
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.integers()
    | st.floats()
    | st.sampled_from(["full_attention", "mamba", "auto", "M*E-", "fp8", "nvfp4", *sorted(FAMILIES)])
    | st.text(max_size=4)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=20
)


def read(**changed):
    return read_model({**LLAMA, **changed}, id="config.json")


def attempt(config: dict[str, object], name: str) -> Model | ConfigError:
    try:
        return read_model(config, id=name)
    except ConfigError as refused:
        return refused


def is_answered(config: dict[str, object], name: str) -> None:
    """There is a model whose figures are numbers or name what is missing, or an error that names the key."""
    answer = attempt(config, name)
    if isinstance(answer, ConfigError):
        assert answer.key
        assert str(answer).startswith(f"{name}: {answer.key}: ")
        return
    for figure in (weights_bytes_total(answer), kv_bytes_per_token(answer), parameters_active(answer)):
        assert (figure.key and figure.message) if isinstance(figure, Missing) else figure >= 0


@settings(max_examples=300)
@given(config=st.dictionaries(KEYS, VALUES, max_size=25))
def test_any_object_is_a_model_or_a_config_error(config):
    is_answered(config, "any")


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(PUBLISHED)), key=KEYS, value=VALUES)
def test_a_published_configuration_with_one_key_changed_is_a_model_or_a_config_error(name, key, value):
    config = PUBLISHED[name]
    inner = config.get("text_config")
    changed = {**config, key: value} if inner is None else {**config, "text_config": {**inner, key: value}}
    is_answered(changed, name)


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(PUBLISHED)), data=st.data())
def test_a_configuration_without_one_of_its_keys_is_read_or_says_which(name, data):
    config = dict(PUBLISHED[name])
    del config[data.draw(st.sampled_from(sorted(config)))]
    is_answered(config, name)


@given(name=st.sampled_from(sorted(PUBLISHED)))
def test_reading_twice_gives_the_same(name):
    assert read_model(PUBLISHED[name], id=name) == read_model(PUBLISHED[name], id=name)


@given(layers=st.integers(1, 60), more=st.integers(1, 20))
def test_more_layers_need_more_of_everything(layers, more):
    fewer, deeper = read(num_hidden_layers=layers), read(num_hidden_layers=layers + more)
    assert kv_bytes_per_token(fewer) < kv_bytes_per_token(deeper)
    assert weights_bytes_total(fewer) < weights_bytes_total(deeper)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num_attention_heads": -8}, "num_attention_heads: -8 is not a positive whole number"),
        ({"num_attention_heads": 7}, "num_attention_heads: 7 does not divide hidden_size 256"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 KV heads do not divide 8 attention heads"),
        ({"hidden_size": "big"}, "hidden_size: 'big' is not a positive whole number"),
        ({"hidden_size": True}, "hidden_size: True is not a positive whole number"),
        ({"vocab_size": float("nan")}, "vocab_size: nan is not a positive whole number"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers: 1000000 layers are more than any model's"),
        ({"num_hidden_layers": 513}, "num_hidden_layers: 513 layers are more than any model's"),
        ({"cross_attention_layers": [0] * 10_001}, "a list of 10,001 entries is longer than any model's"),
        ({"intermediate_size": 10**30}, "intermediate_size: a number of more than 20 digits is larger"),
        ({"num_nextn_predict_layers": 10**6}, "num_nextn_predict_layers: 1000000 layers for multi-token prediction"),
        ({"text_config": 3}, "text_config: 3 is not an object"),
        ({"layer_types": ["full_attention"]}, "layer_types: 1 entries for num_hidden_layers 4"),
        ({"layer_types": "full"}, "layer_types: 'full' is not a list"),
        ({"num_local_experts": 4, "num_experts_per_tok": 9}, "num_experts_per_tok: 9 experts per token of 4"),
        ({"hybrid_override_pattern": "MX*-"}, "hybrid_override_pattern: 'X' is none of"),
    ],
)
def test_an_impossible_value_is_named_with_its_key(changed, said):
    with pytest.raises(ConfigError) as refused:
        read(**changed)
    assert said in str(refused.value)


def test_experts_of_which_nothing_says_how_many_make_the_weights_unknown():
    experts = {"moe_intermediate_size": 64, "num_experts_per_tok": 2}
    assert weights_bytes_total(read(**experts)).key == "num_experts"
    assert isinstance(weights_bytes_total(read(**experts, num_experts=None)), int)
    assert weights_bytes_total(read(**experts, num_experts=4)) > weights_bytes_total(read(**experts, num_experts=2))


def test_integers_of_an_impossible_width_are_not_read():
    stored = {"quant_method": "gptq", "bits": 10**9, "group_size": 128}
    assert weights_bytes_total(read(quantization_config=stored)).message.endswith("'1000000000' is not known")


@pytest.mark.parametrize("listed", ["9" * 5000, "²", "1,,x, 2"])
def test_a_text_that_lists_layers_may_hold_anything(listed):
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    assert read(**experts, moe_layers_enum=listed).layers


def test_a_missing_key_is_named_and_what_can_be_known_is_known():
    without = {key: value for key, value in LLAMA.items() if key != "intermediate_size"}
    model = read_model(without, id="x")
    weights = weights_bytes_total(model)
    assert isinstance(weights, Missing)
    assert weights.key == "intermediate_size"
    assert kv_bytes_per_token(model) == 4 * 2 * 2 * 32 * 2


def test_an_unknown_architecture_is_read_as_a_plain_transformer_only_where_its_keys_say_enough():
    known = read(model_type="never_heard_of", hidden_act="silu")
    assert known.is_generic
    assert parameters_total(known) == parameters_total(read())
    for changed, key in (
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"hidden_act": "silu", "tie_word_embeddings": None}, "tie_word_embeddings"),
    ):
        weights = weights_bytes_total(read(model_type="never_heard_of", **changed))
        assert isinstance(weights, Missing)
        assert weights.key == key


def test_layers_of_an_unknown_kind_make_the_kv_cache_unknown():
    model = read(layer_types=["full_attention", "quantum_attention"] * 2)
    kv = kv_bytes_per_token(model)
    assert isinstance(kv, Missing)
    assert "quantum_attention" in kv.message
    assert isinstance(model.attentions[1], UnknownAttention)


@pytest.mark.parametrize(
    ("changed", "full", "window"),
    [
        ({"sliding_window": 128}, 0, 128),
        ({"model_type": "qwen2", "sliding_window": 128, "use_sliding_window": False}, 4, None),
        ({"model_type": "qwen2", "sliding_window": 128, "use_sliding_window": True, "max_window_layers": 1}, 1, 128),
        ({"model_type": "gemma2", "head_dim": 32, "sliding_window": 128}, 2, 128),
        ({"model_type": "gemma3_text", "sliding_window": 128, "sliding_window_pattern": 2}, 2, 128),
        ({"model_type": "exaone4", "sliding_window": 128, "sliding_window_pattern": "LLLG"}, 1, 128),
        (
            {"model_type": "mimo_v2_flash", **THIN, "sliding_window": 128, "hybrid_layer_pattern": [0, 1, 1, 1]},
            1,
            128,
        ),
        ({"sliding_window": 128, "layer_types": ["full_attention"] * 4}, 4, None),
    ],
)
def test_windows_are_read_as_each_architecture_means_them(changed, full, window):
    model = read(**changed)
    assert sum(isinstance(one, FullAttention) for one in model.attentions) == full
    sliding = kv_sliding(model)
    assert (sliding.window_tokens if sliding else None) == window


def test_layers_without_rotary_positions_see_everything_and_the_others_a_chunk():
    model = read(model_type="llama4_text", head_dim=32, attention_chunk_size=64, no_rope_layers=[1, 1, 1, 0])
    assert [isinstance(one, ChunkedAttention) for one in model.attentions] == [True, True, True, False]
    assert kv_bytes_per_token(model) == kv_bytes_per_token(read())


def test_layers_that_share_a_cache_keep_none_of_their_own():
    model = read(num_kv_shared_layers=2)
    assert [isinstance(one, UncachedAttention) for one in model.attentions] == [False, False, True, True]
    assert kv_bytes_per_token(model) * 2 == kv_bytes_per_token(read())


def test_an_encoder_keeps_nothing_and_generates_nothing():
    model = read(model_type="xlm-roberta", architectures=["XLMRobertaModel"], max_position_embeddings=64)
    assert kv_bytes_per_token(model) == 0
    assert not model.is_generative


def test_searched_layers_may_lack_attention_or_the_ffn():
    blocks = [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.5}},
        {"attention": {"no_op": True}, "ffn": {"intermediate_size": 64}},
        {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}},
        {"attention": {"n_heads_in_group": 8}, "ffn": {"replace_with_linear": True}},
    ]
    model = read(model_type="nemotron-nas", block_configs=blocks)
    assert [len(layer.attention) for layer in model.layers] == [1, 0, 0, 1]
    assert kv_bytes_per_token(model) == (2 + 1) * 2 * 32 * 2
    assert not model.missing


def test_an_image_is_looked_at_by_the_cross_attention_layers():
    vision = {"model_type": "mllama_vision_model", "image_size": 560, "patch_size": 14, "max_num_tiles": 4}
    text = {**LLAMA, "model_type": "mllama_text_model", "cross_attention_layers": [1]}
    model = read_model({"model_type": "mllama", "text_config": text, "vision_config": vision}, id="x")
    assert cross_bytes_per_sequence(model, "bf16") == 4 * 1601 * 2 * 2 * 32 * 2
    assert kv_bytes_per_token(model) * 4 == kv_bytes_per_token(read()) * 3


def test_what_equals_the_class_stands_in_no_nested_section():
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    model = read_model({"model_type": "gemma3", "text_config": text}, id="x")
    assert model.vocabulary == 262208
    assert model.attentions[0].kv_heads == 4
    alone = read_model(text, id="x")
    assert isinstance(weights_bytes_total(alone), Missing)


def test_a_part_that_is_not_read_is_named():
    weights = weights_bytes_total(read(qformer_config={"hidden_size": 768}))
    assert isinstance(weights, Missing)
    assert weights.key == "qformer_config"


def test_a_state_has_a_size_that_no_token_changes():
    model = read(model_type="bamba", attn_layer_indices=[2], mamba_n_heads=8, mamba_d_head=64, mamba_d_state=16)
    assert kv_bytes_per_token(model) * 4 == kv_bytes_per_token(read())
    assert state_bytes_per_sequence(model) == 3 * 2 * (512 * 16 + (512 + 2 * 16) * 3)


def test_params_json_is_read_like_the_usual_configuration():
    params = {
        "dim": 256,
        "n_layers": 4,
        "n_heads": 8,
        "n_kv_heads": 2,
        "head_dim": 32,
        "hidden_dim": 512,
        "vocab_size": 1000,
    }
    model = read_model(params, id="params.json")
    assert parameters_total(model) == parameters_total(read())
    assert not model.is_generic
