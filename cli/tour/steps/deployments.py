"""Three written manifests become pinned ones, are reviewed by the control plane, and run."""

from cli.exits import CommandError
from cli.tour.evidence import Evidence, StepFailed
from cli.tour.world import Document, Journey, World, store


def manifests_run(world: World, journey: Journey) -> Evidence:
    """Pin, apply through the admin API, and wait until every engine answers."""
    choices = _pin(world)
    pinned = [choice["pinned"] for choice in choices]
    for manifest in pinned:
        _apply(world, manifest)
    names = [manifest["metadata"]["name"] for manifest in pinned]
    patience = journey.pace.start_seconds
    seconds = world.until(lambda: all(phase(world, name) == "Running" for name in names), seconds=patience)
    if seconds is None:
        waiting = "; ".join(_why(world, name) for name in names if phase(world, name) != "Running")
        raise StepFailed(f"not running after {patience:g} s: {waiting}")
    journey.exercised = names[0]
    running = [_running(world, name) for name in names]
    return Evidence(
        lines=tuple(f"{_sentence(choice)}, {status}" for choice, status in zip(choices, running, strict=True)),
        figures={"deployments": [_figures(manifest) for manifest in pinned], "seconds_to_running": round(seconds, 2)},
    )


def phase(world: World, name: str) -> str:
    """Where a deployment stands."""
    status = world.api.get(f"/v1/deployments/{name}")["status"]
    return str(status["phase"])


def _pin(world: World) -> list[Document]:
    """What ``enginehouse pin`` decided about each manifest."""
    said = world.command("pin", *map(str, world.manifests), "--write")
    if said.exit_code != 0:
        raise StepFailed(f"'{said.command}' ended with exit code {said.exit_code}: {said.talk}")
    choices: list[Document] = said.document["manifests"]
    return choices


def _apply(world: World, manifest: Document) -> None:
    name = manifest["metadata"]["name"]
    try:
        store(world.api, f"/v1/deployments/{name}", manifest)
    except CommandError as error:
        raise StepFailed(f"the control plane does not take the pinned manifest {name}: {error}") from None


def _running(world: World, name: str) -> str:
    endpoints = world.api.get(f"/v1/deployments/{name}")["status"]["endpoints"]
    return "running at " + ", ".join(str(endpoint["address"]) for endpoint in endpoints)


def _why(world: World, name: str) -> str:
    status = world.api.get(f"/v1/deployments/{name}")["status"]
    reasons = [str(item["message"]) for item in status["conditions"] if item["status"] != "True"]
    return f"{name} is {status['phase']} ({'; '.join(reasons) or 'no reason given'})"


def _sentence(choice: Document) -> str:
    figures = _figures(choice["pinned"])
    rejected = sorted({str(item["engine"]) for item in choice["rejections"]} - {figures["engine"]})
    instead = f" (not {', '.join(rejected)})" if rejected else ""
    return f"{figures['name']}: {figures['model']} on {figures['engine']} {figures['version']}{instead}"


def _figures(manifest: Document) -> dict[str, str]:
    spec = manifest["spec"]
    return {
        "name": manifest["metadata"]["name"],
        "model": spec["model"]["id"],
        "engine": spec["engine"]["name"],
        "version": spec["engine"]["version"],
    }
