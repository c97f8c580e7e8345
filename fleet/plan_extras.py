"""What takes GPU memory beside the model itself: adapters, a draft model, the encoder's cache, other engines."""

from dataclasses import dataclass

from fleet.hardware import BYTES_PER_GIB
from fleet.memory_constants import memory_file
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import figures_of
from fleet.plan_wish import LoraWish, PlanWish
from fleet.tensors import Part, Split

BF16_BYTES = 2
_ADAPTED = frozenset({Part.ATTENTION, Part.DENSE_FFN, Part.SHARED_EXPERTS})


@dataclass(frozen=True, slots=True)
class Extras:
    """Bytes per GPU beside weights and cache of the model."""

    weights: int = 0
    """Adapters and the draft model."""
    activation: int = 0
    """The encoder's cache."""
    sequence: int = 0
    """The draft model's cache of one sequence."""
    outside: int = 0
    """What other engines on the GPU take, outside this engine's budget."""


def extras_of(model: Model, plan: ParallelPlan, wish: PlanWish, *, visible: int, context_tokens: int) -> Extras:
    """Everything beside the model, on the fullest GPU."""
    draft_weights, draft_sequence = _draft(plan, wish, context_tokens)
    return Extras(
        weights=draft_weights + (lora_bytes(model, plan, wish.lora) if wish.lora else 0),
        activation=_encoder_cache(model, wish),
        sequence=draft_sequence,
        outside=neighbour_bytes(wish, visible),
    )


def lora_bytes(model: Model, plan: ParallelPlan, lora: LoraWish) -> int:
    """Adapters on one GPU: rank x (in + out) of each adapted matrix in bf16.

    Tensor parallelism divides the factor on the divided side and copies the other (vLLM without fully sharded LoRA).
    """
    elements = 0
    for tensor in model.all_tensors:
        if not tensor.is_linear or tensor.part not in _ADAPTED:
            continue
        divided_in = plan.tensor if tensor.split is Split.INPUT else 1
        divided_out = plan.tensor if tensor.split in (Split.OUTPUT, Split.KV_HEADS) else 1
        sides = -(-tensor.in_features // divided_in) + -(-tensor.out_features // divided_out)
        elements += sides * tensor.copies
    return lora.adapters * lora.rank * elements * BF16_BYTES // plan.pipeline


def neighbour_bytes(wish: PlanWish, visible: int) -> int:
    """What other engines on the same GPU take: their utilisation, and graphs and context for each of them."""
    each = int(memory_file().shared_gpu_context_gib * BYTES_PER_GIB)
    return sum(int(share * visible) + each for share in wish.neighbours)


def _draft(plan: ParallelPlan, wish: PlanWish, context_tokens: int) -> tuple[int, int]:
    if wish.draft is None:
        return 0, 0
    figures = figures_of(wish.draft, None, wish.kv_dtype)
    flat = ParallelPlan(tensor=plan.tensor)
    weights, sequence = figures.rank_weights(flat), figures.sequence_bytes(flat, context_tokens)
    return (
        0 if isinstance(weights, Missing) else weights,
        0 if isinstance(sequence, Missing) else sequence,
    )


def _encoder_cache(model: Model, wish: PlanWish) -> int:
    if wish.encoder_cache_tokens is not None:
        return wish.encoder_cache_tokens * model.hidden_size * BF16_BYTES
    return 0
