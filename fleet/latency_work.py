"""What one step of a plan has to do on a GPU: seconds at the hardware's peaks, before any efficiency.

A step makes one token for each request of the batch. The decode step reads the weights once (dense ones divided by
tensor parallelism, those experts that the batch touches divided over all ranks of a stage) and the KV cache of each
request; the stages of a pipeline follow each other, so a token passes all of them.
"""

import math
from dataclasses import dataclass

from fleet.hardware import GpuModel
from fleet.latency_model import ModelWork, Operations
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan

BYTES_OF_ACTIVATION = 2
GIGA = 1e9
TERA = 1e12
BUDGET_OF_MEMORY = 0.92
"""Part of the memory that an engine takes (vLLM's default), for the number of requests that run at once."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests in flight over the whole plan, each with the same lengths."""

    concurrency: float
    input_tokens: int
    output_tokens: int

    @property
    def context_tokens(self) -> int:
        """In the middle of an answer."""
        return self.input_tokens + self.output_tokens // 2


@dataclass(frozen=True, slots=True)
class StepWork:
    """Seconds at the peaks of the hardware, and counts."""

    dense: float
    experts: float
    kv: float
    attention_operations: float
    """Attention of a decode step, in bf16."""
    decode_operations: float
    prompt_operations: float
    """Of one prompt through the weights, on the ranks that serve it."""
    prompt_attention: float
    """Of one prompt among its own tokens, in bf16."""
    prompt_memory: float
    """Weights that one prompt reads: the dense ones, and the experts that its tokens choose."""
    link: float
    """Bytes of a step between the ranks."""
    prompt_link: float
    """Bytes of one prompt between the ranks."""
    hops: float
    """Waits of a step, each for the depth of the tree over the ranks; copies of a dense model wait for nobody."""
    kernels: int
    batch: float
    """Requests of one data-parallel rank and one pipeline stage."""
    running: float
    """As many of them as the KV cache holds."""
    input_tokens: int
    output_tokens: int
    has_experts: bool
    is_low_precision: bool
    """Matrix products in fp8 or fp4."""


@dataclass(frozen=True, slots=True)
class PlanWork:
    """What a plan has to do for requests of some lengths, however many there are: asked at one load after the other."""

    work: ModelWork
    plan: ParallelPlan
    input_tokens: int
    output_tokens: int
    context_tokens: int
    bandwidth: float
    plain_peak: float
    """In bf16."""
    peak: float
    """Of the units that the weights use."""
    link_bandwidth: float
    sequence: int
    """KV cache of one request on one rank."""
    held: float
    """Requests of one stage that the KV cache holds."""
    dense: float
    expert: float
    """All routed experts of one rank."""
    crossing: float
    """Bytes of one token between the ranks."""
    together: int
    """Ranks that wait for each other."""
    prompt_operations: float
    prompt_attention: float
    prompt_memory: float

    def at(self, concurrency: float) -> StepWork:
        """The work of a step with some requests in flight over the whole plan."""
        plan, work, together = self.plan, self.work, self.together
        batch = max(1.0, concurrency / (plan.data * plan.pipeline))
        split = plan.tensor * plan.context
        attended = work.decode_attention_operations * self.context_tokens * batch
        return StepWork(
            dense=self.dense,
            experts=self.expert * work.chosen_part(batch * plan.data),
            kv=batch * self.sequence / self.bandwidth,
            attention_operations=attended / split / self.plain_peak,
            decode_operations=work.operations_per_token * batch / split / self.peak,
            prompt_operations=self.prompt_operations,
            prompt_attention=self.prompt_attention,
            prompt_memory=self.prompt_memory,
            link=self.crossing * batch / self.link_bandwidth,
            prompt_link=2 * self.crossing * self.input_tokens * (together - 1) / together / self.link_bandwidth,
            hops=work.reductions * math.log2(together),
            kernels=work.kernels,
            batch=batch,
            running=min(batch, self.held),
            input_tokens=self.input_tokens,
            output_tokens=max(1, self.output_tokens),
            has_experts=work.expert_bytes > 0,
            is_low_precision=self.peak > self.plain_peak,
        )


def step_work(work: ModelWork, plan: ParallelPlan, gpu: GpuModel, load: Load) -> StepWork | Missing:
    """The work of a plan under a load, or which figure is missing: of the GPU or of the model's cache."""
    found = plan_work(work, plan, gpu, load)
    return found if isinstance(found, Missing) else found.at(load.concurrency)


def plan_work(work: ModelWork, plan: ParallelPlan, gpu: GpuModel, load: Load) -> PlanWork | Missing:
    """The same for any number of requests in flight; of the load only the lengths count."""
    sequence = work.sequence_bytes(plan, load.context_tokens)
    if isinstance(sequence, Missing):
        return sequence
    if gpu.memory_bandwidth_gb_per_second is None or gpu.bf16_tflops is None:
        return _lacking(gpu, "bf16_tflops" if gpu.bf16_tflops is None else "memory_bandwidth_gb_per_second")
    bandwidth, plain_peak = gpu.memory_bandwidth_gb_per_second * GIGA, gpu.bf16_tflops * TERA
    peak = _peak(work, gpu) or plain_peak
    dense = (work.divided_bytes / plan.tensor + work.whole_bytes) / bandwidth
    expert = work.expert_bytes / plan.stage_ranks / bandwidth
    split = plan.tensor * plan.context
    together = plan.stage_ranks if work.expert_bytes else split
    return PlanWork(
        work=work,
        plan=plan,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        context_tokens=load.context_tokens,
        bandwidth=bandwidth,
        plain_peak=plain_peak,
        peak=peak,
        link_bandwidth=_link_bytes_per_second(gpu),
        sequence=sequence,
        held=_sequences_held(work, plan, gpu, sequence),
        dense=dense,
        expert=expert,
        crossing=_crossing_bytes(work, plan) if together > 1 else 0.0,
        together=together,
        prompt_operations=work.operations_per_token * load.input_tokens / split / peak,
        prompt_attention=work.attention_operations_of_prompt(load.input_tokens) / split / plain_peak,
        prompt_memory=dense + expert * work.chosen_part(load.input_tokens),
    )


def _crossing_bytes(work: ModelWork, plan: ParallelPlan) -> float:
    """Bytes of one token between the ranks of a step.

    Tensor parallelism reduces after attention and after the FFN. Data-parallel ranks that share experts send each token
    to the ranks of its experts instead, and back.
    """
    activation = BYTES_OF_ACTIVATION * work.model.hidden_size
    reduced = activation * work.reductions if plan.tensor > 1 or plan.context > 1 else 0.0
    experts = work.model.experts
    if plan.data == 1 or experts is None:
        return reduced
    return reduced + 2 * activation * experts.layers * min(experts.active, plan.stage_ranks)


def _sequences_held(work: ModelWork, plan: ParallelPlan, gpu: GpuModel, sequence_bytes: int) -> float:
    """Requests of one stage whose KV cache fits beside the weights, at least one; all where memory is not known.

    A rank holds 1/pipeline of a sequence and serves pipeline batches in turn, so both cancel out.
    """
    if gpu.memory_bytes is None or not sequence_bytes:
        return math.inf
    held = (work.divided_bytes + work.embedding_bytes) / plan.tensor + work.whole_bytes
    held += work.expert_bytes / plan.stage_ranks
    left = BUDGET_OF_MEMORY * gpu.memory_bytes - held / plan.pipeline
    return max(1.0, left / sequence_bytes)


def _peak(work: ModelWork, gpu: GpuModel) -> float | None:
    """Of the units that the weights' encoding uses on this GPU, in operations a second."""
    peaks = {Operations.FP4: gpu.fp4_tflops, Operations.FP8: gpu.fp8_tflops}
    tflops = peaks.get(work.operations_on(gpu.compute_capability))
    return None if tflops is None else tflops * TERA


def _link_bytes_per_second(gpu: GpuModel) -> float:
    """NVLink, else PCIe; a slow bus (32 GB/s) where neither is known."""
    return (gpu.nvlink_gb_per_second or gpu.pcie_gb_per_second or 32.0) * GIGA


def _lacking(gpu: GpuModel, key: str) -> Missing:
    return Missing("latency", key, f"{gpu.name}: {key} is not known, so its speed is not either")
