"""A new critical advisory for an engine in use: it is dropped into a folder, and the fleet knows within a second."""

from cli.tour.evidence import Evidence, StepFailed
from cli.tour.world import Document, Journey, World

ADVISORY = "GHSA-exer-cise-0001"
"""Real ids never hold the letters e, i, o, s or the digits 0 and 1 in these places, so it can't collide."""
NOTICE_SECONDS = 5.0
PROMISED_SECONDS = 1.0


def advisory_marks_deployment(world: World, journey: Journey) -> Evidence:
    """The deployment that runs the version is marked, the others are not, and a new pin is proposed."""
    name, path = journey.exercised, f"/v1/deployments/{journey.exercised}"
    deployment = world.api.get(path)
    engine = deployment["spec"]["engine"]
    package, version = engine["name"], engine["version"]
    fixed = _newest_above(world, package, version)
    if not _is_compliant(deployment):
        raise StepFailed(f"{name} does not keep the rules before the exercise: {_compliance(deployment)}")
    world.drop_advisory(exercise_record(package, version, fixed, world.now_iso()))
    seconds = _seconds_to_mark(world, path)
    proposal = _proposal(world, path)
    offered = proposal["manifest"]["spec"]["engine"]["version"]
    journey.advisory, journey.version_before, journey.version_after = ADVISORY, version, offered
    others = _untouched(world, name, f"{package} {version}")
    late = "" if seconds <= PROMISED_SECONDS else f" (slower than the promised {PROMISED_SECONDS:g} s)"
    return Evidence(
        lines=(
            f"EXERCISE: {ADVISORY}, invented here, says that {package} {version} is affected and {fixed} is fixed",
            f"{name} was marked {seconds:.2f} s after the file appeared{late}: {_message(world, path)}",
            f"{others} other deployments stay as they were",
            f"proposed: {package} {version} -> {offered} ({proposal['reason']})",
        ),
        figures={
            "advisory": ADVISORY,
            "is_exercise": True,
            "marked": name,
            "seconds_to_mark": round(seconds, 3),
            "within_promise": seconds <= PROMISED_SECONDS,
            "proposed_version": offered,
        },
    )


def _seconds_to_mark(world: World, path: str) -> float:
    seconds = world.until(lambda: not _is_compliant(world.api.get(path)), seconds=NOTICE_SECONDS)
    if seconds is None:
        raise StepFailed(
            f"{path} is still not marked {NOTICE_SECONDS:g} s after {ADVISORY} was dropped into the folder"
        )
    if ADVISORY not in _message(world, path):
        raise StepFailed(f"{path} is marked, but not because of {ADVISORY}: {_message(world, path)}")
    return seconds


def _untouched(world: World, name: str, release: str) -> int:
    """How many deployments there are besides the marked one, none of them marked."""
    deployments = list(world.api.every("/v1/deployments"))
    touched = [item["metadata"]["name"] for item in deployments if not _is_compliant(item)]
    if touched != [name]:
        raise StepFailed(f"marked are {', '.join(touched)}; only {name} runs {release}")
    return len(deployments) - 1


def prepared(world: World, journey: Journey) -> Document:
    """The exercise's record for whoever wants to drop it in by hand."""
    engine = world.api.get(f"/v1/deployments/{journey.exercised}")["spec"]["engine"]
    fixed = _newest_above(world, engine["name"], engine["version"])
    return exercise_record(engine["name"], engine["version"], fixed, world.now_iso())


def exercise_record(package: str, version: str, fixed: str, moment: str) -> Document:
    """The invented record, in the OSV format, plainly marked."""
    return {
        "schema_version": "1.7.0",
        "id": ADVISORY,
        "published": moment,
        "modified": moment,
        "summary": "EXERCISE, not a real advisory: made by 'enginehouse demo'",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": package},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": version}, {"fixed": fixed}]}],
            }
        ],
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "database_specific": {"exercise": True},
    }


def _newest_above(world: World, package: str, version: str) -> str:
    recommended = world.api.get(f"/v1/pins/{package}")["status"]["recommended"]
    if recommended is None or recommended == version:
        raise StepFailed(
            f"the exercise needs a version of {package} newer than {version}; recommended is {recommended}"
        )
    return str(recommended)


def _proposal(world: World, path: str) -> Document:
    def proposal() -> Document | None:
        status: Document = world.api.get(path)["status"]
        found: Document | None = status["proposal"]
        return found

    world.until(proposal, seconds=NOTICE_SECONDS)
    found = proposal()
    if found is None:
        raise StepFailed(f"no new pin is proposed {NOTICE_SECONDS:g} s after the deployment was marked")
    return found


def _compliance(deployment: Document) -> Document:
    conditions = deployment["status"]["conditions"]
    found: Document = next(item for item in conditions if item["type"] == "Compliant")
    return found


def _message(world: World, path: str) -> str:
    return str(_compliance(world.api.get(path))["message"])


def _is_compliant(deployment: Document) -> bool:
    return bool(_compliance(deployment)["status"] == "True")
