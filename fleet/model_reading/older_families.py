"""Architectures before the Llama shape: one first matrix, biases, learned positions; and encoders."""

from dataclasses import replace

from fleet.model_reading.families import Family, QkNorm, Windows

_GPT2 = Family(
    tied=True,
    gated=False,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    norm_bias=True,
    positions=0,
    ffn_is_four_times=True,
)
_PLAIN_GPT = replace(_GPT2, positions=None)
_STATED_GPT = replace(_PLAIN_GPT, ffn_is_four_times=False)
_FALCON = Family(tied=True, gated=False, norm_bias=True, ffn_is_four_times=True)
_BERT = replace(_GPT2, is_encoder=True, token_types=True, windows=Windows.NEVER, norms=2, ffn_is_four_times=False)
_GATED_BERT = Family(gated=True, tied=True, is_encoder=True, norm_bias=True, windows=Windows.NEVER)

OLDER: dict[str, Family] = {
    "gpt2": _GPT2,
    "gpt_bigcode": replace(_GPT2, defaults={"multi_query": True}),
    "gpt_neo": replace(_GPT2, qkv_bias=False),
    "gpt_neox": replace(_STATED_GPT, tied=False),
    "gptj": replace(_PLAIN_GPT, tied=False, qkv_bias=False, out_bias=False, norms=1),
    "codegen": replace(_PLAIN_GPT, tied=False, qkv_bias=False, out_bias=False, norms=1),
    "bloom": _PLAIN_GPT,
    "opt": replace(_STATED_GPT, positions=2),
    "mpt": Family(tied=True, gated=False, ffn_is_four_times=True, nested=("attn_config",)),
    "falcon": replace(_FALCON, defaults={"multi_query": True}),
    "refinedweb": _FALCON,
    "refinedwebmodel": _FALCON,
    "phi": replace(_STATED_GPT, tied=False, norms=1),
    "phi-msft": replace(_PLAIN_GPT, tied=False, norms=1),
    "persimmon": replace(_STATED_GPT, tied=False, qk_norm=QkNorm.HEAD),
    "starcoder2": _STATED_GPT,
    "stablelm": Family(norm_bias=True),
    "chatglm": Family(qkv_bias=True),
    "qwen": Family(qkv_bias=True, ffn_is_halved=True),
    "biogpt": replace(_STATED_GPT, positions=0),
    "xglm": _STATED_GPT,
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "xlm-roberta-xl": _BERT,
    "camembert": _BERT,
    "mpnet": _BERT,
    "distilbert": replace(_BERT, token_types=False, dense_key="hidden_dim"),
    "ernie": _BERT,
    "nomic_bert": _GATED_BERT,
    "new": replace(_GATED_BERT, qkv_bias=True, out_bias=True),
    "gte": replace(_GATED_BERT, qkv_bias=True, out_bias=True),
    "modernbert": replace(_GATED_BERT, norm_bias=False),
    "eurobert": Family(tied=False, is_encoder=True, windows=Windows.NEVER),
}
"""By ``model_type``."""
