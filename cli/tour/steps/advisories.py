"""Which facts everything below is judged by."""

from cli.tour.evidence import Evidence, StepFailed
from cli.tour.world import Journey, World

SMALLEST_SNAPSHOT = 100


def advisories_are_loaded(world: World, _journey: Journey) -> Evidence:
    """The bundled snapshot is loaded, with its date and source, and says something about the engines."""
    facts = world.api.get("/v1/facts")
    count = sum(1 for _ in world.api.every("/v1/advisories"))
    if count < SMALLEST_SNAPSHOT:
        raise StepFailed(f"the control plane knows {count} advisories; the bundled snapshot has hundreds")
    old = world.command("advisories", "check", "vllm==0.18.1").document
    affected = [match["id"] for match in old["matches"] if match["result"] == "affected"]
    if old["verdict"] != "affected" or not affected:
        raise StepFailed(f"vllm 0.18.1 counts as {old['verdict']}; the records say that it is affected")
    return Evidence(
        lines=(
            f"{count} advisories as of {facts['as_of']} from {facts['source']}",
            f"vllm 0.18.1 is affected by {len(affected)} of them, {affected[0]} first",
        ),
        figures={"advisories": count, "as_of": facts["as_of"], "source": facts["source"], "digest": facts["digest"]},
    )
