"""Whether an engine has the metrics that a trigger asks for: by what running engines said and the catalogue names.

Of vLLM everything that a server exposes was seen, so a name that is not among it is refused. Of the others only some
names are known: refused is what another version calls so, and what is one of the known names but for its spelling.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.promql_shapes import Shape
from fleet.engine import MetricsDialect
from fleet.nearest import nearest

METRIC_KNOWN = CloudRule(
    "keda-metric-known",
    Grade.HIGH,
    "Triggers ask for metrics that the engine's version has",
    "take the name that the engine catalogue gives ('enginehouse engines')",
    "vllm#18354, production-stack#617, aibrix#2057; kthena#868: vllm: written as vllm_",
)
SUFFIXES = ("_bucket", "_sum", "_count", "_created")
"""What a metric's parts are called: buckets, sum and count of a histogram, and when a counter began."""
LIKENESS = 0.93
"""From which share of common letters on a name is another one misspelt."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """What servers of an engine were seen to expose."""

    names: frozenset[str]
    optional: tuple[str, ...]
    """How the names of those metrics begin that only some settings bring."""


_VLLM_NAMES = """
        cache_config_info e2e_request_latency_seconds engine_sleep_state estimated_flops_per_gpu_total
        estimated_read_bytes_per_gpu_total estimated_write_bytes_per_gpu_total external_prefix_cache_hits_total
        external_prefix_cache_queries_total generation_tokens_total inter_token_latency_seconds
        iteration_tokens_total kv_cache_usage_perc lora_requests_info mm_cache_hits_total mm_cache_queries_total
        num_preemptions_total num_requests_running num_requests_waiting num_requests_waiting_by_reason
        prefix_cache_hits_total prefix_cache_queries_total prompt_tokens_by_source_total
        prompt_tokens_cached_by_source_total prompt_tokens_cached_total prompt_tokens_total
        request_decode_time_seconds request_generation_tokens request_inference_time_seconds
        request_max_num_generation_tokens request_num_preemptions request_params_max_tokens request_params_n
        request_prefill_kv_computed_tokens request_prefill_time_seconds request_prompt_tokens
        request_queue_time_seconds request_success_total request_time_per_output_token_seconds
        time_to_first_token_seconds tool_call_parser_invocations_total
"""
EXPOSED: Mapping[str, Exposed] = {
    "vllm": Exposed(
        frozenset(f"vllm:{name}" for name in _VLLM_NAMES.split()),
        ("vllm:spec_decode_", "vllm:nixl_", "vllm:kv_offload_", "vllm:lora_", "vllm:mm_", "vllm:corrupted_requests"),
    ),
}
"""Dialect -> what is known of all its metrics: captures of running vLLM 0.31 and 0.32."""


def metric_findings(where: str, shape: Shape, dialects: Sequence[MetricsDialect]) -> Iterator[Finding]:
    """Metrics that a query can't do without, and that no engine behind it has."""
    if shape.unnamed:
        message = f"{where} reads series by their labels, whatever metric they are of; this can't be judged"
        yield Finding(METRIC_KNOWN, message, "name the metric")
    known = frozenset(name for dialect in dialects for name in names_of(dialect))
    families = frozenset(_family(name) for name in known)
    for group in shape.needs:
        own = sorted(name for name in group if _family(name) in families)
        if own and not any(_may_be(name, known, _named_like(name, dialects)) for name in own):
            behind = _named_like(own[0], dialects)
            close = nearest(own[0], known | _listed(behind))
            engines = ", ".join(sorted({dialect.name for dialect in behind}))
            remedy = f"take {close}" if close else f"take one of {', '.join(sorted(known))}"
            yield Finding(METRIC_KNOWN, f"{where} asks for {', '.join(own)}, which {engines} does not have", remedy)


def names_of(dialect: MetricsDialect) -> frozenset[str]:
    """The metrics of a dialect that matter here, without the labels that some are named with."""
    values = (getattr(dialect, item.name) for item in fields(dialect) if item.name not in ("name", "path", "source"))
    return frozenset(value.partition("{")[0] for value in values if isinstance(value, str))


def _named_like(metric: str, dialects: Sequence[MetricsDialect]) -> tuple[MetricsDialect, ...]:
    """The dialects whose metrics begin as this one does: no other engine has it, whichever may run there."""
    family = _family(metric)
    return tuple(item for item in dialects if any(_family(name) == family for name in names_of(item)))


def _may_be(name: str, known: frozenset[str], dialects: Sequence[MetricsDialect]) -> bool:
    """Whether an engine may have a metric of this name, as far as anybody knows."""
    if _is_among(name, known):
        return True
    lists = [EXPOSED[dialect.name] for dialect in dialects if dialect.name in EXPOSED]
    if any(_is_among(name, item.names) or name.startswith(item.optional) for item in lists):
        return True
    return len(lists) < len(dialects) and not _is_misspelt(name, known)


def _is_among(name: str, known: frozenset[str]) -> bool:
    """Whether it is a known name, or a part of what has one."""
    bases = [name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)]
    return name in known or any(base in known or f"{base}_total" in known for base in bases)


def _is_misspelt(name: str, known: frozenset[str]) -> bool:
    """Whether it is meant for a known name: with other marks between the words, or letters changed."""
    bases = {name, *(name.removesuffix(suffix) for suffix in SUFFIXES)}
    if {_plain(base) for base in bases} & {_plain(item) for item in known}:
        return True
    return bool(difflib.get_close_matches(_plain(name), map(_plain, known), n=1, cutoff=LIKENESS))


def _listed(dialects: Sequence[MetricsDialect]) -> frozenset[str]:
    return frozenset(name for dialect in dialects if dialect.name in EXPOSED for name in EXPOSED[dialect.name].names)


def _plain(metric: str) -> str:
    return metric.replace(":", "_").lower()


def _family(metric: str) -> str:
    """What an engine puts before its metrics, whether a colon or an underscore follows it."""
    return _plain(metric).partition("_")[0]
