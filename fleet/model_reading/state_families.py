"""Architectures with layers that keep a state, and hybrids of those with attention."""

from dataclasses import replace

from fleet.model_reading.families import Family, QkNorm, Windows

_QWEN_NEXT = Family(
    state="gdn",
    qk_norm=QkNorm.HEAD,
    windows=Windows.NEVER,
    output_gate=True,
    shared_gate=True,
    mtp="qwen",
    defaults={"full_attention_interval": 4},
)
_NEMOTRON_H = Family(
    gated=False,
    norms=1,
    state="mamba2",
    windows=Windows.NEVER,
    experts_take_ffn_size=False,
    defaults={"mamba_ssm_cache_dtype": "float32"},
)
_GRANITE = Family(windows=Windows.NEVER, state="mamba2", dense_key="shared_intermediate_size")

WITH_STATES: dict[str, Family] = {
    "qwen3_next": replace(_QWEN_NEXT, mtp_layers=1),
    "qwen3_5": _QWEN_NEXT,
    "qwen3_5_moe": _QWEN_NEXT,
    "kimi_linear": Family(windows=Windows.NEVER, state="kda"),
    "glm5_next": Family(windows=Windows.NEVER, state="kda"),
    "bailing_hybrid": Family(windows=Windows.NEVER, state="kda", state_gates_are_whole=True, attention_gate=True),
    "minimax": Family(state="lightning"),
    "minimax_text_01": Family(state="lightning"),
    "minimax_m1": Family(state="lightning"),
    "nemotron_h": _NEMOTRON_H,
    "nemotronh": _NEMOTRON_H,
    "jamba": Family(windows=Windows.NEVER, state="mamba1"),
    "bamba": Family(windows=Windows.NEVER, state="mamba2"),
    "granitemoehybrid": _GRANITE,
    "falcon_h1": Family(windows=Windows.NEVER, state="mamba2", is_parallel_hybrid=True),
    "lfm2": Family(tied=True, qk_norm=QkNorm.HEAD, state="conv", ffn_is_adjusted=True),
    "lfm2_moe": Family(tied=True, qk_norm=QkNorm.HEAD, state="conv"),
    "olmo_hybrid": Family(qk_norm=QkNorm.FULL, state="gdn"),
    "mamba": Family(tied=True, norms=1, state="mamba1", is_state_only=True, has_ffn=False),
    "falcon_mamba": Family(tied=True, norms=1, state="mamba1", is_state_only=True, has_ffn=False),
    "mamba2": Family(norms=1, state="mamba2", is_state_only=True, has_ffn=False),
}
"""By ``model_type``."""
