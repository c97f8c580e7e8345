"""Memory of one GPU of a plan: the identity that an engine works out when it starts.

vLLM: KV cache = utilisation x visible - weights - activation peak - non-torch; CUDA graphs come afterwards, outside the
budget (facts checked on start-up logs: within 0.02 GiB once each term is known). SGLang: weights and cache share
``mem_fraction_static``, activations and graphs live in the rest. TensorRT-LLM: the cache takes its fraction of what is
free after loading.
"""

from dataclasses import dataclass

from fleet.hardware import BYTES_PER_GIB, GpuModel
from fleet.memory_constants import (
    BatchDefaults,
    ChosenConstants,
    batch_defaults,
    constants_for,
    default_utilization,
    memory_file,
    static_fraction,
)
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_extras import Extras, extras_of
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_wish import PlanWish

BF16_BYTES = 2
MEASURED_GRAPH_SEQUENCES = 512
"""The largest captured batch of the start-ups whose graphs were measured."""
NO_EXTRAS = Extras()


@dataclass(frozen=True, slots=True)
class Settings:
    """What the engine runs with, as asked or by its own default."""

    utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    graph_sequences: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest GPU of a plan; the five parts sum to ``visible`` where the plan fits."""

    visible: int
    weights: int
    kv_cache: int
    """What the identity leaves, never below 0."""
    activation: int
    overhead: int
    """Outside torch: CUDA, NCCL."""
    free: int
    """Outside the budget."""
    needed_free: int
    """What must be free: CUDA graphs, other engines."""
    short: int
    """By how much weights, activation and overhead exceed the budget."""
    sequence_bytes: int | None
    """One sequence at the context; ``None`` = the model's cache can't be worked out."""
    sequences_wanted: int
    """Sequences in flight on the rank."""
    context_tokens: int
    settings: Settings
    data_ranks: int
    """Ranks with their own cache: data parallelism."""

    @property
    def sequences(self) -> float | None:
        """Sequences at the context that the cache holds, over all data-parallel ranks; ``None`` = not known."""
        if self.sequence_bytes is None:
            return None
        if self.sequence_bytes == 0:
            return float(self.settings.max_num_seqs * self.data_ranks)
        return self.data_ranks * self.kv_cache / self.sequence_bytes

    @property
    def kv_tokens(self) -> int | None:
        """Tokens that the cache holds in sequences of the context; with full attention the length does not matter."""
        return None if self.sequences is None else int(self.sequences * self.context_tokens)

    @property
    def wanted_bytes(self) -> int:
        """What the sequences in flight take of the cache; 0 where that is not known."""
        return (self.sequence_bytes or 0) * self.sequences_wanted

    @property
    def holds_wish(self) -> bool:
        """Whether the cache holds the sequences in flight, as far as is known."""
        return self.wanted_bytes <= self.kv_cache

    @property
    def starts(self) -> bool:
        """Whether the engine loads and captures its graphs."""
        return self.short <= 0 and self.needed_free <= self.free

    @property
    def fits(self) -> bool:
        """Whether it starts and holds what is asked."""
        return self.starts and self.holds_wish


def memory_of(model: Model, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> Memory | Missing:
    """Memory of the fullest GPU, or which figure is missing."""
    return rank_memory(figures_of(model, wish.quantization, wish.kv_dtype), plan, gpu, wish)


def rank_memory(figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> Memory | Missing:
    """The same for a model whose figures are at hand."""
    return memory_in(room_of(figures, plan, gpu, wish), figures, plan, wish)


@dataclass(frozen=True, slots=True)
class Room:
    """What is known of one GPU of a plan before the weights."""

    visible: int
    context: int
    sequence: int | None
    """Bytes of one sequence at the context; ``None`` = not known."""
    settings: Settings
    sequences_wanted: int
    """Sequences in flight on the rank."""

    @property
    def is_too_small(self) -> bool:
        """Whether the cache alone, as far as it is known, exceeds the GPU."""
        return self.sequence is not None and self.sequence * self.sequences_wanted > self.visible


def room_of(figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> Room | Missing:
    """The room on each GPU, or that its memory is not known."""
    visible = visible_bytes(gpu, wish)
    if visible is None:
        return Missing("memory", gpu.name, f"the memory of {wish.mig_profile or gpu.name} is not known")
    context, settings = wish.context_of(figures.model), settings_of(wish, gpu, visible, plan)
    sequence = figures.sequence_bytes(plan, context)
    known = None if isinstance(sequence, Missing) else sequence
    return Room(visible, context, known, settings, min(-(-wish.concurrency // plan.data), settings.max_num_seqs))


def memory_in(room: Room | Missing, figures: ModelFigures, plan: ParallelPlan, wish: PlanWish) -> Memory | Missing:
    """Memory of the fullest GPU whose room is at hand."""
    if isinstance(room, Missing):
        return room
    weights = figures.rank_weights(plan, with_mtp=wish.with_mtp)
    if isinstance(weights, Missing):
        return weights
    beside = wish.lora or wish.draft or wish.neighbours or wish.encoder_cache_tokens
    extras = NO_EXTRAS
    if beside:
        extras = extras_of(figures.model, plan, wish, visible=room.visible, context_tokens=room.context)
    return _identity(figures, plan, wish, room, weights, extras)


def visible_bytes(gpu: GpuModel, wish: PlanWish) -> int | None:
    """What a process sees: of the whole GPU, or of the slice."""
    return gpu.memory_bytes if wish.mig_profile is None else gpu.slice_bytes(wish.mig_profile)


def settings_of(wish: PlanWish, gpu: GpuModel, visible: int, plan: ParallelPlan) -> Settings:
    """What is asked for, completed by the engine's defaults on this GPU."""
    defaults: BatchDefaults = batch_defaults(wish.engine, gpu, visible)
    tokens = wish.max_num_batched_tokens or defaults.max_num_batched_tokens
    utilization = wish.gpu_memory_utilization
    if utilization is None and wish.engine == "sglang":
        utilization = static_fraction(
            visible, chunk_tokens=tokens, graph_sequences=defaults.graph_sequences, data_ranks=plan.data
        )
    return Settings(
        utilization=utilization or default_utilization(wish.engine, wish.engine_version),
        max_num_seqs=wish.max_num_seqs or defaults.max_num_seqs,
        max_num_batched_tokens=tokens,
        graph_sequences=defaults.graph_sequences,
    )


def _identity(
    figures: ModelFigures, plan: ParallelPlan, wish: PlanWish, room: Room, stored: int, extras: Extras
) -> Memory:
    chosen = constants_for(wish.engine, wish.engine_version)
    activation = activation_peak(figures, plan, room.settings, chosen) + extras.activation
    overhead = _non_torch(plan, chosen)
    weights = stored + extras.weights
    taken = weights + activation + overhead
    budget, kv_cache = _budget(wish.engine, room, taken, activation)
    graphs = 0 if wish.enforce_eager else _graphs(figures, plan, wish, room.settings.graph_sequences, chosen)
    return Memory(
        visible=room.visible,
        weights=weights,
        kv_cache=max(0, kv_cache),
        activation=activation,
        overhead=overhead,
        free=room.visible - taken - max(0, kv_cache) if kv_cache >= 0 else room.visible - budget,
        needed_free=graphs + extras.outside,
        short=max(0, -kv_cache),
        sequence_bytes=None if room.sequence is None else room.sequence + extras.sequence,
        sequences_wanted=room.sequences_wanted,
        context_tokens=room.context,
        settings=room.settings,
        data_ranks=plan.data,
    )


def _budget(engine: str, room: Room, taken: int, activation: int) -> tuple[int, int]:
    """The budget, and what it leaves for the cache (negative = by how much it is short)."""
    share = room.settings.utilization
    if engine == "tensorrt-llm":
        left = room.visible - taken
        return room.visible, int(share * left) if left > 0 else left
    budget = int(share * room.visible)
    if engine != "sglang":
        return budget, budget - taken
    static = budget - (taken - activation)
    return budget, min(static, room.visible - taken)


def activation_peak(figures: ModelFigures, plan: ParallelPlan, settings: Settings, chosen: ChosenConstants) -> int:
    """The measured peak, or what one FFN's buffers need in bf16 where so many batched tokens need more.

    The measured points do not say how the peak grows with batched tokens; gate, up and their product over the hidden
    state are what arithmetic says must be alive at once.
    """
    model = figures.model
    sequences = min(settings.max_num_seqs, settings.max_num_batched_tokens) if model.is_generative else 0
    measured = chosen.constants.activation.peak_bytes(
        figures.model_class, sequences=sequences, vocabulary=model.vocabulary
    )
    widths = 3 * -(-figures.dense_width // plan.tensor) + 2 * model.hidden_size
    return max(measured, settings.max_num_batched_tokens * widths * BF16_BYTES)


def _non_torch(plan: ParallelPlan, chosen: ChosenConstants) -> int:
    known = chosen.constants.non_torch_gib
    if plan.tensor * plan.data * plan.context > 1:
        return int(known.tensor * BYTES_PER_GIB)
    return int((known.pipeline if plan.pipeline > 1 else known.single) * BYTES_PER_GIB)


def _graphs(figures: ModelFigures, plan: ParallelPlan, wish: PlanWish, sequences: int, chosen: ChosenConstants) -> int:
    """What graph capture needs outside the budget: as measured, by the largest batch that is captured.

    TensorRT-LLM captures inside what its cache leaves.
    """
    if wish.engine == "tensorrt-llm":
        return 0
    special = (
        item.gib
        for item in memory_file().outside_budget
        if item.engine == wish.engine and item.min_tensor <= plan.tensor and item.encoding in figures.encodings
    )
    measured = chosen.constants.graphs_gib * sequences / MEASURED_GRAPH_SEQUENCES
    return int(max(measured, *special, 0.0) * BYTES_PER_GIB)
