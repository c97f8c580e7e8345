"""Which wire format and which metrics belong to a dialect."""

from simulator.answer import Wire
from simulator.metrics_book import MetricsBook
from simulator.metrics_sglang import sglang_metrics
from simulator.metrics_small import small_metrics
from simulator.metrics_vllm import vllm_metrics
from simulator.settings import Dialect, EngineSettings
from simulator.wire_plain import PlainWire
from simulator.wire_vllm import VllmWire


def wire_for(dialect: Dialect) -> Wire:
    """Return the wire format of a dialect."""
    return VllmWire() if dialect is Dialect.VLLM else PlainWire(dialect)


def metrics_for(settings: EngineSettings) -> MetricsBook:
    """Return the metrics of an engine."""
    match settings.dialect:
        case Dialect.VLLM:
            return vllm_metrics(settings)
        case Dialect.SGLANG:
            return sglang_metrics(settings)
        case Dialect.TENSORRT_LLM | Dialect.LMDEPLOY:
            return small_metrics(settings)
