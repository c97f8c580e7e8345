"""What must divide: heads, KV heads, vocabulary, experts, FFN widths, quantisation blocks and groups.

Pipeline parallelism splits layers and needs no divisor, only as many layers as stages.
"""

from collections.abc import Iterator

from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import DividedMatrix, ModelFigures
from fleet.plan_wish import Reason
from fleet.quantization import ENCODINGS, Encoding
from fleet.tensors import Part

VOCABULARY_PADDING = 64
"""vLLM pads the vocabulary to a multiple of this before it divides it."""
_FFN = frozenset({Part.DENSE_FFN, Part.SHARED_EXPERTS})
_GROUPED = frozenset({"awq", "gptq", "int4"})
"""Encodings whose kernels need whole groups on each rank; block floats are padded."""


def division(figures: ModelFigures, plan: ParallelPlan) -> Iterator[Reason]:
    """Every division that does not come out even."""
    if plan.tensor > 1:
        yield from _heads(figures, plan.tensor)
        yield from _vocabulary(figures, plan.tensor)
        yield from _matrices(figures, plan.tensor)
    yield from _experts(figures, plan)
    yield from _layers(figures, plan)


def _heads(figures: ModelFigures, ranks: int) -> Iterator[Reason]:
    for kind in figures.heads:
        if kind.heads % ranks:
            message = f"{kind.heads} attention heads are not divisible by tensor parallelism of {ranks}"
            yield Reason("heads-divisible", message, {"heads": kind.heads, "tensor": ranks})
            return
    for kind in figures.heads:
        if kind.kv_heads is not None and kind.kv_heads % ranks and ranks % kind.kv_heads:
            message = (
                f"{kind.kv_heads} KV heads can neither be divided by nor copied over {ranks} tensor-parallel ranks"
            )
            yield Reason("kv-heads-divisible", message, {"kv_heads": kind.kv_heads, "tensor": ranks})
            return


def _vocabulary(figures: ModelFigures, ranks: int) -> Iterator[Reason]:
    vocabulary = figures.model.vocabulary
    padded = -(-vocabulary // VOCABULARY_PADDING) * VOCABULARY_PADDING
    if padded % ranks:
        message = f"the vocabulary of {vocabulary}, padded to {padded}, is not divisible by {ranks}"
        yield Reason("vocabulary-divisible", message, {"vocabulary": vocabulary, "padded": padded, "tensor": ranks})


def _matrices(figures: ModelFigures, ranks: int) -> Iterator[Reason]:
    seen: set[str] = set()
    for matrix in figures.divided:
        if matrix.part is Part.ENCODER or matrix.part is Part.EXPERTS:
            continue
        reason = _matrix(matrix, ENCODINGS.get(matrix.encoding), figures, ranks)
        if reason and reason.rule not in seen:
            seen.add(reason.rule)
            yield reason


def _matrix(matrix: DividedMatrix, named: Encoding | None, figures: ModelFigures, ranks: int) -> Reason | None:
    encoding = figures.encodings.get(matrix.encoding, named)
    evidence: dict[str, int | float | str] = {"rows": matrix.rows, "tensor": ranks, "part": matrix.part.value}
    if matrix.rows % ranks:
        if matrix.part not in _FFN:
            return None
        message = f"the width {matrix.rows} of {matrix.part.value} is not divisible by {ranks}"
        return Reason("width-divisible", message, evidence)
    if encoding is None:
        return None
    if matrix.part in _FFN and encoding.block and (matrix.rows // ranks) % encoding.block[1]:
        return _block(matrix.part.value, matrix.rows, ranks, encoding.block[1])
    if encoding.name in _GROUPED and encoding.group_size and (matrix.rows // ranks) % encoding.group_size:
        return _group(matrix.part.value, matrix.rows, ranks, encoding)
    return None


def _experts(figures: ModelFigures, plan: ParallelPlan) -> Iterator[Reason]:
    experts, encoding = figures.model.experts, figures.expert_encoding
    spread = plan.expert or 1
    if experts is None:
        if plan.expert > 1:
            message = (
                f"expert parallelism of {plan.expert} needs a mixture of experts; {figures.model.architecture} is none"
            )
            yield Reason("experts-divisible", message, {"expert": plan.expert, "experts": 0})
        return
    if experts.count % spread:
        message = f"{experts.count} experts (no redundant ones) are not divisible by expert parallelism of {spread}"
        yield Reason("experts-divisible", message, {"experts": experts.count, "expert": spread})
    if plan.stage_ranks % spread:
        message = f"expert parallelism of {spread} does not divide the {plan.stage_ranks} ranks of a stage"
        yield Reason("experts-divisible", message, {"expert": spread, "stage_ranks": plan.stage_ranks})
        return
    ranks = plan.stage_ranks // spread
    if ranks > 1 and encoding is not None:
        yield from _expert_width(experts.intermediate_size, ranks, encoding)


def _expert_width(width: int, ranks: int, encoding: Encoding) -> Iterator[Reason]:
    if width % ranks:
        if encoding.name not in ("mxfp4", "nvfp4"):
            message = f"the experts' width {width} is not divisible by {ranks}"
            yield Reason("width-divisible", message, {"rows": width, "tensor": ranks, "part": "experts"})
    elif encoding.block and (width // ranks) % encoding.block[1]:
        yield _block("experts", width, ranks, encoding.block[1])
    elif encoding.name in _GROUPED and encoding.group_size and (width // ranks) % encoding.group_size:
        yield _group("experts", width, ranks, encoding)


def _layers(figures: ModelFigures, plan: ParallelPlan) -> Iterator[Reason]:
    layers = len(figures.model.layers)
    if plan.pipeline > layers > 0:
        message = f"{layers} layers can't be split over {plan.pipeline} pipeline stages"
        yield Reason("layers-divisible", message, {"layers": layers, "pipeline": plan.pipeline})


def _block(part: str, width: int, ranks: int, block: int) -> Reason:
    message = (
        f"{part}: {width} over {ranks} ranks leaves {width // ranks}, not a multiple of the FP8 block of {block}"
        + ("; spread whole experts instead (expert parallelism)" if part == "experts" else "")
    )
    return Reason("fp8-block", message, {"width": width, "ranks": ranks, "per_rank": width // ranks, "block": block})


def _group(part: str, width: int, ranks: int, encoding: Encoding) -> Reason:
    message = (
        f"{part}: {width} over {ranks} ranks leaves {width // ranks}, "
        f"not a multiple of the {encoding.name} group of {encoding.group_size}"
    )
    evidence = {"width": width, "ranks": ranks, "per_rank": width // ranks, "group": encoding.group_size}
    return Reason("quantisation-group", message, evidence)
