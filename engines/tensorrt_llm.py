"""TensorRT-LLM behind its own server or behind Triton: few flags, the rest in a file of options."""

import json

from engines.draft import Draft
from engines.engine import plain_command, put_kv_cache, put_parallelism, put_quantization
from engines.wishes import Wish
from fleet.engine import CommandLine

OPTIONS_FILE = "trtllm-options.yaml"
MODEL_REPOSITORY = "model-repository"
"""Where Triton finds the built engine, relative to where it is started."""
_SPECULATIVE: dict[str, dict[str, object]] = {
    "ngram": {"decoding_type": "NGram", "max_draft_len": 3, "max_matching_ngram_size": 4},
    "mtp": {"decoding_type": "MTP", "num_nextn_predict_layers": 1},
}


class TensorrtLlm:
    """Command lines of TensorRT-LLM."""

    def derive(self, wish: Wish, draft: Draft, host: str | None, port: int | None) -> None:
        """Everything that the manifest says, as flags and options."""
        features, batch = wish.spec.features, wish.spec.batch
        draft.put("--revision", wish.spec.model.revision)
        draft.put("--host", host)
        draft.put("--port", port)
        if batch is not None:
            draft.put("--max_seq_len", batch.max_model_len)
            draft.put("--max_batch_size", batch.max_num_seqs)
            draft.put("--max_num_tokens", batch.max_num_batched_tokens)
        put_kv_cache(wish, draft)
        put_parallelism(wish, draft)
        put_quantization(wish, draft)
        draft.put("--tool_parser", features.tool_parser)
        if features.trust_remote_code:
            draft.put("--trust_remote_code", True)
        draft.put("--config", OPTIONS_FILE)
        draft.options = _options(wish)

    def command(self, wish: Wish, draft: Draft) -> CommandLine:
        """The finished command; Triton's says where the built engine lies instead of what it does."""
        if wish.front == "triton":
            return _triton(wish, draft)
        plain = plain_command(wish, draft, positional=True)
        return CommandLine(plain.argv, plain.environment, {OPTIONS_FILE: json.dumps(draft.options, indent=2) + "\n"})


def _options(wish: Wish) -> dict[str, object]:
    """The file of options: JSON, which is YAML too."""
    batch, features = wish.spec.batch, wish.spec.features
    options: dict[str, object] = {"return_perf_metrics": True, "enable_iter_perf_stats": True}
    if batch is not None:
        dtype = wish.table.kv_cache.values.get(batch.kv_cache_dtype, "auto")
        options["kv_cache_config"] = {"enable_block_reuse": batch.enable_prefix_caching, "dtype": dtype}
    if features.structured_output:
        options["guided_decoding_backend"] = "xgrammar"
    if features.speculative in _SPECULATIVE:
        options["speculative_config"] = _SPECULATIVE[features.speculative]
    return options


def _triton(wish: Wish, draft: Draft) -> CommandLine:
    address = [
        f"--http-{key}={draft.value(spelling)}"
        for key, spelling in (("address", "--host"), ("port", "--port"))
        if draft.value(spelling) is not None
    ]
    argv = (*wish.table.fronts["triton"].launch, f"--model-repository={MODEL_REPOSITORY}", *address)
    return CommandLine(argv=argv, environment=dict(wish.table.environment), files={})
