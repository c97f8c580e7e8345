"""The architectures that are known by name (``model_type``), with what each fixes."""

from collections.abc import Mapping
from types import MappingProxyType

from fleet.model_reading.families import Family, QkNorm, Windows

_LLAMA = Family()
_QWEN2 = Family(qkv_bias=True, windows=Windows.OPT_IN)
_QWEN3 = Family(qk_norm=QkNorm.HEAD, windows=Windows.OPT_IN)
_QWEN_NEXT = Family(
    qk_norm=QkNorm.HEAD,
    windows=Windows.NEVER,
    output_gate=True,
    shared_gate=True,
    mtp="qwen",
    defaults={"full_attention_interval": 4},
)
_DEEPSEEK = Family(windows=Windows.NEVER, mtp_vocabulary=True)
_GLM_MOE = Family(qk_norm=QkNorm.HEAD, qkv_bias=True, windows=Windows.NEVER, mtp_vocabulary=True)
_GEMMA = Family(tied=True, head_dim=256)
_GEMMA3 = Family(tied=True, norms=4, qk_norm=QkNorm.HEAD, head_dim=256, window_pattern=6)
_NEMOTRON_H = Family(gated=False, norms=1, mamba_kind="mamba2", windows=Windows.NEVER, expert_size_is_ffn=False)
_GPT = Family(
    tied=True,
    gated=False,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    norm_bias=True,
    defaults={"ffn_is_four_times": True},
)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "llama": _LLAMA,
        "mistral": _LLAMA,
        "ministral": _LLAMA,
        "ministral3": _LLAMA,
        "mixtral": _LLAMA,
        "phi3": _LLAMA,
        "phimoe": Family(norm_bias=True, qkv_bias=True, out_bias=True),
        "qwen2": _QWEN2,
        "qwen2_vl": _QWEN2,
        "qwen2_5_vl": _QWEN2,
        "qwen2_moe": Family(qkv_bias=True, windows=Windows.OPT_IN, shared_gate=True),
        "qwen3": _QWEN3,
        "qwen3_moe": _QWEN3,
        "qwen3_vl": _QWEN3,
        "qwen3_vl_moe": _QWEN3,
        "qwen3_next": Family(
            qk_norm=QkNorm.HEAD,
            windows=Windows.NEVER,
            output_gate=True,
            shared_gate=True,
            mtp="qwen",
            mtp_layers=1,
            defaults={"full_attention_interval": 4},
        ),
        "qwen3_5": _QWEN_NEXT,
        "qwen3_5_moe": _QWEN_NEXT,
        "deepseek_v2": _DEEPSEEK,
        "deepseek_v3": _DEEPSEEK,
        "deepseek_v32": _DEEPSEEK,
        "kimi_k2": _DEEPSEEK,
        "mistral4": _DEEPSEEK,
        "kimi_linear": Family(windows=Windows.NEVER, linear_kind="kda"),
        "glm": Family(qkv_bias=True),
        "glm4": Family(qkv_bias=True, norms=4),
        "glm4_moe": _GLM_MOE,
        "glm_moe_dsa": Family(windows=Windows.NEVER),
        "minimax_m2": Family(qk_norm=QkNorm.FULL, windows=Windows.NEVER, mtp="none"),
        "minimax": Family(linear_kind="lightning"),
        "gemma": _GEMMA,
        "gemma2": Family(tied=True, norms=4, head_dim=256, windows=Windows.EVEN),
        "gemma3": _GEMMA3,
        "gemma4": Family(
            tied=True, norms=4, qk_norm=QkNorm.HEAD, head_dim=256, window_pattern=6, dense_beside_experts=True
        ),
        "gpt_oss": Family(qkv_bias=True, out_bias=True, expert_bias=True, windows=Windows.EVEN, head_dim=64),
        "nemotron_h": _NEMOTRON_H,
        "jamba": Family(windows=Windows.NEVER, mamba_kind="mamba1"),
        "granite": _LLAMA,
        "granitemoehybrid": Family(windows=Windows.NEVER, dense_beside_experts=False),
        "cohere": Family(tied=True, norms=1),
        "cohere2": Family(tied=True, norms=1, window_pattern=4),
        "olmo2": Family(qk_norm=QkNorm.FULL),
        "olmo3": Family(qk_norm=QkNorm.FULL, window_pattern=4),
        "exaone4": Family(qk_norm=QkNorm.HEAD, window_pattern=4),
        "starcoder2": Family(tied=True, gated=False, qkv_bias=True, out_bias=True, mlp_bias=True, norm_bias=True),
        "llama4": Family(shared_experts=1, expert_size_is_ffn=True, windows=Windows.NEVER),
        "step3p7": Family(qk_norm=QkNorm.HEAD),
        "gpt2": _GPT,
    }
)
"""By ``model_type`` without ``_text``."""
