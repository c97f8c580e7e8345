"""Everything that happened stands in the audit log, and the chain holds."""

from cli.tour.evidence import Evidence, StepFailed
from cli.tour.world import Journey, World


def audit_is_whole(world: World, journey: Journey) -> Evidence:
    """The chain is checked here, not on the server; the tour's own changes stand in it."""
    said = world.command("audit", "verify")
    if said.exit_code != 0 or not said.document["valid"]:
        raise StepFailed(f"the audit chain does not hold: {said.document.get('break') or said.talk}")
    events = list(world.api.every("/v1/audit-events"))
    about = [event for event in events if event["name"] == journey.exercised]
    actions = [str(event["action"]) for event in about]
    if not any(action.endswith(".create") for action in actions):
        raise StepFailed(f"the log does not tell that {journey.exercised} was created; it tells {actions}")
    return Evidence(
        lines=(
            f"{said.document['events']} events, chain whole, head {str(said.document['head'])[:16]}",
            f"{journey.exercised}: {', '.join(actions)}",
        ),
        figures={"events": said.document["events"], "head": said.document["head"], "actions": actions},
    )
