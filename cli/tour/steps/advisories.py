"""Which facts everything below is judged by."""

from cli.tour.evidence import Evidence, StepFailed
from cli.tour.world import Journey, World

SMALLEST_SNAPSHOT = 100


def advisories_are_loaded(world: World, _journey: Journey) -> Evidence:
    """The bundled snapshot is loaded, with its date and source, and says something about the engines."""
    bundle = world.api.get("/v1/facts")
    data, as_of = bundle["facts"]["data"], bundle["as_of"]
    count, source = len(data["advisories"]), data["source"]
    if count < SMALLEST_SNAPSHOT:
        raise StepFailed(f"the control plane knows {count} advisories; the bundled snapshot has hundreds")
    old = world.command("advisories", "check", "vllm==0.18.1").document
    affected = [match["id"] for match in old["matches"] if match["result"] == "affected"]
    if old["verdict"] != "affected" or not affected:
        raise StepFailed(f"vllm 0.18.1 counts as {old['verdict']}; the records say that it is affected")
    return Evidence(
        lines=(
            f"{count} advisories as of {as_of} from {source}",
            f"vllm 0.18.1 is affected by {len(affected)} of them, {affected[0]} first",
        ),
        figures={"advisories": count, "as_of": as_of, "source": source, "digest": bundle["digest"]},
    )
