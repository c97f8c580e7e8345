"""What engines take of a GPU beside weights and KV cache: measured constants per engine, version and class of model.

The constants stand in ``fleet/data/memory_constants.json`` with their sources. A version that nobody measured takes
the nearest one that was, and says so; an engine that nobody measured takes vLLM's.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated

from packaging.version import Version
from pydantic import Field

from fleet.hardware import BYTES_PER_GIB, BYTES_PER_MIB, GpuModel
from fleet.model import Model
from fleet.value import Value
from fleet.versions import parse_public

Gib = Annotated[float, Field(ge=0)]
MEASURED_ENGINE = "vllm"


class ModelClass(StrEnum):
    """What decides the activation peak beside the vocabulary."""

    DENSE = "dense"
    MOE = "moe"
    MULTIMODAL = "multimodal"

    @classmethod
    def of(cls, model: Model) -> "ModelClass":
        """The class of a model; a multimodal mixture of experts counts as a mixture."""
        if model.experts is not None:
            return cls.MOE
        return cls.MULTIMODAL if model.modalities - {"text"} else cls.DENSE


class ActivationConstants(Value):
    """Peak of the profiling run: base + bytes x sequences x vocabulary + what the class adds."""

    base_gib: Gib
    bytes_per_sequence_and_vocabulary_entry: float
    """The sampler's copies of the logits: all sequences at once, whole on each rank."""
    class_gib: dict[ModelClass, Gib]
    fixed_gib: dict[ModelClass, Gib]
    """Classes whose measured peak does not follow the formula."""

    def peak_bytes(self, model_class: ModelClass, *, sequences: int, vocabulary: int) -> int:
        """The peak for so many sequences in the batch."""
        if model_class in self.fixed_gib:
            return int(self.fixed_gib[model_class] * BYTES_PER_GIB)
        constant = (self.base_gib + self.class_gib.get(model_class, 0.0)) * BYTES_PER_GIB
        return int(constant + self.bytes_per_sequence_and_vocabulary_entry * sequences * vocabulary)


class NonTorch(Value):
    """What CUDA, NCCL and the engine take outside torch, in GiB per GPU."""

    single: Gib
    pipeline: Gib
    tensor: Gib


class MemoryConstants(Value):
    """What was measured on one version of one engine."""

    engine: str
    measured_on: str
    first: str
    """The first version for which the measurement stands."""
    below: str
    activation: ActivationConstants
    non_torch_gib: NonTorch
    graphs_gib: Gib
    """CUDA graphs, outside the budget."""
    source: str

    def covers(self, version: Version) -> bool:
        """Whether the measurement stands for this version."""
        return Version(self.first) <= version < Version(self.below)


class BatchDefaults(Value):
    """What an engine takes when nothing is said, from so much memory up."""

    engine: str
    min_gib: Gib
    max_num_seqs: int
    max_num_batched_tokens: int
    graph_sequences: int
    """The largest batch for which a CUDA graph is captured."""


class Utilization(Value):
    """The default share of memory, from a version on."""

    engine: str
    first: str
    value: Annotated[float, Field(gt=0, le=1)]
    source: str


class Reserve(Value):
    """SGLang's rule for what stays outside its static memory."""

    mib_per_chunk_token: float
    mib_per_graph_sequence: float
    mib_per_graph_sequence_and_data_rank: float
    source: str


class ExpertPadding(Value):
    """Encodings whose experts are padded when they are loaded."""

    encodings: tuple[str, ...]
    multiple: int
    source: str


class OutsideBudget(Value):
    """What must stay free outside the budget in a special case."""

    engine: str
    encoding: str
    min_tensor: int
    gib: Gib
    source: str


class MemoryFile(Value):
    """``memory_constants.json``."""

    retrieved: str
    constants: tuple[MemoryConstants, ...]
    batch_defaults: tuple[BatchDefaults, ...]
    small_batch_gpus: tuple[str, ...]
    """GPUs that take the smallest defaults whatever their memory."""
    batch_source: str
    utilization: tuple[Utilization, ...]
    reserve: Reserve
    expert_padding: ExpertPadding
    outside_budget: tuple[OutsideBudget, ...]
    shared_gpu_context_gib: Gib
    shared_gpu_source: str


@cache
def memory_file() -> MemoryFile:
    """The packaged constants."""
    text = files("fleet").joinpath("data", "memory_constants.json").read_text(encoding="utf-8")
    return MemoryFile.model_validate_json(text)


class ChosenConstants(Value):
    """The constants for one engine and version, with a note where they are not its own."""

    constants: MemoryConstants
    note: str | None


@lru_cache(maxsize=1024)
def constants_for(engine: str, version: str | None) -> ChosenConstants:
    """The constants of the nearest measured version; vLLM's newest for an engine that nobody measured."""
    known = [item for item in memory_file().constants if item.engine == engine]
    if not known:
        newest = max(memory_file().constants, key=lambda item: Version(item.measured_on))
        note = f"no start-up of {engine} was measured: activation, non-torch and graphs are those of "
        return ChosenConstants(constants=newest, note=f"{note}{newest.engine} {newest.measured_on}")
    if version is None:
        note = "no engine version was given: the largest of the measured constants, so that it starts on any of them"
        return ChosenConstants(constants=_cautious(known), note=note)
    parsed = parse_public(version)
    if parsed is None:
        newest = max(known, key=lambda item: Version(item.measured_on))
        note = f"'{version}' is not a release number: constants of {engine} {newest.measured_on}"
        return ChosenConstants(constants=newest, note=note)
    for item in known:
        if item.covers(parsed):
            return ChosenConstants(constants=item, note=None)
    nearest = min(known, key=lambda item: _distance(Version(item.measured_on), parsed))
    note = f"{engine} {version} was not measured: constants of {nearest.measured_on}, the nearest version that was"
    return ChosenConstants(constants=nearest, note=note)


def batch_defaults(engine: str, gpu: GpuModel, memory_bytes: int) -> BatchDefaults:
    """What the engine takes on this GPU when nothing is said; vLLM's for an engine that is not in the data."""
    is_small = gpu.name in memory_file().small_batch_gpus and engine != "sglang"
    gib = 0.0 if is_small else memory_bytes / BYTES_PER_GIB
    return next(item for item in _batch_rows(engine) if item.min_gib <= gib)


@lru_cache(maxsize=64)
def _batch_rows(engine: str) -> tuple[BatchDefaults, ...]:
    """An engine's defaults, those of the largest memory first."""
    every = memory_file().batch_defaults
    own = [item for item in every if item.engine == engine]
    rows = own or [item for item in every if item.engine == MEASURED_ENGINE]
    return tuple(sorted(rows, key=lambda item: item.min_gib, reverse=True))


@lru_cache(maxsize=1024)
def default_utilization(engine: str, version: str | None) -> float:
    """The engine's own default; the lowest known one where the version is open or not a release number."""
    rows = [item for item in memory_file().utilization if item.engine == engine]
    rows = rows or [item for item in memory_file().utilization if item.engine == MEASURED_ENGINE]
    parsed = None if version is None else parse_public(version)
    if parsed is None:
        return min(item.value for item in rows)
    return max((item for item in rows if Version(item.first) <= parsed), key=lambda item: Version(item.first)).value


def static_fraction(memory_bytes: int, *, chunk_tokens: int, graph_sequences: int, data_ranks: int) -> float:
    """SGLang's default ``mem_fraction_static``: what is left beside the reserve for activations and graphs."""
    rule = memory_file().reserve
    reserved = chunk_tokens * rule.mib_per_chunk_token + graph_sequences * rule.mib_per_graph_sequence
    if data_ranks > 1:
        reserved += graph_sequences * data_ranks * rule.mib_per_graph_sequence_and_data_rank
    return max(0.05, 1 - reserved * BYTES_PER_MIB / memory_bytes)


def _cautious(known: Sequence[MemoryConstants]) -> MemoryConstants:
    """The steepest activation with the largest of the other constants."""
    steepest = max(known, key=lambda item: item.activation.bytes_per_sequence_and_vocabulary_entry)
    outside = {
        name: max(getattr(item.non_torch_gib, name) for item in known) for name in ("single", "pipeline", "tensor")
    }
    return steepest.model_copy(
        update={
            "non_torch_gib": NonTorch(**outside),
            "graphs_gib": max(item.graphs_gib for item in known),
            "measured_on": ", ".join(item.measured_on for item in known),
            "source": "; ".join(item.source for item in known),
        }
    )


def _distance(one: Version, other: Version) -> tuple[int, int, int]:
    mine, theirs = (*one.release, 0, 0, 0)[:3], (*other.release, 0, 0, 0)[:3]
    return (abs(mine[0] - theirs[0]), abs(mine[1] - theirs[1]), abs(mine[2] - theirs[2]))
