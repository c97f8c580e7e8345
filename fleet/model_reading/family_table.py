"""The architectures that are known by name (``model_type``), with what each fixes."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from fleet.model_reading.families import Family, QkNorm, Windows
from fleet.model_reading.older_families import OLDER
from fleet.model_reading.state_families import WITH_STATES

LLAMA = Family()
_GLOBAL = Family(windows=Windows.NEVER)
_QWEN2 = Family(qkv_bias=True, windows=Windows.OPT_IN)
_QWEN3 = Family(qk_norm=QkNorm.HEAD, windows=Windows.OPT_IN)
_BOTH = ("embed_tokens", "shared_head.head")
_DEEPSEEK = Family(windows=Windows.NEVER, mtp_vocabulary=_BOTH)
_GLM_MOE = Family(qk_norm=QkNorm.HEAD, qkv_bias=True, windows=Windows.NEVER, mtp_vocabulary=_BOTH, head_dim=128)
_GEMMA = Family(tied=True, head_dim=256)
_GEMMA2 = Family(tied=True, norms=4, head_dim=256, windows=Windows.EVEN)
_GEMMA3 = Family(tied=True, norms=4, qk_norm=QkNorm.HEAD, head_dim=256, window_pattern=6)
_GEMMA3N = replace(_GEMMA3, window_pattern=5)
_GEMMA4 = replace(_GEMMA3, dense_beside_experts=True, defaults={"global_head_dim": 512, "attention_k_eq_v": False})
_GPT_OSS = Family(qkv_bias=True, out_bias=True, expert_bias=True, windows=Windows.EVEN, head_dim=64)
_GRANITE_MOE = Family(dense_key="shared_intermediate_size")
_COHERE = Family(tied=True, norms=1)
_ERNIE = Family(tied=True)
_HUNYUAN = Family(qk_norm=QkNorm.HEAD)
_STEP = Family(qk_norm=QkNorm.HEAD, mtp_is_dense=True, mtp_vocabulary=("shared_head.output",))
_ARCEE = Family(gated=False)
_LLAMA4 = Family(shared_experts=1, windows=Windows.NEVER, dense_key="intermediate_size_mlp", experts_take_ffn_size=True)

_TRANSFORMERS: dict[str, Family] = {
    **dict.fromkeys(
        (
            "llama",
            "ministral",
            "ministral3",
            "mixtral",
            "phi3",
            "phi3_v",
            "granite",
            "yi",
            "internlm2",
            "internlm3",
            "helium",
            "baichuan",
            "xverse",
            "aquila",
            "solar",
            "exaone",
            "telechat",
            "orion",
            "deci",
            "nemotron-nas",
            "hyperclovax",
            "iquestcoder",
            "cwm",
            "bitnet",
            "minicpm",
            "olmo",
            "mistral_common",
            "deepseek",
            "solar_open",
            "dots1",
            "phi4mm",
            "phi4_multimodal",
            "skywork",
            "aria",
            "diffllama",
        ),
        LLAMA,
    ),
    **dict.fromkeys(("smollm3", "youtu", "granite_swa", "moss_transcribe_diarize"), Family(tied=True)),
    "mistral": Family(defaults={"sliding_window": 4096}),
    "seed_oss": Family(qkv_bias=True),
    "minicpm3": replace(_DEEPSEEK, tied=True),
    "phimoe": Family(norm_bias=True, out_bias=True),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_audio", "qwen2_5_omni", "mimo"), _QWEN2),
    "qwen2_moe": replace(_QWEN2, shared_gate=True),
    **dict.fromkeys(
        ("qwen3", "qwen3_moe", "qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "qwen3_asr", "qwen3_omni_moe_thinker"),
        _QWEN3,
    ),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25", "mistral4", "axk1"), _DEEPSEEK
    ),
    "deepseek_v4": Family(windows=Windows.NEVER, is_compressed=True, shared_experts=1),
    "longcat_flash": Family(windows=Windows.NEVER, doubled=True, dense_beside_experts=True, norms=4, mtp="none"),
    **dict.fromkeys(("glm", "glm4v_text"), Family(qkv_bias=True)),
    **dict.fromkeys(("glm4", "glm4v", "glm46v", "glm_ocr"), Family(qkv_bias=True, norms=4)),
    "glm4_moe": replace(_GLM_MOE, qkv_bias=False, defaults={"use_qk_norm": False}),
    "glm4v_moe": _GLM_MOE,
    **dict.fromkeys(("glm_moe_dsa", "glm4_moe_lite", "mistral_large4", "axk2"), _GLOBAL),
    "minimax_m2": Family(qk_norm=QkNorm.FULL, windows=Windows.NEVER, mtp="none"),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "vaultgemma": replace(_GEMMA2, norms=2),
    **dict.fromkeys(("gemma3", "shieldgemma2"), _GEMMA3),
    "gemma3n": _GEMMA3N,
    **dict.fromkeys(("gemma4", "gemma4_unified"), _GEMMA4),
    "gpt_oss": _GPT_OSS,
    **dict.fromkeys(("granitemoe", "granitemoeshared", "granitemoe_swa"), _GRANITE_MOE),
    "cohere": _COHERE,
    **dict.fromkeys(("cohere2", "cohere2_moe"), replace(_COHERE, window_pattern=4)),
    **dict.fromkeys(("olmo2", "olmo3", "flex_olmo"), Family(qk_norm=QkNorm.FULL, window_pattern=4)),
    "olmoe": Family(qk_norm=QkNorm.FULL),
    **dict.fromkeys(("exaone4", "exaone_moe"), Family(qk_norm=QkNorm.HEAD, window_pattern=4)),
    **dict.fromkeys(("ernie4_5", "ernie4_5_moe"), _ERNIE),
    "ernie4_5_vl_moe": replace(_ERNIE, vision_experts=True),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan", "hunyuan_vl", "hy_v3"), _HUNYUAN),
    **dict.fromkeys(("step3p5", "step3p7"), _STEP),
    "step3_text": Family(windows=Windows.NEVER),
    **dict.fromkeys(("arcee", "apertus", "nemotron", "nanochat"), _ARCEE),
    "jais2": replace(_ARCEE, qkv_bias=True, mlp_bias=True),
    "afmoe": Family(qk_norm=QkNorm.HEAD, norms=4, attention_gate=True, window_pattern=4),
    "llama4": _LLAMA4,
    "mllama": Family(windows=Windows.NEVER, extra_embeddings=8),
    "mimo_v2_flash": Family(mtp="none"),
    "grok-1": Family(norms=4, tied=True, defaults={"num_experts_per_tok": 2}),
    "dbrx": Family(nested=("attn_config", "ffn_config"), norm_bias=True),
    "arctic": Family(dense_beside_experts=True),
    **dict.fromkeys(("bailing_moe", "bailing_moe_v2", "sarvam_moe", "ling"), Family(qk_norm=QkNorm.HEAD)),
    "sarvam_mla": _GLOBAL,
    **dict.fromkeys(("hy_v4", "hy_v4_vl"), Family(windows=Windows.NEVER, attention_gate=True)),
    "muse_glimmer": Family(norms=4, attention_gate=True),
    "laguna": Family(qk_norm=QkNorm.HEAD),
    "minimax_m3_vl": Family(qk_norm=QkNorm.HEAD, windows=Windows.NEVER),
}

FAMILIES: Mapping[str, Family] = MappingProxyType({**_TRANSFORMERS, **WITH_STATES, **OLDER})
"""By ``model_type`` without ``_text``."""
