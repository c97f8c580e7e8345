"""LMDeploy: a command with the model as its argument."""

from engines.draft import Draft
from engines.engine import named_adapters, plain_command, put_kv_cache, put_parallelism, put_quantization
from engines.wishes import Wish
from fleet.engine import CommandLine


class Lmdeploy:
    """Command lines of LMDeploy."""

    def derive(self, wish: Wish, draft: Draft, host: str | None, port: int | None) -> None:
        """Everything that the manifest says, as flags."""
        features = wish.spec.features
        draft.put("--revision", wish.spec.model.revision)
        draft.put("--model-name", wish.served_name)
        draft.put("--server-name", host)
        draft.put("--server-port", port)
        _put_backend(wish, draft)
        _put_batch(wish, draft)
        put_parallelism(wish, draft)
        put_quantization(wish, draft)
        if set(wish.closed_media) == {"image", "video", "audio"}:
            for closing in wish.table.closes_media:
                draft.put(closing.flag, True)
        draft.put("--tool-call-parser", features.tool_parser)
        if features.lora:
            draft.put("--adapters", named_adapters(wish))
        if features.disaggregation == "prefill-decode":
            draft.put("--role", "Decode" if wish.pool == "decode" else "Prefill")
        if features.kv_offload == "mooncake":
            draft.put_json("--kv-transfer-config", {"kv_connector": "MooncakeStoreConnector", "kv_role": "kv_both"})
        if features.trust_remote_code:
            draft.put("--trust-remote-code", True)

    def command(self, wish: Wish, draft: Draft) -> CommandLine:
        """The finished command."""
        return plain_command(wish, draft, positional=True)


def _put_backend(wish: Wish, draft: Draft) -> None:
    """Adapters, disaggregation and connectors are in the PyTorch engine only; otherwise its own default is stated."""
    needs_pytorch = wish.asks_for("lora", "disaggregation:prefill-decode", "kv_offload:mooncake")
    draft.put("--backend", "pytorch" if needs_pytorch else "turbomind")


def _put_batch(wish: Wish, draft: Draft) -> None:
    batch = wish.spec.batch
    if batch is None:
        return
    draft.put("--session-len", batch.max_model_len)
    draft.put("--max-batch-size", batch.max_num_seqs)
    draft.put("--max-prefill-token-num", batch.max_num_batched_tokens)
    put_kv_cache(wish, draft)
    if batch.enable_prefix_caching:
        draft.put("--enable-prefix-caching", True)
