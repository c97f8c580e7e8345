"""The planner's answer and its document: one JSON object with every documented key, null where nothing is known."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum
from typing import Any

from fleet.hardware import GpuModel
from fleet.memory import Memory
from fleet.memory_constants import MemoryConstants
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_counterfactual import Counterfactual
from fleet.plan_judgement import Fits
from fleet.plan_wish import PlanWish, Reason


@dataclass(frozen=True, slots=True)
class ModelSize:
    """What the model takes, however it is split."""

    parameters_total: int | None
    parameters_active: int | None
    weights_bytes_total: int | None
    kv_bytes_per_token: int | None
    kv_sliding: tuple[int, int] | None
    """Bytes per token and window in tokens."""
    state_bytes_per_sequence: int | None
    cross_bytes_per_sequence: int | None
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another plan that fits."""

    plan: ParallelPlan
    sequences: float | None
    kv_tokens: int | None
    note: str


@dataclass(frozen=True)
class PlanAnswer:
    """What the planner found."""

    model: Model
    size: ModelSize
    wish: PlanWish
    gpu: GpuModel
    plan: ParallelPlan
    nodes: int
    fits: Fits
    reasons: tuple[Reason, ...]
    memory: Memory | None
    constants: MemoryConstants
    """What the engine takes beside weights and cache, as measured."""
    largest_context: int | None
    smallest_gpus: int | None
    """The fewest of the offered GPUs on which some plan fits."""
    alternatives: tuple[Alternative, ...]
    counterfactuals: tuple[Counterfactual, ...]
    notes: tuple[str, ...]
    advice: Mapping[str, Any]
    """Batch settings, mixture of experts, disaggregation, KV tiers."""
    speed: Mapping[str, Any]
    """``latency``, ``throughput_tokens_per_second``, ``cold_start_seconds``, ``cost``."""

    def to_document(self) -> dict[str, Any]:
        """The documented object: plain values only, never NaN or Infinity."""
        document = {
            "model": {
                "id": self.model.id,
                "architecture": self.model.architecture,
                "parameters_total": self.size.parameters_total,
                "parameters_active": self.size.parameters_active,
            },
            "weights_bytes_total": self.size.weights_bytes_total,
            "kv_bytes_per_token": self.size.kv_bytes_per_token,
            "kv_sliding": _sliding(self.size.kv_sliding),
            "state_bytes_per_sequence": self.size.state_bytes_per_sequence,
            "cross_bytes_per_sequence": self.size.cross_bytes_per_sequence,
            "per_gpu": _per_gpu(self.memory),
            "kv_tokens": None if self.memory is None else self.memory.kv_tokens,
            "sequences_at_context": None if self.memory is None else self.memory.sequences,
            "largest_context_tokens": self.largest_context,
            "smallest_gpus": self.smallest_gpus,
            "fits": self.fits,
            "reasons": self.reasons,
            "parallel": parallel_document(self.plan, self.nodes),
            "alternatives": [_alternative(item) for item in self.alternatives],
            "counterfactuals": self.counterfactuals,
            "hardware": self._hardware(),
            "engine": self._engine(),
            "memory_constants": self._constants(),
            "missing": self.size.missing,
            "notes": self.notes,
            **self.advice,
            **self.speed,
        }
        return {key: to_plain(value) for key, value in document.items()}

    def _hardware(self) -> dict[str, Any]:
        return {
            "gpu": self.gpu.name,
            "gpus": self.plan.gpus,
            "nodes": self.nodes,
            "instance": self.wish.instance,
            "visible_bytes": None if self.memory is None else self.memory.visible,
            "mig_profile": self.wish.mig_profile,
        }

    def _constants(self) -> dict[str, Any]:
        known = self.constants
        return {"engine": known.engine, "measured_on": known.measured_on, "source": known.source}

    def _engine(self) -> dict[str, Any]:
        return {
            "name": self.wish.engine,
            "version": self.wish.engine_version,
            "quantization": self.wish.quantization,
            "kv_dtype": self.wish.kv_dtype,
        }


def parallel_document(plan: ParallelPlan, nodes: int | None = None) -> dict[str, Any]:
    """A plan as the document spells it; ``ep`` 1 = experts split by tensor parallelism."""
    shown: dict[str, Any] = {
        "tp": plan.tensor,
        "pp": plan.pipeline,
        "ep": max(1, plan.expert),
        "dp": plan.data,
        "cp": plan.context,
        "gpus": plan.gpus,
    }
    return shown if nodes is None else {**shown, "nodes": nodes}


def to_plain(value: object) -> object:
    """Plain JSON values: dataclasses become objects, infinite and undefined numbers become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key: to_plain(item) for key, item in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sliding(kv_sliding: tuple[int, int] | None) -> dict[str, int] | None:
    if kv_sliding is None:
        return None
    return {"bytes_per_token": kv_sliding[0], "window_tokens": kv_sliding[1]}


def _per_gpu(memory: Memory | None) -> dict[str, int | None]:
    if memory is None:
        keys = ("weights", "kv_cache", "activation", "overhead", "free")
        return dict.fromkeys((f"{key}_bytes" for key in keys), None)
    return {
        "weights_bytes": memory.weights,
        "kv_cache_bytes": memory.kv_cache,
        "activation_bytes": memory.activation,
        "overhead_bytes": memory.overhead,
        "free_bytes": memory.free,
    }


def _alternative(item: Alternative) -> dict[str, Any]:
    return {
        **parallel_document(item.plan),
        "sequences_at_context": item.sequences,
        "kv_tokens": item.kv_tokens,
        "note": item.note,
    }
