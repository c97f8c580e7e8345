"""The SGLang dialect: `sglang:` families with scheduler and tokenizer labels, by version."""

from collections.abc import Mapping
from typing import Any

from simulator.engine_state import EngineState
from simulator.exposition import Family
from simulator.metrics_book import MetricsBook, Target, catalog, is_in_version
from simulator.settings import EngineSettings
from simulator.signals import Count, Measure

_COUNTS: Mapping[Count, tuple[tuple[str, Mapping[str, str]], ...]] = {
    Count.PROMPT_TOKENS: (("prompt_tokens_total", {}),),
    Count.GENERATED_TOKENS: (("generation_tokens_total", {}), ("realtime_tokens_total", {"mode": "decode"})),
    Count.CACHE_HITS: (
        ("cached_tokens_total", {"cache_source": "total"}),
        ("realtime_tokens_total", {"mode": "prefill_cache"}),
    ),
    Count.COMPUTED_TOKENS: (("realtime_tokens_total", {"mode": "prefill_compute"}),),
    Count.PREEMPTIONS: (("num_retracted_requests_total", {}),),
    Count.REQUESTS: (("num_requests_total", {}),),
    Count.ABORTED: (("num_aborted_requests_total", {}),),
}
_MEASURES: Mapping[Measure, tuple[str, ...]] = {
    Measure.TIME_TO_FIRST_TOKEN: ("time_to_first_token_seconds",),
    Measure.INTER_TOKEN: ("inter_token_latency_seconds",),
    Measure.TIME_PER_OUTPUT_TOKEN: ("request_time_per_output_token_seconds", "time_per_output_token_seconds"),
    Measure.END_TO_END: ("e2e_request_latency_seconds",),
    Measure.QUEUE: ("queue_time_seconds",),
    Measure.PROMPT_LENGTH: ("prompt_tokens_histogram",),
    Measure.UNCACHED_PROMPT_LENGTH: ("uncached_prompt_tokens_histogram",),
    Measure.ANSWER_LENGTH: ("generation_tokens_histogram",),
}


def sglang_metrics(settings: EngineSettings) -> MetricsBook:
    """Return the metrics of an SGLang of the pinned version."""
    known = catalog("sglang_metrics.json")
    version, oldest = settings.version, known["oldest"]
    optional = {label["name"] for label in known["labels"]["extra"] if is_in_version(label, version, oldest)}
    families: dict[str, Family] = {}
    common: dict[str, Mapping[str, str]] = {}
    splits: set[str] = set()
    for entry in known["families"]:
        if not is_in_version(entry, version, oldest):
            continue
        name = entry["name"].removeprefix("sglang:")
        families[name] = Family(entry["name"], entry["type"], tuple(entry.get("buckets", ())))
        common[name] = _labels(known["labels"][entry["side"]], settings, oldest)
        if "is_streaming" in entry.get("extra", ()) and "is_streaming" in optional:
            splits.add(name)
        elif entry["type"] != "histogram":
            for extra in entry.get("series", [{}]):
                families[name].at({**common[name], **_kept(extra, optional)})

    def targets(name: str, extra: Mapping[str, str]) -> tuple[Target, ...]:
        if name not in families:
            return ()
        return (Target(families[name], {**common[name], **_kept(extra, optional)}, name in splits),)

    return MetricsBook(
        families=tuple(families.values()),
        counts={what: sum((targets(*pair) for pair in pairs), ()) for what, pairs in _COUNTS.items()},
        measures={what: sum((targets(name, {}) for name in names), ()) for what, names in _MEASURES.items()},
        update=_Gauges(families, common, settings).update,
    )


def _labels(known: list[dict[str, Any]], settings: EngineSettings, oldest: str) -> dict[str, str]:
    model = settings.api.served_names[0]
    return {
        label["name"]: label.get("value", model) for label in known if is_in_version(label, settings.version, oldest)
    }


def _kept(extra: Mapping[str, str], optional: set[str]) -> dict[str, str]:
    return {name: value for name, value in extra.items() if name == "mode" or name in optional}


class _Gauges:
    """Writes the scheduler's gauges."""

    def __init__(
        self, families: Mapping[str, Family], common: Mapping[str, Mapping[str, str]], settings: EngineSettings
    ) -> None:
        self._families = families
        self._common = common
        self._settings = settings
        self._tokens_before = 0.0
        self._at_before = 0.0

    def update(self, state: EngineState) -> None:
        """Set every gauge from the present state."""
        size = self._settings.cache.block_size
        used, idle = state.blocks_used * size, state.blocks_idle * size
        total = state.blocks_total * size
        values = {
            "num_running_reqs": state.running,
            "num_queue_reqs": state.waiting,
            "token_usage": state.kv_usage,
            "full_token_usage": state.kv_usage,
            "num_used_tokens": used,
            "kv_used_tokens": used,
            "kv_evictable_tokens": idle,
            "kv_available_tokens": total - used - idle,
            "decode_sum_seq_lens": state.running_tokens,
            "cache_hit_rate": self._hit_rate(),
            "gen_throughput": self._throughput(state.at),
            "max_total_num_tokens": total,
            "page_size": size,
            "num_pages": state.blocks_total,
            "context_len": self._settings.limits.max_model_len,
        }
        for name, value in values.items():
            if name in self._families:
                self._families[name].set(self._common[name], value)

    def _total(self, name: str) -> float:
        family = self._families.get(name)
        return sum(series.value for series in family.series.values()) if family else 0.0

    def _hit_rate(self) -> float:
        prompt = self._total("prompt_tokens_total")
        return min(1.0, self._total("cached_tokens_total") / prompt) if prompt else 0.0

    def _throughput(self, at: float) -> float:
        tokens = self._total("generation_tokens_total")
        passed = at - self._at_before if self._at_before else 0.0
        rate = (tokens - self._tokens_before) / passed if passed > 0 else 0.0
        self._tokens_before, self._at_before = tokens, at
        return rate
