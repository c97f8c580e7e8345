"""The vLLM dialect: `vllm:` families as a captured engine exposes them, by version."""

from collections.abc import Mapping
from typing import Any

from simulator.engine_state import EngineState
from simulator.exposition import Family, one_two_five
from simulator.metrics_book import HttpExchange, MetricsBook, Target, catalog, is_in_version
from simulator.process_metrics import process_families
from simulator.settings import EngineSettings
from simulator.signals import Count, Measure

_COUNTS: Mapping[Count, tuple[tuple[str, Mapping[str, str]], ...]] = {
    Count.PROMPT_TOKENS: (("prompt_tokens_total", {}),),
    Count.GENERATED_TOKENS: (("generation_tokens_total", {}),),
    Count.CACHE_QUERIES: (("prefix_cache_queries_total", {}),),
    Count.CACHE_HITS: (
        ("prefix_cache_hits_total", {}),
        ("prompt_tokens_cached_total", {}),
        ("prompt_tokens_by_source_total", {"source": "local_cache_hit"}),
        ("prompt_tokens_cached_by_source_total", {"source": "device"}),
    ),
    Count.COMPUTED_TOKENS: (("prompt_tokens_by_source_total", {"source": "local_compute"}),),
    Count.PREEMPTIONS: (("num_preemptions_total", {}),),
    Count.FINISHED_STOP: (("request_success_total", {"finished_reason": "stop"}),),
    Count.FINISHED_LENGTH: (("request_success_total", {"finished_reason": "length"}),),
    Count.REFUSED_REQUESTS: (("admission_rejections_total", {"reason": "max_num_queued_reqs"}),),
    Count.REFUSED_TOKENS: (("admission_rejections_total", {"reason": "max_num_queued_tokens"}),),
}
_MEASURES: Mapping[Measure, tuple[str, ...]] = {
    Measure.TIME_TO_FIRST_TOKEN: ("time_to_first_token_seconds",),
    Measure.INTER_TOKEN: ("inter_token_latency_seconds",),
    Measure.TIME_PER_OUTPUT_TOKEN: ("request_time_per_output_token_seconds",),
    Measure.END_TO_END: ("e2e_request_latency_seconds",),
    Measure.QUEUE: ("request_queue_time_seconds",),
    Measure.PREFILL: ("request_prefill_time_seconds",),
    Measure.DECODE: ("request_decode_time_seconds",),
    Measure.INFERENCE: ("request_inference_time_seconds",),
    Measure.PROMPT_LENGTH: ("request_prompt_tokens",),
    Measure.UNCACHED_PROMPT_LENGTH: ("request_prefill_kv_computed_tokens",),
    Measure.ANSWER_LENGTH: ("request_generation_tokens", "request_max_num_generation_tokens"),
    Measure.STEP_TOKENS: ("iteration_tokens_total",),
    Measure.ASKED_TOKENS: ("request_params_max_tokens",),
    Measure.ASKED_CHOICES: ("request_params_n",),
    Measure.PREEMPTIONS: ("request_num_preemptions",),
}


def vllm_metrics(settings: EngineSettings) -> MetricsBook:
    """Return the metrics of a vLLM of the pinned version."""
    known = catalog("vllm_metrics.json")
    families: dict[str, Family] = {}
    common: dict[str, Mapping[str, str]] = {}
    for entry in known["families"]:
        name = entry["name"]
        if is_in_version(entry, settings.version, known["oldest"]) and _is_switched_on(entry, settings):
            families[name] = Family(name, entry["type"], _bounds(entry, settings))
            common[name] = _common_labels(entry, settings)
            for extra in entry.get("series", [{}] if name.startswith("vllm:") else []):
                families[name].at({**common[name], **extra})
    families["vllm:cache_config_info"].set(_cache_labels(known, settings), 1)
    _set(families, common, "engine_sleep_state", 1, sleep_state="awake")

    def targets(name: str, extra: Mapping[str, str]) -> tuple[Target, ...]:
        full = f"vllm:{name}"
        return (Target(families[full], {**common[full], **extra}),) if full in families else ()

    return MetricsBook(
        families=tuple(families.values()),
        counts={what: sum((targets(*pair) for pair in pairs), ()) for what, pairs in _COUNTS.items()},
        measures={what: sum((targets(name, {}) for name in names), ()) for what, names in _MEASURES.items()},
        update=lambda state: _update(families, common, state, settings),
        note_http=lambda exchange: _note_http(families, exchange),
        more_families=process_families,
        with_created=True,
    )


def _is_switched_on(entry: Mapping[str, Any], settings: EngineSettings) -> bool:
    switches = {
        "lora": bool(settings.api.adapters),
        "tool_call_parser": settings.api.has_tool_parser,
    }
    return switches.get(entry.get("when", ""), True) and not entry["name"].startswith(("python_", "process_"))


def _bounds(entry: Mapping[str, Any], settings: EngineSettings) -> tuple[float, ...]:
    buckets = entry.get("buckets", [])
    return one_two_five(settings.limits.max_model_len) if isinstance(buckets, str) else tuple(buckets)


def _common_labels(entry: Mapping[str, Any], settings: EngineSettings) -> dict[str, str]:
    values = {"engine": "0", "model_name": settings.api.served_names[0]}
    return {name: value for name, value in values.items() if name in entry["labels"]}


def _cache_labels(known: Mapping[str, Any], settings: EngineSettings) -> dict[str, str]:
    cache = settings.cache
    tokens = cache.num_blocks * cache.block_size
    by_version = [
        label for label in known["cache_config_by_version"] if is_in_version(label, settings.version, known["oldest"])
    ]
    return {
        **known["cache_config"],
        **{label["name"]: label["value"] for label in by_version},
        "engine": "0",
        "block_size": str(cache.block_size),
        "effective_attention_block_size": str(cache.block_size),
        "enable_prefix_caching": str(cache.prefix_caching),
        "kv_cache_max_concurrency": str(tokens / settings.limits.max_model_len),
        "kv_cache_memory_bytes": "None",
        "kv_cache_size_tokens": str(tokens),
        "num_gpu_blocks": str(cache.num_blocks),
        "num_gpu_blocks_override": str(cache.num_blocks if cache.blocks_were_given else None),
        "user_specified_block_size": str(cache.block_size_was_given),
    }


def _set(
    families: Mapping[str, Family], common: Mapping[str, Mapping[str, str]], name: str, value: float, **extra: str
) -> None:
    full = f"vllm:{name}"
    if full in families:
        families[full].set({**common[full], **extra}, value)


def _update(
    families: Mapping[str, Family],
    common: Mapping[str, Mapping[str, str]],
    state: EngineState,
    settings: EngineSettings,
) -> None:
    _set(families, common, "num_requests_running", state.running)
    _set(families, common, "num_requests_waiting", state.waiting)
    _set(families, common, "num_requests_waiting_by_reason", state.waiting, reason="capacity")
    _set(families, common, "kv_cache_usage_perc", state.kv_usage)
    adapters = {
        "running_lora_adapters": ",".join(state.running_adapters),
        "waiting_lora_adapters": ",".join(state.waiting_adapters),
        "max_lora": str(len(settings.api.adapters)),
    }
    _set(families, common, "lora_requests_info", state.at, **adapters)


def _note_http(families: Mapping[str, Family], exchange: HttpExchange) -> None:
    handler, method = {"handler": exchange.handler}, {"method": exchange.method}
    status = {"status": f"{exchange.status // 100}xx"}
    families["http_requests_total"].add({**handler, **method, **status}, 1)
    families["http_request_size_bytes"].observe(handler, exchange.request_bytes)
    families["http_response_size_bytes"].observe(handler, exchange.response_bytes)
    families["http_request_duration_highr_seconds"].observe({}, exchange.seconds)
    families["http_request_duration_seconds"].observe({**handler, **method}, exchange.seconds)
