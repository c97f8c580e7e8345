"""The order of the steps, and taking them one after the other until one fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.exits import CommandError
from cli.tour.evidence import Evidence, StepFailed, StepReport
from cli.tour.steps.advisories import advisories_are_loaded
from cli.tour.steps.audit import audit_is_whole
from cli.tour.steps.deployments import manifests_run
from cli.tour.steps.exercise import advisory_marks_deployment
from cli.tour.steps.rollout import proposal_is_rolled_out
from cli.tour.steps.runbook import runbook_is_refused
from cli.tour.steps.tenants import tenants_are_served
from cli.tour.world import Journey, World


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the tour."""

    name: str
    title: str
    take: Callable[[World, Journey], Evidence]


STEPS = (
    Step("advisories", "Advisories are loaded", advisories_are_loaded),
    Step("deployments", "Three manifests are pinned, reviewed and running", manifests_run),
    Step("runbook", "A public runbook is refused, with the records", runbook_is_refused),
    Step("tenants", "Two tenants chat through the gateway", tenants_are_served),
    Step("exercise", "A new critical advisory marks what it hits", advisory_marks_deployment),
    Step("rollout", "The new pin is rolled out while a stream goes on", proposal_is_rolled_out),
    Step("audit", "The audit log is whole", audit_is_whole),
)


def take(
    steps: Sequence[Step],
    world: World,
    journey: Journey,
    *,
    clock: Callable[[], float],
    begun: Callable[[Step], None],
    ended: Callable[[StepReport], None],
) -> list[StepReport]:
    """Take the steps in order; the first that fails is the last of the reports."""
    reports = []
    for step in steps:
        begun(step)
        report = _take(step, world, journey, clock)
        ended(report)
        reports.append(report)
        if report.error is not None:
            break
    return reports


def _take(step: Step, world: World, journey: Journey, clock: Callable[[], float]) -> StepReport:
    begin = clock()
    try:
        evidence = step.take(world, journey)
    except (StepFailed, CommandError) as error:
        return StepReport(step.name, step.title, clock() - begin, None, str(error))
    except (KeyError, TypeError, LookupError) as error:
        what = f"an answer has another form than expected ({type(error).__name__}: {error})"
        return StepReport(step.name, step.title, clock() - begin, None, what)
    return StepReport(step.name, step.title, clock() - begin, evidence)
