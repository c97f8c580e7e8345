"""What a manifest asks of an engine, as words that the data's tables speak."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from engines.flags import FlagList
from engines.tables import Ask, EngineTable, ModelTable
from fleet.engine import PoolRole
from fleet.manifest import AnyManifest
from fleet.spec import EngineName, FlagValue, Hardware, Parallelism, Spec

MEDIA = ("image", "video", "audio")
PARALLEL_KINDS = ("tensor", "pipeline", "data", "context", "expert")
PREFIX_CACHING, GPUS_UNKNOWN, MORE_THAN_ONE_GPU, MEDIA_ON = "prefix_caching", "gpus:unknown", "gpus>1", "media"


@dataclass(frozen=True)
class Wish:
    """One manifest as one engine of one version would have to serve it."""

    name: EngineName
    spec: Spec
    served_name: str
    flags: FlagList
    table: EngineTable
    models: ModelTable
    pool: PoolRole | None = None
    weights_uri: str | None = None
    """Where the files of the pinned revision are; ``None`` = they are found by the model's id and revision."""

    @classmethod
    def of(
        cls,
        manifest: AnyManifest,
        name: EngineName,
        flags: FlagList,
        table: EngineTable,
        models: ModelTable,
        pool: PoolRole | None = None,
    ) -> "Wish":
        """The wish that a manifest states; a disaggregated one is looked at from its prefill side."""
        side: PoolRole | None = pool or ("prefill" if manifest.spec.features.disaggregation != "none" else None)
        return cls(name, manifest.spec, manifest.served_name, flags, table, models, side)

    @property
    def model_name(self) -> str:
        """What the engine is told to load."""
        return self.weights_uri or self.spec.model.id

    @property
    def revision(self) -> str | None:
        """The revision that the engine looks for; a URI is that of one revision alone."""
        return self.spec.model.revision if self.weights_uri is None else None

    @property
    def given(self) -> Mapping[str, FlagValue]:
        """The manifest's own flags, where they are meant for this engine."""
        engine = self.spec.engine
        return engine.flags if engine is not None and engine.name in (None, self.name) else {}

    @property
    def front(self) -> str | None:
        """The server in front of the engine, where the manifest names one."""
        engine = self.spec.engine
        return engine.front if engine is not None and engine.name in (None, self.name) else None

    @property
    def parallelism(self) -> Parallelism:
        """How this replica, or this side of it, is split."""
        pools = self.spec.pools
        if pools is None or self.pool is None:
            return self.spec.parallelism
        return (pools.prefill if self.pool == "prefill" else pools.decode).parallelism

    @property
    def hardware(self) -> Hardware | None:
        """Where it runs; ``None`` while that is open."""
        pools = self.spec.pools
        if pools is None or self.pool is None:
            return self.spec.hardware
        return (pools.prefill if self.pool == "prefill" else pools.decode).hardware

    @property
    def closed_media(self) -> tuple[str, ...]:
        """The modalities that the manifest leaves out."""
        return tuple(kind for kind in MEDIA if kind not in self.spec.features.modalities)

    @property
    def is_text_model(self) -> bool:
        """Whether the data knows the model to take text only."""
        return self.models.is_text_only(self.spec.model.id)

    def asks_for(self, *words: Ask) -> bool:
        """Whether the manifest asks for any of these."""
        return not self.asks.isdisjoint(words)

    @cached_property
    def asks(self) -> frozenset[Ask]:
        """Everything that the manifest asks for, as words."""
        return frozenset((*_feature_words(self.spec), *_batch_words(self.spec), *self._runtime_words()))

    def _runtime_words(self) -> list[Ask]:
        engine = self.spec.engine
        words = [f"runtime:{engine.runtime if engine else 'image'}"]
        words += [f"front:{self.front}"] if self.front else []
        words += [f"parallel:{kind}" for kind in PARALLEL_KINDS if getattr(self.parallelism, kind) > 1]
        words += ["sequence"] if self.parallelism.sequence else []
        if self.spec.features.kv_events is not None:
            words += ["kv_events:process"] if "runtime:process" in words else []
            words += ["kv_events:ranks"] if self.parallelism.data > 1 else []
        if self.hardware is None and self.parallelism.gpus == 1:
            return [*words, GPUS_UNKNOWN]
        gpus = max(self.parallelism.gpus, self.hardware.gpus if self.hardware else 1)
        return [*words, MORE_THAN_ONE_GPU] if gpus > 1 else words


def _feature_words(spec: Spec) -> list[Ask]:
    features = spec.features
    words = [f"workload:{spec.workload}", *(f"modality:{kind}" for kind in features.modalities)]
    for key in ("disaggregation", "kv_offload", "speculative"):
        value = getattr(features, key)
        words += [f"{key}:{value}"] if value != "none" else []
    for key in ("lora", "structured_output", "tool_parser", "kv_events"):
        words += [key] if getattr(features, key) else []
    return [*words, "trust_remote_code" if features.trust_remote_code else "trust_remote_code:off"]


def _batch_words(spec: Spec) -> list[Ask]:
    words = [PREFIX_CACHING] if spec.batch is None or spec.batch.enable_prefix_caching else []
    words += [f"kv_cache_dtype:{spec.batch.kv_cache_dtype}"] if spec.batch else []
    return [*words, f"quantization:{spec.model.quantization}"] if spec.model.quantization else words
