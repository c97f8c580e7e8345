"""What the data says about an engine, as closed types: verdicts and capabilities stand there, not in code."""

from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from pydantic import Field

from engines.span import Span
from engines.streaming import Streaming
from fleet.engine import Probes
from fleet.recall import Recall
from fleet.spec import FlagValue
from fleet.value import Value
from fleet.versions import parse_version

Ask = str
"""A word for something that a manifest asks for; ``engines.wishes`` makes them."""


class Refusal(Value):
    """Why an engine is not offered."""

    reason: str
    source: str


class Written(Value):
    """A setting that every command line states, so that an upgrade can't move it."""

    flag: str
    value: FlagValue
    when: tuple[Ask, ...] = ()
    """Written only for a manifest that asks for one of these; empty = always."""
    why: str


class Moved(Value):
    """A default that moved between versions and is left to the engine."""

    flag: str
    why: str


class ClosesMedia(Value):
    """A flag that makes a server refuse images, video and audio."""

    flag: str
    how: Literal["zeros", "switch"]
    """``zeros``: a limit per modality, all at 0. ``switch``: the bare flag."""


class PathRule(Value):
    """What opens one code path."""

    path: str
    always: bool = False
    any: tuple[Ask, ...] = ()
    flags: tuple[str, ...] = ()
    off: dict[str, str] = Field(default_factory=dict)
    """Flag -> the value that closes the path."""
    reason: str


class Requirement(Value):
    """What a version must have for something that a manifest asks."""

    any: tuple[Ask, ...]
    pointer: str
    flags: tuple[str, ...]
    choice: str | None = None
    """A value that the first flag must take."""
    choice_of: Literal["tool_parser"] | None = None
    """The feature whose value the first flag must take."""


class NeedsFlag(Value):
    """Something that a manifest asks and can't say in full: one of the flags has to be given."""

    any: tuple[Ask, ...]
    pointer: str
    flags: tuple[str, ...]
    message: str


class Limit(Span):
    """Something that versions can't do."""

    any: tuple[Ask, ...]
    pointer: str
    message: str
    source: str


class AtLoad(Span):
    """Versions that quantise 16-bit weights layer by layer as they load them, never holding all of them in 16 bits."""

    source: str


class QuantizationSupport(Value):
    """How a quantisation is switched on."""

    flag: str | None = None
    """``None`` = the checkpoint's own configuration says it."""
    value: str | None = None
    choices_of: str | None = None
    """The flag among whose choices the version must have one of ``any_of``, where it lists any."""
    any_of: tuple[str, ...] = ()
    at_load: AtLoad | None = None
    """``None`` = the checkpoint has to bring it, or the whole of it is held in 16 bits before."""

    def is_met(self, choices: tuple[str, ...] | None) -> bool:
        """Whether a version with these choices serves it."""
        return not self.any_of or choices is None or not set(self.any_of).isdisjoint(choices)


class KvCacheSupport(Value):
    """How the type of the KV cache is set."""

    flag: str | None = None
    """``None`` = not by a flag."""
    values: dict[str, str]


class MemoryShare(Value):
    """How the share of a GPU's memory that an engine takes is set."""

    flag: str
    of: Literal["all", "free"]
    """``all``: of the whole GPU. ``free``: for the cache alone, of what is free once the weights are loaded."""


class ParallelSupport(Value):
    """How one kind of parallelism is set."""

    flag: str
    sizes: Literal["any", "all-ranks", "divides-tensor"] = "any"


class Build(Span):
    """When a model has to be built for the engine first, and by which versions it can be."""

    any: tuple[Ask, ...]
    reason: str
    argv: tuple[str, ...]
    """Words in braces are filled in from the manifest: the names of its model, batch and parallelism."""
    most_gpus: int
    """That one built engine can span."""
    otherwise: str
    """Why other versions can't build one."""
    source: str


class ProbeTable(Value):
    """Paths that answer 200."""

    startup: str
    readiness: str
    liveness: str

    def probes(self) -> Probes:
        """The value that callers see."""
        return Probes(startup=self.startup, readiness=self.readiness, liveness=self.liveness)


class Front(Value):
    """Another server in front of the engine."""

    launch: tuple[str, ...]
    probes: ProbeTable


class ShutdownTable(Value):
    """How the engine is asked to stop."""

    signal: str
    drains: bool
    flag: str | None = None
    drain_seconds: int
    note: str


class MetricsTable(Span):
    """The names of the metrics that matter; one that is left out does not exist."""

    name: str
    front: str | None = None
    path: str | None = None
    port: int | None = None
    running: str | None = None
    waiting: str | None = None
    kv_usage: str | None = None
    prefix_hits: str | None = None
    prefix_queries: str | None = None
    rejected: str | None = None
    ttft_seconds: str | None = None
    inter_token_seconds: str | None = None
    e2e_seconds: str | None = None
    cache_info: str | None = None
    cache_tokens: str | None = None
    source: str


class Operations(Value):
    """Kinds of requests, in the gateway's words."""

    operations: tuple[str, ...] = ()
    source: str = ""


class Score(Value):
    """A preference of the house."""

    score: float
    reason: str


class EngineTable(Value):
    """Everything that the data says about one engine."""

    package: str
    launch: tuple[str, ...]
    environment: dict[str, str]
    flags_of: str | None = None
    flags_note: str | None = None
    refusal: Refusal | None = None
    owned: dict[str, str]
    """Flag -> the part of the manifest that sets it."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Flag -> why a manifest can't give it."""
    written: tuple[Written, ...] = ()
    moved: tuple[Moved, ...] = ()
    closes_media: tuple[ClosesMedia, ...] = ()
    exposure: tuple[PathRule, ...]
    requires: tuple[Requirement, ...] = ()
    needs_flag: tuple[NeedsFlag, ...] = ()
    limits: tuple[Limit, ...] = ()
    quantizations: dict[str, QuantizationSupport]
    kv_cache: KvCacheSupport
    memory_share: MemoryShare | None = None
    """``None`` = it can't be set."""
    parallelism: dict[str, ParallelSupport]
    build: Build | None = None
    streaming: Streaming | None = None
    """``None`` = it loads weights from files alone."""
    probes: ProbeTable
    fronts: dict[str, Front] = Field(default_factory=dict)
    shutdown: ShutdownTable
    metrics: tuple[MetricsTable, ...]
    cache_salt: Operations = Operations()
    """Requests that can say by the field ``cache_salt`` whose cached prompts they may use."""
    text: Operations = Operations()
    """What its server takes for a model that writes text; empty = not known."""
    preference: dict[str, Score]

    def metrics_of(self, version: str, front: str | None) -> MetricsTable:
        """The dialect of a version: the first that covers it, for the front or for the engine itself."""
        parsed = parse_version(version)
        fronts = (front, None) if any(item.front == front for item in self.metrics) else (None,)
        matching = (item for wanted in fronts for item in self.metrics if item.front == wanted and item.covers(parsed))
        return next(matching, self.metrics[-1])


class ModelTable(Value):
    """Which models take text only."""

    text_only: tuple[str, ...]
    takes_media: tuple[str, ...]

    @cached_property
    def _asked(self) -> Recall[str, bool]:
        return Recall()

    def is_text_only(self, model_id: str) -> bool:
        """Whether a model is known to take text only; one that is not known may take media."""
        return self._asked.of(model_id, lambda: self._is_text_only(model_id.lower()))

    def _is_text_only(self, lowered: str) -> bool:
        if any(fnmatchcase(lowered, pattern.lower()) for pattern in self.takes_media):
            return False
        return any(fnmatchcase(lowered, pattern.lower()) for pattern in self.text_only)


class HostedTable(Value):
    """What the data says about a hosted engine."""

    note: str
