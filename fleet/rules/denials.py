"""The rule about explicit denials: an engine that people have ruled out for a workload."""

from collections.abc import Iterator

from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation

ENGINE_DENIED = "engine-denied"


def engine_denied(case: Case) -> Iterator[Violation]:
    """The policy does not deny the engine for this workload. No waiver holds against it: the policy has to change."""
    spec = case.manifest.spec
    own = (
        spec.hosted.name.value if spec.hosted else spec.engine.name.value if spec.engine and spec.engine.name else None
    )
    for denial in case.facts.policy.denials:
        if denial.workload == spec.workload.value and denial.engine == own:
            yield Violation(
                rule=ENGINE_DENIED,
                severity=Enforcement.MANDATORY,
                pointer="/spec/hosted/name" if spec.hosted else "/spec/engine/name",
                message=f"the policy denies {own} for workload '{denial.workload}': {denial.reason}",
                remedy="take another engine, or change the policy",
                evidence={"workload": denial.workload, "engine": denial.engine, "reason": denial.reason},
            )
