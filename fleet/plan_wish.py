"""What a person asks of the planner, and what the planner says against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.hardware import SharingMode
from fleet.model import Model
from fleet.nearest import did_you_mean
from fleet.parallel_plan import ParallelPlan
from fleet.spec import KV_CACHE_DTYPES, QUANTIZATIONS

DEFAULT_CONTEXT_TOKENS = 8192
"""Taken when no context is asked for, or the model's own where that is shorter."""
EvidenceValue = int | float | str


class WishError(ValueError):
    """A wish that can't be read: the key, the value, and what would be right."""


def gpus_in_words(count: int) -> str:
    """``1 GPU``, ``2 GPUs``."""
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a plan does not hold: the rule, in words, and the numbers."""

    rule: str
    message: str
    evidence: Mapping[str, EvidenceValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoraWish:
    """Adapters that are resident at once."""

    adapters: int
    rank: int


@dataclass(frozen=True, slots=True)
class PlanWish:
    """A wish: hardware, engine, load. ``None`` = the planner chooses, or the engine's default."""

    gpu: str | None = None
    gpus: int | None = None
    """All GPUs that are offered; with an explicit plan, all GPUs of the plan."""
    instance: str | None = None
    engine: str = "vllm"
    engine_version: str | None = None
    """Any name of a build: one that is no release number takes the nearest known constants, and a note says so."""
    quantization: str | None = None
    """``None`` = as the checkpoint is stored."""
    kv_dtype: str = "auto"
    context_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    concurrency: int = 1
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    data: int | None = None
    context_parallel: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    enforce_eager: bool = False
    """No CUDA graphs: slower, and nothing is captured outside the budget."""
    sharing: SharingMode = SharingMode.EXCLUSIVE
    mig_profile: str | None = None
    neighbours: tuple[float, ...] = ()
    """Utilisation of each other engine on the same GPU."""
    lora: LoraWish | None = None
    draft: Model | None = None
    """The draft model of speculative decoding."""
    with_mtp: bool = False
    """Load the checkpoint's own MTP layers to draft with."""
    encoder_cache_tokens: int | None = None
    """Embeddings of the vision or audio encoder that are kept, beyond what the measured activation peak holds."""
    disaggregation: bool = True
    """Whether separate pools for prefill and decode may be proposed."""
    working_set_tokens: int | None = None
    """Distinct prompt tokens of one replica that come again; ``None`` = not known."""
    closed_paths: frozenset[str] = frozenset()
    """Code paths that advisories close for this engine and version."""

    def check(self) -> None:
        """Raise `WishError` for a value that can't be read, or for two that contradict each other.

        Asked once where a wish comes in; a placement makes thousands of wishes from values that were read already.
        """
        for name in _COUNTS:
            _check_count(name, getattr(self, name))
        share = self.gpu_memory_utilization
        if share is not None and not 0 < share <= 1:
            raise WishError(f"gpu_memory_utilization is {share}; it is a share above 0 and up to 1")
        _check_word("quantization", self.quantization, QUANTIZATIONS)
        _check_word("kv_dtype", self.kv_dtype, KV_CACHE_DTYPES)
        self._check_lengths()

    def _check_lengths(self) -> None:
        """A context holds the prompt and the answer."""
        parts = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        given = {name: tokens for name, tokens in parts.items() if tokens is not None}
        if self.context_tokens is None or sum(given.values()) <= self.context_tokens:
            return
        asked = " + ".join(f"{name} {tokens}" for name, tokens in given.items())
        raise WishError(
            f"context_tokens is {self.context_tokens}, less than {asked}; a context holds input and output together: "
            f"give at least {sum(given.values())}, or leave it out"
        )

    @property
    def is_explicit(self) -> bool:
        """Whether a parallel plan was given, which is then judged as it is."""
        sizes = (self.tensor, self.pipeline, self.expert, self.data, self.context_parallel)
        return any(size is not None for size in sizes)

    @property
    def explicit_plan(self) -> ParallelPlan:
        """The given sizes; what was not given is 1."""
        expert = self.expert or 0
        return ParallelPlan(
            tensor=self.tensor or 1,
            pipeline=self.pipeline or 1,
            data=self.data or 1,
            expert=expert if expert > 1 else 0,
            context=self.context_parallel or 1,
        )

    def context_of(self, model: Model) -> int:
        """Tokens of one request: as asked, else input + output, else a default that the model can take."""
        if self.context_tokens is not None:
            return self.context_tokens
        if self.input_tokens is not None or self.output_tokens is not None:
            return (self.input_tokens or 0) + (self.output_tokens or 0)
        return min(model.max_context_tokens or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS)

    @property
    def has_context(self) -> bool:
        """Whether the length of a request was asked for."""
        return any(value is not None for value in (self.context_tokens, self.input_tokens, self.output_tokens))


def _check_word(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise WishError(f"{name} is '{value}'; it is one of {', '.join(known)}{did_you_mean(value, known)}")


_COUNTS = {
    "gpus": 1,
    "context_tokens": 1,
    "input_tokens": 0,
    "output_tokens": 0,
    "concurrency": 1,
    "tensor": 1,
    "pipeline": 1,
    "expert": 0,
    "data": 1,
    "context_parallel": 1,
    "max_num_seqs": 1,
    "max_num_batched_tokens": 1,
    "encoder_cache_tokens": 0,
    "working_set_tokens": 1,
}
"""Whole numbers, and the least that each can be."""


def _check_count(name: str, value: int | None) -> None:
    if value is not None and value < _COUNTS[name]:
        raise WishError(f"{name} is {value}; it is a whole number from {_COUNTS[name]} up")
