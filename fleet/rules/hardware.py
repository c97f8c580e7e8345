"""Rules about the hardware: the GPUs are those of the parallel plan, and the instance type has them."""

from collections.abc import Iterator

from fleet.manifest import PinnedManifest
from fleet.rules.case import Case
from fleet.spec import Hardware, Parallelism
from fleet.violation import Enforcement, Violation

GPUS_MATCH_PLAN = "gpus-match-plan"


def gpus_match_plan(case: Case) -> Iterator[Violation]:
    """GPUs of a replica = tensor x pipeline x data x context."""
    for pointer, hardware, plan in placed(case):
        if hardware.gpus != plan.gpus:
            product = f"{plan.tensor} x {plan.pipeline} x {plan.data} x {plan.context}"
            yield Violation(
                rule=GPUS_MATCH_PLAN,
                severity=Enforcement.MANDATORY,
                pointer=f"{pointer}/hardware/gpus",
                message=f"{hardware.gpus} GPUs, but tensor x pipeline x data x context is {product} = {plan.gpus}",
                remedy=f"give gpus {plan.gpus}, or a plan for {hardware.gpus}",
                evidence={"gpus": str(hardware.gpus), "plan_gpus": str(plan.gpus)},
            )


def placed(case: Case) -> Iterator[tuple[str, Hardware, Parallelism]]:
    """Each hardware of the manifest with its plan; a written manifest may leave the plan open."""
    spec = case.manifest.spec
    if spec.hosted is not None:
        return
    has_plan = isinstance(case.manifest, PinnedManifest) or "parallelism" in spec.model_fields_set
    if spec.hardware is not None and has_plan:
        yield "/spec", spec.hardware, spec.parallelism
    if spec.pools is not None:
        yield "/spec/pools/prefill", spec.pools.prefill.hardware, spec.pools.prefill.parallelism
        yield "/spec/pools/decode", spec.pools.decode.hardware, spec.pools.decode.parallelism
