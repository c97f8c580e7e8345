"""SGLang: a module with the model as a flag."""

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

_ALGORITHMS = {"ngram": "NGRAM", "mtp": "NEXTN", "draft": "STANDALONE", "eagle": "EAGLE"}
_GRAMMAR = "--grammar-backend"


class Sglang:
    """Command lines of SGLang."""

    def derive(self, wish: Wish, draft: Draft, host: str | None, port: int | None) -> None:
        """Everything that the manifest says, as flags."""
        features = wish.spec.features
        draft.put("--model-path", wish.model_name)
        draft.put("--revision", wish.revision)
        put_streaming(wish, draft)
        draft.put("--served-model-name", wish.served_name)
        draft.put("--host", host)
        draft.put("--port", port)
        _put_batch(wish, draft)
        put_parallelism(wish, draft)
        put_quantization(wish, draft)
        if wish.closed_media:
            draft.put_json("--limit-mm-data-per-request", dict.fromkeys(wish.closed_media, 0))
        if wish.asks_for("workload:embedding"):
            draft.put("--is-embedding", True)
        draft.put("--tool-call-parser", features.tool_parser)
        if not wish.asks_for("structured_output", "tool_parser") and "none" in (draft.flags.choices(_GRAMMAR) or ()):
            draft.put(_GRAMMAR, "none")
        if features.lora:
            draft.put("--enable-lora", True)
            draft.put("--lora-paths", named_adapters(wish))
        draft.put("--speculative-algorithm", _ALGORITHMS.get(features.speculative))
        _put_kv_movement(wish, draft)
        if features.trust_remote_code:
            draft.put("--trust-remote-code", True)

    def command(self, wish: Wish, draft: Draft) -> CommandLine:
        """The finished command."""
        return plain_command(wish, draft, positional=False)


def _put_batch(wish: Wish, draft: Draft) -> None:
    batch = wish.spec.batch
    if batch is None:
        return
    draft.put("--context-length", batch.max_model_len)
    draft.put("--max-running-requests", batch.max_num_seqs)
    draft.put("--chunked-prefill-size", batch.max_num_batched_tokens)
    put_kv_cache(wish, draft)
    if not batch.enable_prefix_caching:
        draft.put("--disable-radix-cache", True)


def _put_kv_movement(wish: Wish, draft: Draft) -> None:
    features = wish.spec.features
    put_kv_events(wish, draft)
    if features.disaggregation == "prefill-decode":
        draft.put("--disaggregation-mode", wish.pool)
        draft.put("--disaggregation-transfer-backend", "nixl")
    if features.kv_offload == "lmcache":
        draft.put("--enable-lmcache", True)
    elif features.kv_offload != "none":
        draft.put("--enable-hierarchical-cache", True)
        draft.put("--hicache-storage-backend", "mooncake" if features.kv_offload == "mooncake" else None)
