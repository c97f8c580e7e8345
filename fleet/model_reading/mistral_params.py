"""Mistral's own ``params.json``: the same figures under other names, in the words of the usual configuration."""

from collections.abc import Mapping

from fleet.model_reading.keys import Keys

TEXT = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "tied_embeddings": "tie_word_embeddings",
    "max_seq_len": "max_position_embeddings",
}
MIXTURE = {
    "expert_hidden_dim": "moe_intermediate_size",
    "num_experts": "num_experts",
    "num_experts_per_tok": "num_experts_per_tok",
    "first_k_dense_replace": "first_k_dense_replace",
    "num_shared_experts": "n_shared_experts",
}
ELSEWHERE = frozenset({"moe", "vision_encoder", "quantization"})
FP8 = frozenset({"fp8_e4m3"})


def as_usual(config: Mapping[str, object], source: str) -> Mapping[str, object]:
    """The configuration itself, or a ``params.json`` in the usual words."""
    if "model_type" in config or "dim" not in config or "n_layers" not in config:
        return config
    keys = Keys(config, source)
    text: dict[str, object] = {"hidden_act": "silu", "tie_word_embeddings": False, "model_type": "mistral"}
    text["sliding_window"] = None
    text |= {TEXT.get(name, name): value for name, value in config.items() if name not in ELSEWHERE}
    text |= _mixture(keys.section("moe"))
    usual: dict[str, object] = {**text, "architectures": ["MistralForCausalLM"]}
    vision = keys.section("vision_encoder")
    if vision:
        usual = {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "text_config": text}
        usual["vision_config"] = {"model_type": "pixtral", **vision.values}
        usual["tie_word_embeddings"] = text["tie_word_embeddings"]
    quantisation = keys.section("quantization")
    if quantisation:
        usual["quantization_config"] = _quantisation(quantisation)
    return usual


def _mixture(moe: Keys | None) -> dict[str, object]:
    return {MIXTURE[name]: value for name, value in moe.values.items() if name in MIXTURE} if moe else {}


def _quantisation(section: Keys) -> Mapping[str, object]:
    if section.has("config_groups"):
        return {"quant_method": "compressed-tensors", **section.values}
    method = "fp8" if section.text("qformat_weight") in FP8 else section.text("qformat_weight") or "unknown"
    return {"quant_method": method, "weight_block_size": None}
