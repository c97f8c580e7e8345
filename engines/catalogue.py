"""The engine catalogue: what each engine of each version can do and how it is started, from the package's own data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from engines import exposure as paths
from engines import hosted, package_data, problems, support
from engines.builds import build_need
from engines.deepspeed import Deepspeed
from engines.describe import describe, metrics, shutdown
from engines.draft import Draft
from engines.engine import Engine, settings
from engines.flags import FlagBook
from engines.lmdeploy import Lmdeploy
from engines.package_data import PackageData
from engines.releases import Releases
from engines.sglang import Sglang
from engines.streaming import refuse_uri, streaming_problems
from engines.tables import EngineTable, HostedTable, ModelTable
from engines.tensorrt_llm import TensorrtLlm
from engines.vllm import Vllm
from engines.wishes import Wish
from fleet.codepath import Exposure
from fleet.engine import (
    BuildNeed,
    CommandLine,
    EngineDescription,
    FlagProblem,
    Front,
    HostedTarget,
    MetricsDialect,
    PoolRole,
    Preference,
    Probes,
    Shutdown,
    Unsupported,
)
from fleet.manifest import AnyManifest, PinnedManifest
from fleet.spec import EngineName, HostedName
from fleet.versions import parse_version

ENGINES: Mapping[EngineName, Engine] = {
    EngineName.VLLM: Vllm(),
    EngineName.SGLANG: Sglang(),
    EngineName.TENSORRT_LLM: TensorrtLlm(),
    EngineName.LMDEPLOY: Lmdeploy(),
    EngineName.DEEPSPEED: Deepspeed(),
}
"""Where a new engine goes: a module, a line here, a table and a flag list in the data."""


@dataclass(frozen=True, repr=False)
class Catalogue:
    """Implements `fleet.engine.EngineCatalogue`."""

    digest: str
    tables: Mapping[EngineName, EngineTable]
    books: Mapping[EngineName, FlagBook]
    models: ModelTable
    hosts: Mapping[HostedName, HostedTable]
    releases: Releases
    _last: list[tuple[AnyManifest, EngineName, str, Wish]] = field(default_factory=list, repr=False, compare=False)
    _drafted: list[tuple[Wish, Draft]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, data: PackageData) -> "Catalogue":
        """The catalogue that the data describes."""
        tables = {name: EngineTable.model_validate(data.toml(f"data/engines/{name}.toml")) for name in ENGINES}
        books = {
            name: FlagBook.read(name, data.json(f"data/flags/{name}.json"), fixed_note=tables[name].flags_note)
            for name in ENGINES
        }
        hosts = {HostedName(name): HostedTable(**entry) for name, entry in data.toml("data/hosted.toml").items()}
        models = ModelTable.model_validate(data.toml("data/models.toml"))
        return cls(data.digest, tables, books, models, hosts, Releases.read(data.toml("releases.toml")))

    def __repr__(self) -> str:
        return f"Catalogue({self.digest})"

    @property
    def names(self) -> tuple[EngineName, ...]:
        """The engines that it knows."""
        return tuple(self.tables)

    @property
    def hosted_names(self) -> tuple[HostedName, ...]:
        """The hosted engines that it knows."""
        return tuple(self.hosts)

    def package(self, name: EngineName) -> str:
        """The normalised package name under which advisories are filed."""
        return self.tables[name].package

    def refusal(self, name: EngineName) -> str | None:
        """Why an engine is not offered, or ``None``."""
        refusal = self.tables[name].refusal
        return f"{refusal.reason} ({refusal.source})" if refusal else None

    def exposure(self, manifest: AnyManifest, name: EngineName, version: str) -> Exposure:
        """The code paths that model, flags and features switch on."""
        wish = self._wished(manifest, name, version)
        return paths.exposure(wish, self._draft(wish))

    def flag_problems(self, manifest: AnyManifest, name: EngineName, version: str) -> tuple[FlagProblem, ...]:
        """Flags of the manifest that the version does not take."""
        return tuple(problems.flag_problems(self._wished(manifest, name, version)))

    def unsupported(self, manifest: AnyManifest, name: EngineName, version: str) -> tuple[Unsupported, ...]:
        """What the manifest asks and the version can't do."""
        return tuple(support.unsupported(self._wished(manifest, name, version)))

    def preference(self, manifest: AnyManifest, name: EngineName) -> Preference:
        """How well the engine suits the workload."""
        scores = self.tables[name].preference
        found = scores.get(manifest.spec.workload, scores["default"])
        return Preference(found.score, found.reason)

    def command_line(
        self,
        manifest: PinnedManifest,
        *,
        host: str,
        port: int,
        pool: PoolRole | None = None,
        weights_uri: str | None = None,
    ) -> CommandLine:
        """How the pinned engine is started.

        Raises:
            ValueError: it is hosted, its side is not named, or it can't load weights from a URI.
        """
        engine = manifest.spec.engine
        if engine is None or engine.name is None or engine.version is None:
            raise ValueError(f"'{manifest.name}' is hosted: there is no command to start it")
        if manifest.spec.features.disaggregation == "prefill-decode" and pool is None:
            raise ValueError(f"'{manifest.name}' is disaggregated: say which pool to start, prefill or decode")
        wish = replace(self._wish(manifest, engine.name, engine.version, pool), weights_uri=weights_uri)
        refuse_uri(wish)
        return ENGINES[engine.name].command(wish, self._settings(wish, host, port))

    def describe(self, name: EngineName, version: str) -> EngineDescription:
        """What an engine of one version can do."""
        released = self.releases.released(name, version)
        return describe(name, self.tables[name], self.books[name].at(version), self.refusal(name), released)

    def versions(self, name: EngineName) -> tuple[str, ...]:
        """The versions whose day of upload is known, ascending."""
        return self.releases.versions(name)

    def released(self, name: EngineName, version: str) -> str | None:
        """The day of a version's upload, ISO 8601, or ``None`` when it is not known."""
        return self.releases.released(name, version)

    def metrics(self, name: EngineName, version: str, front: Front | None = None) -> MetricsDialect:
        """Where the metrics are and what they are called."""
        return metrics(self.tables[name].metrics_of(version, front))

    def probes(self, name: EngineName, version: str, front: Front | None = None) -> Probes:
        """The paths that say whether it runs and is ready; the known versions agree on them."""
        table = self.tables[name]
        chosen = table.fronts.get(front) if front else None
        return (chosen.probes if chosen else table.probes).probes()

    def shutdown(self, name: EngineName, version: str) -> Shutdown:
        """How it is asked to stop."""
        return shutdown(self.tables[name], self.books[name].at(version))

    def quantized_at_load(self, name: EngineName, version: str) -> tuple[str, ...]:
        """Quantisations that a version makes of 16-bit weights as it loads them."""
        parsed, known = parse_version(version), self.tables[name].quantizations.items()
        return tuple(word for word, support in known if support.at_load and support.at_load.covers(parsed))

    def no_streaming(self, manifest: AnyManifest, name: EngineName, version: str) -> str | None:
        """Why a version can't stream the manifest's weights out of object storage, or ``None``."""
        return "; ".join(streaming_problems(self._wished(manifest, name, version))) or None

    def engine_build(self, manifest: AnyManifest, name: EngineName, version: str) -> BuildNeed | None:
        """What has to be built for the engine before it can start, or ``None``."""
        return build_need(self._wished(manifest, name, version), version)

    def hosted(self, manifest: AnyManifest) -> HostedTarget | None:
        """Where requests go when somebody else runs the engine, or ``None``."""
        return hosted.target(manifest, self.hosts)

    def _wished(self, manifest: AnyManifest, name: EngineName, version: str) -> Wish:
        """The wish of a manifest; the last one is kept, since a review asks several questions in a row."""
        last = self._last[0] if self._last else None
        if last is not None and last[0] is manifest and last[1:3] == (name, version):
            return last[3]
        wish = self._wish(manifest, name, version)
        self._last[:] = [(manifest, name, version, wish)]
        return wish

    def _draft(self, wish: Wish) -> Draft:
        """The settings in force for a wish; the last ones are kept."""
        last = self._drafted[0] if self._drafted else None
        if last is not None and last[0] is wish:
            return last[1]
        drafted = self._settings(wish)
        self._drafted[:] = [(wish, drafted)]
        return drafted

    def _wish(self, manifest: AnyManifest, name: EngineName, version: str, pool: PoolRole | None = None) -> Wish:
        return Wish.of(manifest, name, self.books[name].at(version), self.tables[name], self.models, pool)

    def _settings(self, wish: Wish, host: str | None = None, port: int | None = None) -> Draft:
        return settings(ENGINES[wish.name], wish, host, port)


@lru_cache(maxsize=1)
def load() -> Catalogue:
    """The catalogue of this package."""
    return Catalogue.of(package_data.read())
