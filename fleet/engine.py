"""What the rules need to know about engines: the Protocol that the catalogue implements."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from fleet.codepath import Exposure
from fleet.manifest import AnyManifest, PinnedManifest
from fleet.spec import EngineName, HostedName


@dataclass(frozen=True, slots=True)
class CommandLine:
    """How an engine is started: arguments, environment, and files that must lie beside it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    """File name -> text, for engines that take settings from a file; ``argv`` names them by this name."""


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """A flag that the version lacks or whose value it does not take."""

    flag: str
    message: str
    """What is wrong and which version has it."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A feature, quantisation or parallelism that the engine or version can't do."""

    pointer: str
    """JSON pointer into the manifest."""
    message: str


@dataclass(frozen=True, slots=True)
class Preference:
    """How well an engine suits a workload: 0..1, with the reason from data."""

    score: float
    reason: str


Front = Literal["trtllm-serve", "triton"]
"""The server in front of an engine that can have several."""
PoolRole = Literal["prefill", "decode"]
"""The side of a disaggregated deployment that a command starts."""


@dataclass(frozen=True, slots=True)
class MetricsDialect:
    """Where an engine of one version puts its metrics and what it calls the ones that matter.

    A name that is ``None`` is not exposed by the version. Counters are named as they are exposed, with ``_total``.
    """

    name: str
    path: str | None
    """``None`` = the engine has no metrics."""
    port: int | None
    """``None`` = the serving port."""
    running: str | None
    """Requests in the batch (gauge)."""
    waiting: str | None
    """Requests in the engine's own queue (gauge)."""
    kv_usage: str | None
    """Share of the KV cache in use, 0..1 (gauge)."""
    prefix_hits: str | None
    """Prompt tokens found in the prefix cache (counter)."""
    prefix_queries: str | None
    """Prompt tokens looked up (counter)."""
    rejected: str | None
    """Requests that the engine refused to queue (counter)."""
    ttft_seconds: str | None
    """Time to the first token (histogram)."""
    inter_token_seconds: str | None
    """Time between tokens (histogram)."""
    e2e_seconds: str | None
    """Time of the whole request (histogram)."""
    source: str
    """Where the names were read."""
    cache_info: str | None = None
    """Its labels ``num_gpu_blocks`` and ``block_size`` say how many tokens the KV cache can hold (gauge)."""
    cache_tokens: str | None = None
    """How many tokens the KV cache can hold (gauge)."""


@dataclass(frozen=True, slots=True)
class Probes:
    """HTTP paths on the serving port that answer 200."""

    startup: str
    """Once the model is loaded."""
    readiness: str
    liveness: str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """How an engine is asked to stop."""

    signal: str
    drains: bool
    """Whether requests that run are answered before it ends."""
    flag: str | None
    """The flag that sets how long it drains; ``None`` = not settable."""
    drain_seconds: int
    """How long the house lets it drain."""
    note: str


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """What one engine of one version can do, as people and pages read it."""

    name: EngineName
    package: str
    version: str
    flags_of: str
    """The version whose flag list stands for it: its own, else the nearest known one."""
    note: str | None
    """Says that the flag list is not the version's own."""
    released: str | None
    """The day of its upload, ISO 8601; ``None`` = not known."""
    refusal: str | None
    quantizations: tuple[str, ...]
    kv_cache_dtypes: tuple[str, ...]
    parallelism: tuple[str, ...]
    features: tuple[str, ...]
    cannot: tuple[str, ...]
    """What this version can't do, each with its reason."""
    metrics: MetricsDialect
    probes: Probes
    shutdown: Shutdown


@dataclass(frozen=True, slots=True)
class BuildNeed:
    """A model has to be built for an engine of one version before it can start."""

    reason: str
    refusal: str | None
    """Why this version can't build one, or ``None``."""
    most_gpus: int
    """That one built engine can span."""
    argv: tuple[str, ...]
    """The command, in a folder that holds ``checkpoint`` and gets ``engines``; empty while batch or plan are open."""


@dataclass(frozen=True, slots=True)
class HostedTarget:
    """Where requests for a hosted engine go: no pods, no version, the key by reference."""

    name: HostedName
    endpoint: str
    api_key_ref: str
    model: str
    note: str


class EngineCatalogue(Protocol):
    """What each engine can do, per version. Implemented by ``engines.catalogue``."""

    @property
    def digest(self) -> str:
        """The digest of the catalogue's data."""
        ...

    @property
    def names(self) -> tuple[EngineName, ...]:
        """The engines that it knows."""
        ...

    @property
    def hosted_names(self) -> tuple[HostedName, ...]:
        """The hosted engines that it knows."""
        ...

    def package(self, name: EngineName) -> str:
        """The normalised package name under which advisories are filed."""
        ...

    def refusal(self, name: EngineName) -> str | None:
        """Why an engine is not offered (not maintained, not open), or ``None``."""
        ...

    def exposure(self, manifest: AnyManifest, name: EngineName, version: str) -> Exposure:
        """The code paths that model, flags and features switch on."""
        ...

    def flag_problems(self, manifest: AnyManifest, name: EngineName, version: str) -> tuple[FlagProblem, ...]:
        """Flags of the manifest that the version does not take."""
        ...

    def unsupported(self, manifest: AnyManifest, name: EngineName, version: str) -> tuple[Unsupported, ...]:
        """What the manifest asks and the version can't do."""
        ...

    def preference(self, manifest: AnyManifest, name: EngineName) -> Preference:
        """How well the engine suits the workload."""
        ...

    def command_line(
        self,
        manifest: PinnedManifest,
        *,
        host: str,
        port: int,
        pool: PoolRole | None = None,
        weights_uri: str | None = None,
    ) -> CommandLine:
        """How the pinned engine is started; settings whose default moved between versions are written out.

        ``pool`` says which side of a disaggregated deployment is started. ``weights_uri`` is where the files of the
        pinned revision are, for an engine that streams them: a matter of the place, so no part of the identity.
        """
        ...

    def describe(self, name: EngineName, version: str) -> EngineDescription:
        """What an engine of one version can do."""
        ...

    def versions(self, name: EngineName) -> tuple[str, ...]:
        """The versions whose day of upload is known, ascending."""
        ...

    def released(self, name: EngineName, version: str) -> str | None:
        """The day of a version's upload, ISO 8601, or ``None`` when it is not known."""
        ...

    def metrics(self, name: EngineName, version: str, front: Front | None = None) -> MetricsDialect:
        """Where the metrics are and what they are called."""
        ...

    def probes(self, name: EngineName, version: str, front: Front | None = None) -> Probes:
        """The paths that say whether it runs and is ready."""
        ...

    def shutdown(self, name: EngineName, version: str) -> Shutdown:
        """How it is asked to stop."""
        ...

    def quantized_at_load(self, name: EngineName, version: str) -> tuple[str, ...]:
        """Quantisations that a version makes of 16-bit weights as it loads them, without room for all 16-bit ones."""
        ...

    def no_streaming(self, manifest: AnyManifest, name: EngineName, version: str) -> str | None:
        """Why a version can't stream the manifest's weights out of object storage, or ``None``."""
        ...

    def engine_build(self, manifest: AnyManifest, name: EngineName, version: str) -> BuildNeed | None:
        """What has to be built for the engine before it can start, or ``None``."""
        ...

    def hosted(self, manifest: AnyManifest) -> HostedTarget | None:
        """Where requests go when somebody else runs the engine, or ``None``."""
        ...
