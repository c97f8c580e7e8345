"""An architecture that nobody knows is a plain transformer only where nothing in its configuration speaks of more."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kv_cache import kv_bytes_per_token
from fleet.model import Missing
from fleet.model_reading import keys, read_model
from fleet.model_reading.generic import SIZE, TEXT, TOWER, WITHOUT_WEIGHTS
from fleet.weights import weights_bytes_total

DATA = Path(__file__).resolve().parents[1] / "data" / "models"
CONFIGS = sorted((DATA / "configs").glob("*.json"))
PUBLISHED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in CONFIGS}
PLAIN = json.loads((DATA / "dense.json").read_text(encoding="utf-8"))
PLAIN |= {"architectures": ["UnheardForCausalLM"], "model_type": "unheard_of", "hidden_act": "silu"}
TOWER_OF_IT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
TOWER_OF_IT |= {"patch_size": 14, "image_size": 224}
BEYOND = (
    *("num_codebooks", "codebook_size", "n_input_layers", "n_recurrent_loops", "embedding_size", "num_hidden_groups"),
    *("true_hidden_size", "projector_hidden_size", "additional_vocab_size", "prediction_head_size", "moe_hidden_size"),
    *("embedding_rank", "num_layers_per_stack", "pixel_shuffle_factor", "encoder_layers", "upsample_initial_channels"),
)
HARMLESS = st.dictionaries(
    st.sampled_from(("bos_token_id", "max_length", "n_group", "topk_group", "rope_theta", "num_beams", "use_cache"))
    | st.text(alphabet="xyzq", min_size=3, max_size=8),
    st.integers(0, 10**6) | st.booleans() | st.floats(0, 1),
)


def whole(**changed: object) -> int | Missing:
    return weights_bytes_total(read_model({**PLAIN, **changed}, id="x"))


@given(key=st.sampled_from(BEYOND), size=st.integers(2, 10**6), more=HARMLESS)
def test_a_size_that_the_reading_does_not_use_makes_the_weights_unknown_with_its_key(key, size, more):
    lacking = whole(**more, **{key: size})
    assert isinstance(lacking, Missing)
    assert lacking.key == key
    assert key in lacking.message


@given(more=HARMLESS)
def test_what_is_no_size_changes_nothing(more):
    assert whole(**more) == whole()


@pytest.mark.parametrize("nothing", [0, 1, True, None, 2.5, "two"])
def test_a_size_of_nothing_changes_nothing(nothing):
    assert whole(num_codebooks=nothing) == whole()


def test_a_section_that_is_not_read_makes_the_weights_unknown_with_its_name():
    for name in ("adapter_config", "depth_decoder_config"):
        lacking = whole(**{name: {"hidden_size": 8}})
        assert isinstance(lacking, Missing)
        assert lacking.key == name
    assert whole(adapter_config={}) == whole()


def test_a_tower_is_read_unless_it_has_sizes_of_its_own():
    text = {key: value for key, value in PLAIN.items() if key not in ("architectures", "tie_word_embeddings")}
    wrapper = {"model_type": "unheard_of", "text_config": text, "tie_word_embeddings": False}
    seen = weights_bytes_total(read_model({**wrapper, "vision_config": TOWER_OF_IT}, id="x"))
    assert not isinstance(seen, Missing)
    assert seen > whole()
    lacking = weights_bytes_total(read_model({**wrapper, "vision_config": {**TOWER_OF_IT, "scale_factor": 4}}, id="x"))
    assert isinstance(lacking, Missing)
    assert lacking.key == "vision_config.scale_factor"


def test_an_architecture_that_is_known_may_have_any_size_beside_those_that_are_read():
    assert whole(model_type="llama", num_codebooks=8) == whole(model_type="llama")


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_every_size_that_the_reading_asks_for_is_on_its_list(name, monkeypatch):
    asked: set[tuple[bool, str]] = set()
    find = keys.Keys.find

    def recording(section: keys.Keys, key: str) -> tuple[str, object]:
        asked.add((section.path.startswith(("vision_config", "audio_config")), key))
        return find(section, key)

    monkeypatch.setattr(keys.Keys, "find", recording)
    config = {**PUBLISHED[name], "model_type": "unheard_of"}
    if isinstance(config.get("text_config"), dict):
        config["text_config"] = {**config["text_config"], "model_type": "unheard_of_text"}
    try:
        read_model(config, id="x")
    except keys.ConfigError:
        return
    beside = WITHOUT_WEIGHTS | {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", "num_mel_bins"}
    beside |= {"downsample_factor", "projector_input_dim", "projector_output_dim", "num_bits", "group_size"}
    missed = {key for is_tower, key in asked if SIZE.search(key) and key not in (TOWER if is_tower else TEXT) | beside}
    lists = {"layer_types", "moe_layers", "no_rope_layers", "mlp_only_layers", "attention_layers", "config_groups"}
    lists |= {"cross_attention_layers", "quantized_layers", "weight_block_size", "ignored_layers", "vision_use_head"}
    assert missed <= lists


def test_what_is_around_a_language_model_that_is_known_is_read_or_makes_the_weights_unknown():
    text = {key: value for key, value in PLAIN.items() if key != "architectures"} | {"model_type": "llama"}
    wrapper = {"model_type": "unheard_of", "text_config": text, "tie_word_embeddings": False}
    assert not isinstance(weights_bytes_total(read_model({**wrapper, "vision_config": TOWER_OF_IT}, id="x")), Missing)
    for changed, key in (
        ({"num_query_tokens": 32}, "num_query_tokens"),
        ({"vision_config": {**TOWER_OF_IT, "mlp_dim": 64}}, "vision_config.mlp_dim"),
        ({"audio_config": {**TOWER_OF_IT, "dac_config": {"hidden_size": 8}}}, "audio_config.dac_config"),
    ):
        lacking = weights_bytes_total(read_model({**wrapper, **changed}, id="x"))
        assert isinstance(lacking, Missing)
        assert lacking.key == key


def test_a_square_of_patches_that_becomes_one_token_is_projected_by_one_matrix():
    text = {key: value for key, value in PLAIN.items() if key != "architectures"} | {"model_type": "llama"}
    wrapper = {"model_type": "idefics3", "text_config": text, "vision_config": TOWER_OF_IT}
    sizes = [weights_bytes_total(read_model({**wrapper, "scale_factor": factor}, id="x")) for factor in (2, 4)]
    assert sizes[1] - sizes[0] == 2 * (16 - 4) * TOWER_OF_IT["hidden_size"] * PLAIN["hidden_size"]


def test_a_tower_with_its_pooling_head_is_larger_by_one_block():
    text = {key: value for key, value in PLAIN.items() if key != "architectures"} | {"model_type": "modernbert"}
    wrapper = {"model_type": "modernvbert", "text_config": text, "pixel_shuffle_factor": 4}
    tower = {**TOWER_OF_IT, "model_type": "siglip_vision_model"}
    sizes = [
        weights_bytes_total(read_model({**wrapper, "vision_config": {**tower, **head}}, id="x"))
        for head in ({}, {"vision_use_head": False}, {"vision_use_head": False, "num_hidden_layers": 3})
    ]
    assert sizes[0] - sizes[1] == sizes[2] - sizes[1]


def test_layers_with_two_attentions_have_two_dense_ffns_beside_their_experts():
    config = {
        **{"model_type": "longcat_flash", "hidden_size": 64, "num_layers": 2, "num_attention_heads": 4},
        **{"ffn_hidden_size": 128, "expert_ffn_hidden_size": 32, "n_routed_experts": 8, "moe_topk": 2},
        **{"zero_expert_num": 4, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8},
        **{"v_head_dim": 8, "vocab_size": 100},
    }
    attention = 16 * 64 + 16 + 4 * 12 * 16 + 12 * 64 + 8 + 4 * 16 * 8 + 64 * 32
    layer = 2 * (attention + 3 * 64 * 128 + 2 * 64) + 12 * 64 + 8 * 3 * 64 * 32
    assert weights_bytes_total(read_model(config, id="x")) == 2 * (2 * layer + 2 * 100 * 64 + 64)


def test_sizes_that_single_layers_have_of_their_own_count_there_alone():
    plain = {**PLAIN, "model_type": "llama", "num_key_value_heads": 4, "head_dim": 64}
    own = {**plain, "per_layer_config": {"01": {"num_key_value_heads": 2, "head_dim": 128}}}
    whole, mixed = (read_model(config, id="x") for config in (plain, own))
    sizes = [(one.kv_heads, one.key_dim) for one in mixed.attentions]
    assert sizes[1] == (2, 128)
    assert set(sizes[:1] + sizes[2:]) == {(4, 64)}
    assert kv_bytes_per_token(mixed, "bf16") == kv_bytes_per_token(whole, "bf16")
    lacking = weights_bytes_total(read_model({**plain, "per_layer_config": {"0": {"num_local_experts": 4}}}, id="x"))
    assert isinstance(lacking, Missing)
    assert lacking.key == "per_layer_config.0.num_local_experts"
