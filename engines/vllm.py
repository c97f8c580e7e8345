"""vLLM: one command with the model as its argument; nearly everything is a flag."""

from engines.draft import Draft
from engines.engine import (
    named_adapters,
    plain_command,
    put_kv_cache,
    put_kv_events,
    put_parallelism,
    put_quantization,
    put_streaming,
)
from engines.wishes import Wish
from fleet.engine import CommandLine

_SPECULATIVE = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4},
    "mtp": {"method": "mtp", "num_speculative_tokens": 1},
}
"""Drafting without a draft model; with one, the manifest's flags say it."""


class Vllm:
    """Command lines of vLLM."""

    def derive(self, wish: Wish, draft: Draft, host: str | None, port: int | None) -> None:
        """Everything that the manifest says, as flags."""
        features = wish.spec.features
        draft.put("--revision", wish.revision)
        put_streaming(wish, draft)
        draft.put("--served-model-name", wish.served_name)
        draft.put("--host", host)
        draft.put("--port", port)
        _put_batch(wish, draft)
        put_parallelism(wish, draft)
        put_quantization(wish, draft)
        if wish.closed_media:
            draft.put_json("--limit-mm-per-prompt", dict.fromkeys(wish.closed_media, 0))
        if wish.asks_for("workload:embedding", "workload:rerank"):
            draft.put("--runner", "pooling")
        if features.tool_parser:
            draft.put("--enable-auto-tool-choice", True)
            draft.put("--tool-call-parser", features.tool_parser)
        if features.lora:
            draft.put("--enable-lora", True)
            draft.put("--max-loras", len(features.lora))
            draft.put("--lora-modules", named_adapters(wish))
        if features.speculative in _SPECULATIVE:
            draft.put_json("--speculative-config", _SPECULATIVE[features.speculative])
        _put_kv_movement(wish, draft)
        if features.trust_remote_code:
            draft.put("--trust-remote-code", True)

    def command(self, wish: Wish, draft: Draft) -> CommandLine:
        """The finished command."""
        return plain_command(wish, draft, positional=True)


def _put_batch(wish: Wish, draft: Draft) -> None:
    batch = wish.spec.batch
    if batch is None:
        return
    draft.put("--max-model-len", batch.max_model_len)
    draft.put("--max-num-seqs", batch.max_num_seqs)
    draft.put("--max-num-batched-tokens", batch.max_num_batched_tokens)
    put_kv_cache(wish, draft)
    draft.put("--enable-prefix-caching", batch.enable_prefix_caching)


def _put_kv_movement(wish: Wish, draft: Draft) -> None:
    features = wish.spec.features
    put_kv_events(wish, draft)
    if features.kv_offload in ("host", "lmcache"):
        draft.put("--kv-offloading-backend", "native" if features.kv_offload == "host" else "lmcache")
    connectors = []
    if features.disaggregation == "prefill-decode":
        connectors.append({"kv_connector": "NixlConnector", "kv_role": "kv_both"})
    if features.kv_offload == "mooncake":
        connectors.append({"kv_connector": "MooncakeStoreConnector", "kv_role": "kv_both"})
    if len(connectors) == 1:
        draft.put_json("--kv-transfer-config", connectors[0])
    elif connectors:
        several = {"kv_connector": "MultiConnector", "kv_role": "kv_both"}
        draft.put_json("--kv-transfer-config", several | {"kv_connector_extra_config": {"connectors": connectors}})
