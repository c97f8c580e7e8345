"""The rule that a deployment starts: the planner judges the plan as it is written down, pinned or not yet."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.hardware import BYTES_PER_GIB, SharingMode, gpu, instance_types
from fleet.known_models import Known, known_model
from fleet.manifest import PinnedManifest
from fleet.memory_constants import constants_for, default_utilization
from fleet.plan_figures import figures_of
from fleet.plan_judgement import judge
from fleet.plan_wish import PlanWish, Reason
from fleet.rules.case import Case, Release
from fleet.rules.hardware import placed
from fleet.spec import Batch, Hardware, KvCacheDtype, Parallelism, Pool, Spec
from fleet.violation import Enforcement, Violation

PLAN_FITS = "plan-fits"
CERTAIN_BYTES, CERTAIN_SHARE = BYTES_PER_GIB, 0.1
"""A shortage below a GiB, or a tenth of the GPU, only tells: constants are measured on few versions, and what runs
must not lose its next version to an estimate."""


@dataclass(frozen=True, slots=True)
class _Load:
    """The batch as far as it is said; ``None`` = the engine's own default."""

    max_model_len: int
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    kv_cache_dtype: KvCacheDtype


@dataclass(frozen=True, slots=True)
class _Question:
    """Everything that the answer depends on; many manifests ask the same."""

    model_id: str
    quantization: str | None
    engine: str
    version: str
    hardware: Hardware
    parallelism: Parallelism
    batch: _Load


def plan_fits(case: Case) -> Iterator[Violation]:
    """The engine starts with the model on this hardware, split as it is; what is not known refuses nothing.

    Only whole GPUs are judged: how much of a shared one an engine gets is not in the manifest. A manifest that is not
    pinned yet is judged where engine, version, hardware and split are written; what its batch leaves open is the
    engine's own default.
    """
    spec, release = case.manifest.spec, case.release
    if release is None or spec.batch is None or spec.hosted is not None or _has_own_share(case):
        return
    known = known_model(spec.model.id, case.facts)
    if known is None:
        return
    stored, load = spec.model.quantization or known.quantization, _load(spec.batch, _is_pinned(case))
    for pointer, hardware, parallelism in _split(case):
        if hardware.sharing != "exclusive" or hardware.instance_type not in instance_types():
            continue
        asked = _Question(spec.model.id, stored, release.engine, release.raw, hardware, parallelism, load)
        key = (PLAN_FITS, case.facts.remember(("memory of", release.title), lambda: _memory_of(release)), *_key(asked))
        for reason in case.facts.remember(key, lambda asked=asked: _reasons(known, asked)):  # type: ignore[misc]
            yield _violation(pointer, reason, release)


def _is_pinned(case: Case) -> bool:
    return isinstance(case.manifest, PinnedManifest)


def _split(case: Case) -> Iterator[tuple[str, Hardware, Parallelism]]:
    """Each hardware of the manifest whose split is written, or where one GPU leaves nothing to split."""
    if _is_pinned(case):
        yield from placed(case)
        return
    spec = case.manifest.spec
    holders: dict[str, Spec | Pool] = {"/spec": spec}
    if spec.pools is not None:
        holders |= {"/spec/pools/prefill": spec.pools.prefill, "/spec/pools/decode": spec.pools.decode}
    for pointer, hardware, parallelism in placed(case):
        if hardware.gpus == 1 or "parallelism" in holders[pointer].model_fields_set:
            yield pointer, hardware, parallelism


def _load(batch: Batch, is_pinned: bool) -> _Load:
    """A pin holds every field; in a written manifest those that nobody wrote are still open."""
    seqs, tokens = batch.max_num_seqs, batch.max_num_batched_tokens
    if is_pinned:
        return _Load(batch.max_model_len, seqs, tokens, batch.kv_cache_dtype)
    written = batch.model_fields_set
    return _Load(
        batch.max_model_len,
        seqs if "max_num_seqs" in written else None,
        tokens if "max_num_batched_tokens" in written else None,
        batch.kv_cache_dtype,
    )


def _has_own_share(case: Case) -> bool:
    """Whether a flag of the manifest sets the engine's share of the memory: its value is the person's business."""
    flags = case.engine.flags if case.engine else {}
    return any("memory-utilization" in flag or "mem-fraction" in flag or "memory_fraction" in flag for flag in flags)


def _memory_of(release: Release) -> tuple[str, float]:
    """What the planner knows of a version: most versions share it."""
    constants = constants_for(release.engine, release.raw).constants
    return f"{constants.engine} {constants.measured_on}", default_utilization(release.engine, release.raw)


def _key(asked: _Question) -> tuple[object, ...]:
    hardware, plan, batch = asked.hardware, asked.parallelism, asked.batch
    by_version = asked.version if plan.pipeline > 1 or plan.context > 1 else ""
    return (
        (asked.model_id, asked.quantization, asked.engine, by_version, hardware.instance_type),
        (plan.tensor, plan.pipeline, plan.data, plan.context, plan.expert),
        hardware.memory_share,
        (batch.max_model_len, batch.max_num_seqs, batch.max_num_batched_tokens, batch.kv_cache_dtype),
    )


def _reasons(known: Known, asked: _Question) -> tuple[Reason, ...]:
    plan, batch = asked.parallelism, asked.batch
    shape = instance_types()[asked.hardware.instance_type]
    if shape.gpu_fraction < 1:
        return ()
    wish = PlanWish(
        gpu=shape.gpu,
        instance=shape.name,
        engine=asked.engine,
        engine_version=asked.version,
        quantization=asked.quantization,
        kv_dtype=batch.kv_cache_dtype,
        context_tokens=batch.max_model_len,
        max_num_seqs=batch.max_num_seqs,
        max_num_batched_tokens=batch.max_num_batched_tokens,
        gpu_memory_utilization=asked.hardware.memory_share,
        sharing=SharingMode.EXCLUSIVE,
        tensor=plan.tensor,
        pipeline=plan.pipeline,
        data=plan.data,
        context_parallel=plan.context,
        expert=plan.expert,
    )
    figures = figures_of(known.model, asked.quantization, batch.kv_cache_dtype)
    judged = judge(figures, wish.explicit_plan, gpu(shape.gpu), wish)
    return tuple(judged.reasons(figures, gpu(shape.gpu), wish)) if judged.fits == "no" else ()


def _violation(pointer: str, reason: Reason, release: Release) -> Violation:
    part = "batch/max_model_len" if reason.rule == "context-length" else "parallelism"
    base = "/spec" if part.startswith("batch") else pointer
    return Violation(
        rule=PLAN_FITS,
        severity=Enforcement.MANDATORY if _is_certain(reason) else Enforcement.ADVISORY,
        pointer=f"{base}/{part}",
        message=f"{release} would not start ({reason.rule}): {reason.message}",
        remedy="ask 'enginehouse plan' what fits, or leave hardware and parallelism to 'enginehouse pin'",
        evidence={"reason": reason.rule} | {name: str(value) for name, value in reason.evidence.items()},
    )


def _is_certain(reason: Reason) -> bool:
    """Arithmetic is; memory is where it is short by more than the planner errs."""
    if reason.rule != "memory":
        return True
    found = {name: value for name, value in reason.evidence.items() if isinstance(value, int | float)}
    short = found.get("short_bytes", 0), found.get("wanted_bytes", 0) - found.get("kv_cache_bytes", 0)
    worst = max(*short, found.get("needed_free_bytes", 0) - found.get("free_bytes", 0))
    return worst > max(CERTAIN_BYTES, CERTAIN_SHARE * found.get("visible_bytes", 0))
