"""What one simulated engine is told: its dialect, its limits, and how fast it pretends to be."""

from dataclasses import dataclass, field
from enum import StrEnum


class Dialect(StrEnum):
    """The engine whose wire format and metric names are spoken."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    LMDEPLOY = "lmdeploy"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work the engine takes at once. `None` means without limit."""

    max_model_len: int = 32_768
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8_192
    max_queued_requests: int | None = None
    max_queued_tokens: int | None = None
    queue_limit_counts_running: bool = True
    """vLLM counts waiting and running requests against the limit, SGLang only waiting ones."""


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The KV cache: its size in blocks, and whether prefixes are kept."""

    block_size: int = 16
    num_blocks: int = 16_384
    prefix_caching: bool = True
    blocks_were_given: bool = False
    block_size_was_given: bool = False


class Task(StrEnum):
    """What the model of an engine is for."""

    GENERATE = "generate"
    EMBED = "embed"
    RANK = "rank"
    TRANSCRIBE = "transcribe"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What the HTTP side answers with."""

    served_names: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    reports_cached_tokens: bool = False
    always_sends_usage: bool = False
    reports_request_metrics: bool = False
    metrics_are_on: bool = True
    has_tool_parser: bool = False
    has_auto_tools: bool = False
    returns_request_ids: bool = False
    image_limit: int | None = None
    """Images that a prompt may hold; `None` for a model that sees none."""
    task: Task = Task.GENERATE
    keep_alive_seconds: float | None = None
    """Seconds without an event after which a comment is sent; `None` never sends one."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The seeded latency model, and how much faster than real it runs."""

    seed: int = 0
    prefill_tokens_per_second: float = 10_000.0
    decode_seconds: float = 0.03
    speed: float = 1.0
    time_scale: float = 1.0
    startup_seconds: float = 0.2
    drain_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One simulated engine, complete."""

    dialect: Dialect
    version: str
    model: str
    host: str
    port: int
    api: ApiSettings
    limits: Limits = field(default_factory=Limits)
    cache: CacheSettings = field(default_factory=CacheSettings)
    pace: Pace = field(default_factory=Pace)
