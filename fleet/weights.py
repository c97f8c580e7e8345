"""Bytes and parameters of a model's weights: whole, by part, and of the fullest GPU of a parallel plan."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.quantization import ENCODINGS, PLAIN, UNTOUCHED, Encoding
from fleet.tensors import Part, Split, Tensor

VOCABULARY_PADDING = 64
"""Engines pad the vocabulary to a multiple of this before they divide it."""
INTEGERS = frozenset({"gptq", "awq", "int4"})


def encoding_of(tensor: Tensor, model: Model, quantization: str | None = None) -> Encoding:
    """How a tensor is stored: in the checkpoint's own format, or the usual way of the quantisation asked for.

    The usual way: linear layers of the language model; embeddings, head, routers, norms and towers stay bf16. Of a
    mixture of experts, mxfp4 takes the experts alone, 4-bit integers too where layers keep a state (int4 also where
    attention is latent), and nvfp4 leaves what latent attention projects from alone. A checkpoint that is stored in
    the encoding asked for is taken as it is.
    """
    if quantization is None or (model.stored and model.stored.is_like(quantization)):
        return model.stored.encoding_of(tensor) if model.stored else PLAIN
    if not tensor.is_linear or tensor.part in UNTOUCHED or _usually_stays(tensor, model, quantization):
        return PLAIN
    return ENCODINGS[quantization]


def _usually_stays(tensor: Tensor, model: Model, quantization: str) -> bool:
    if model.experts is None:
        return False
    if quantization == "nvfp4" and model.has_latent_attention:
        is_attention = tensor.part is Part.ATTENTION and not tensor.module.endswith("o_proj")
        return is_attention or tensor.part is Part.MTP
    if tensor.copies > 1:
        return tensor.part is Part.MTP and quantization in INTEGERS and model.has_state
    if quantization == "mxfp4":
        return True
    return quantization in INTEGERS and (model.has_state or (quantization == "int4" and model.has_latent_attention))


def weights_bytes_total(model: Model, quantization: str | None = None) -> int | Missing:
    """Bytes of the whole checkpoint as stored, towers and MTP layers included."""
    return _lacking(model, quantization) or sum(bytes_by_part(model, quantization).values())


def _lacking(model: Model, quantization: str | None) -> Missing | None:
    return model.lacks("weights") or (model.lacks("stored") if quantization is None else None)


def bytes_by_part(model: Model, quantization: str | None = None) -> Mapping[Part, int]:
    """Bytes of every part; of a model whose weights lack a key, of the parts that could be read."""
    sums: dict[Part, int] = defaultdict(int)
    for tensor in model.all_tensors:
        sums[tensor.part] += encoding_of(tensor, model, quantization).bytes_of(tensor)
    return dict(sums)


def parameters_total(model: Model) -> int | Missing:
    """All parameters of the model; MTP layers are no part of it, as in the totals that model cards state."""
    return model.lacks("weights") or sum(tensor.parameters for tensor in _counted(model))


def parameters_active(model: Model) -> int | Missing:
    """Parameters that work on one token of text; of a dense model all.

    Of a mixture of experts the convention of most model cards: without the routed experts that a token is not sent to,
    without towers, and without the input embedding, which is looked up (it counts where it is the head as well).
    """
    total = parameters_total(model)
    if isinstance(total, Missing) or model.experts is None:
        return total
    sums: dict[Part, int] = defaultdict(int)
    for tensor in _counted(model):
        sums[tensor.part] += tensor.parameters
    routed = sums[Part.EXPERTS]
    idle = routed - routed * model.experts.active // model.experts.count
    return total - idle - sums[Part.ENCODER] - (sums[Part.EMBEDDING] if sums[Part.LM_HEAD] else 0)


def _counted(model: Model) -> Iterable[Tensor]:
    return (tensor for tensor in model.all_tensors if tensor.part is not Part.MTP)


@dataclass(frozen=True, slots=True)
class _Share:
    """Bytes that are divided alike."""

    split: Split
    heads: int
    """KV heads."""
    copies: int
    """Experts."""
    bytes_all: int

    def of_rank(self, plan: ParallelPlan) -> int:
        """Bytes on the rank that has most of it."""
        if self.split is Split.NONE:
            return self.bytes_all
        if self.split is Split.EXPERTS:
            return self._experts(plan)
        if self.split is Split.KV_HEADS and self.heads:
            return -(-self.bytes_all * -(-self.heads // plan.tensor) // self.heads)
        return -(-self.bytes_all // plan.tensor)

    def _experts(self, plan: ParallelPlan) -> int:
        ranks = plan.stage_ranks // plan.context
        if not plan.expert:
            return -(-self.bytes_all // ranks)
        whole = -(-self.copies // plan.expert)
        return -(-self.bytes_all * whole // (self.copies * max(1, ranks // plan.expert)))


def weights_bytes_of_rank(
    model: Model, plan: ParallelPlan, quantization: str | None = None, *, with_mtp: bool = False
) -> int | Missing:
    """Bytes on the fullest GPU: of the pipeline stage that holds most, of the tensor-parallel rank that holds most.

    Layers go to stages as evenly as they can, the first and last stage getting none of the rest. The first has the
    embedding and the towers, the last the head, the embedding once more where both are one, and MTP layers.
    """
    lacking = _lacking(model, quantization)
    if lacking:
        return lacking
    key = ("rank", plan, quantization, with_mtp)
    known = model.remembered.get(key)
    if not isinstance(known, int):
        known = model.remembered[key] = _fullest(model, plan, quantization, with_mtp=with_mtp)
    return known


def layers_of_stages(layers: int, stages: int) -> tuple[int, ...]:
    """How many layers each pipeline stage gets: the rest of an uneven division goes to the stages before the last."""
    counts = [layers // stages] * stages
    for number in range(layers % stages):
        counts[-(number % max(1, stages - 1)) - 2 if stages > 1 else 0] += 1
    return tuple(counts)


def stages_of(layers: int, plan: ParallelPlan) -> tuple[int, ...]:
    """`layers_of_stages` of a plan, which may have more stages than layers: only so many of the empty ones are told."""
    return layers_of_stages(layers, min(plan.pipeline, layers + 2))


def _fullest(model: Model, plan: ParallelPlan, quantization: str | None, *, with_mtp: bool) -> int:
    known = _shares(model, quantization)
    outside = {part: sum(share.of_rank(plan) for share in shares) for part, shares in known.outside.items()}
    ranks = [sum(share.of_rank(plan) for share in shares) for shares in known.kinds]
    layers = [ranks[kind] for kind in known.layers]
    first = outside.get(Part.EMBEDDING, 0) + outside.get(Part.ENCODER, 0)
    last = outside.get(Part.LM_HEAD, 0) + outside.get(Part.NORM, 0) + (outside.get(Part.MTP, 0) if with_mtp else 0)
    rest = sum(size for part, size in outside.items() if part not in _PLACED)
    if plan.pipeline > 1 and Part.LM_HEAD not in outside:
        last += outside.get(Part.EMBEDDING, 0)
    sizes, start = [], 0
    for count in stages_of(len(layers), plan):
        sizes.append(sum(layers[start : start + count]))
        start += count
    sizes[0] += first + rest
    sizes[-1] += last
    return max(sizes)


_PLACED = frozenset({Part.EMBEDDING, Part.ENCODER, Part.LM_HEAD, Part.NORM, Part.MTP})
_Shares = tuple[_Share, ...]


@dataclass(frozen=True, slots=True)
class _ModelShares:
    """Sizes of a model, summed up by the way they are divided."""

    outside: Mapping[Part, _Shares]
    """What lies outside the layers."""
    kinds: tuple[_Shares, ...]
    """Of each kind of layer: most layers are like many others."""
    layers: tuple[int, ...]
    """The kind of each layer."""


def _shares(model: Model, quantization: str | None) -> _ModelShares:
    """The sizes of a model, remembered with it."""
    key = ("shares", quantization)
    known = model.remembered.get(key)
    if not isinstance(known, _ModelShares):
        by_part: dict[Part, list[Tensor]] = defaultdict(list)
        for tensor in model.tensors:
            by_part[tensor.part].append(tensor)
        outside = {part: _summed(model, tensors, quantization) for part, tensors in by_part.items()}
        kinds: dict[_Shares, int] = {}
        layers = tuple(
            kinds.setdefault(_summed(model, layer.tensors, quantization), len(kinds)) for layer in model.layers
        )
        known = model.remembered[key] = _ModelShares(outside, tuple(kinds), layers)
    return known


def _summed(model: Model, tensors: Iterable[Tensor], quantization: str | None) -> _Shares:
    sums: dict[tuple[Split, int, int], int] = defaultdict(int)
    for tensor in tensors:
        copies = tensor.copies if tensor.split is Split.EXPERTS else 1
        sums[tensor.split, tensor.heads, copies] += _padded(tensor, encoding_of(tensor, model, quantization))
    return tuple(_Share(*key, size) for key, size in sums.items())


def _padded(tensor: Tensor, encoding: Encoding) -> int:
    size = encoding.bytes_of(tensor)
    if tensor.split is not Split.VOCABULARY:
        return size
    rows = -(-tensor.out_features // VOCABULARY_PADDING) * VOCABULARY_PADDING
    return -(-size * rows // tensor.out_features)
