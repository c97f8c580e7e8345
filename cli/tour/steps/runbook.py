"""What a public runbook allows, the rules refuse, and they name the records."""

from cli.client import Refused
from cli.manifests import read_manifest
from cli.tour.evidence import Evidence, StepFailed
from cli.tour.world import Journey, World


def runbook_is_refused(world: World, _journey: Journey) -> Evidence:
    """Every manifest of the runbook is refused: by the command without a server, and by the control plane."""
    said = world.command("review", *map(str, world.runbook))
    if said.exit_code != 3:
        raise StepFailed(f"'{said.command}' ended with exit code {said.exit_code}; the rules refuse with 3")
    lines, figures = [], []
    for review in said.document["manifests"]:
        mandatory = [item for item in review["violations"] if item["severity"] == "mandatory"]
        if not mandatory:
            raise StepFailed(f"the rules let {review['name']} pass; the records refuse it")
        records = [item["advisory"] for item in mandatory if item.get("advisory")]
        more = f" and {len(mandatory) - 1} further reasons" if len(mandatory) > 1 else ""
        lines.append(f"{review['name']}: {mandatory[0]['message']}{more}")
        figures.append({"name": review["name"], "violations": len(mandatory), "advisories": records})
    lines.append(_refused_by_the_server(world))
    return Evidence(tuple(lines), {"refused": figures})


def _refused_by_the_server(world: World) -> str:
    manifest = read_manifest(world.runbook[0])
    try:
        world.api.put(f"/v1/deployments/{manifest.name}", manifest.model_dump(mode="json", exclude_none=True))
    except Refused as refused:
        return f"the control plane answers 422 to {manifest.name}, with {len(refused.violations)} violations"
    raise StepFailed(f"the control plane took {manifest.name}, which the rules refuse")
