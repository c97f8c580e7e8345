"""The few families of TensorRT-LLM and LMDeploy that a router or a scaler reads, named as in their sources."""

from collections.abc import Mapping

from simulator.engine_state import EngineState
from simulator.exposition import Family
from simulator.metrics_book import MetricsBook, Target
from simulator.settings import Dialect, EngineSettings
from simulator.signals import Count, Measure

_FIRST_TOKEN_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
_OUTPUT_TOKEN_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
_REQUEST_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
_HISTOGRAMS: Mapping[Measure, tuple[str, tuple[float, ...]]] = {
    Measure.TIME_TO_FIRST_TOKEN: ("time_to_first_token_seconds", _FIRST_TOKEN_BOUNDS),
    Measure.TIME_PER_OUTPUT_TOKEN: ("time_per_output_token_seconds", _OUTPUT_TOKEN_BOUNDS),
    Measure.END_TO_END: ("e2e_request_latency_seconds", _REQUEST_BOUNDS),
    Measure.QUEUE: ("request_queue_time_seconds", _REQUEST_BOUNDS),
}
_COUNTERS: Mapping[Count, str] = {
    Count.PROMPT_TOKENS: "prompt_tokens_total",
    Count.GENERATED_TOKENS: "generation_tokens_total",
}


def small_metrics(settings: EngineSettings) -> MetricsBook:
    """Return the metrics of a TensorRT-LLM or an LMDeploy."""
    is_trt = settings.dialect is Dialect.TENSORRT_LLM
    prefix = "trtllm_" if is_trt else "lmdeploy:"
    labels = {"model_name": settings.api.served_names[0], **({"engine_type": "trtllm"} if is_trt else {"engine": "0"})}
    usage = "kv_cache_utilization" if is_trt else "gpu_cache_usage_perc"
    gauges = {name: Family(prefix + name, "gauge") for name in ("num_requests_running", "num_requests_waiting", usage)}
    counters = {what: Family(prefix + name, "counter") for what, name in _COUNTERS.items()}
    histograms = {what: Family(prefix + name, "histogram", bounds) for what, (name, bounds) in _HISTOGRAMS.items()}
    for family in (*gauges.values(), *counters.values(), *histograms.values()):
        family.at(labels)

    def update(state: EngineState) -> None:
        gauges["num_requests_running"].set(labels, state.running)
        gauges["num_requests_waiting"].set(labels, state.waiting)
        gauges[usage].set(labels, state.kv_usage)

    return MetricsBook(
        families=(*gauges.values(), *counters.values(), *histograms.values()),
        counts={what: (Target(family, labels),) for what, family in counters.items()},
        measures={what: (Target(family, labels),) for what, family in histograms.items()},
        update=update,
        path="/prometheus/metrics" if is_trt else "/metrics",
    )
