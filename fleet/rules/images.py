"""Rules about the image: named by digest, and by a digest that people have recorded for the version."""

from collections.abc import Iterator

from fleet.images import ImageRecord
from fleet.manifest import PinnedManifest
from fleet.rules.case import Case, Release
from fleet.versions import parse_version
from fleet.violation import Enforcement, Violation

IMAGE_BY_DIGEST = "image-by-digest"
IMAGE_RECORDED = "image-recorded"


def image_by_digest(case: Case) -> Iterator[Violation]:
    """An image by digest stands behind the engine, or a process where policy lets it and the pin says so."""
    engine = case.engine
    if engine is None or engine.runtime == "image":
        return
    if not case.facts.policy.allow_runtime_process:
        yield Violation(
            rule=IMAGE_BY_DIGEST,
            severity=Enforcement.MANDATORY,
            pointer="/spec/engine/runtime",
            message=f"runtime 'process' is not allowed in environment '{case.facts.environment}'",
            remedy="take runtime 'image' with an image by digest",
            evidence={"environment": case.facts.environment, "runtime": engine.runtime},
        )
    pin = case.manifest.pin if isinstance(case.manifest, PinnedManifest) else None
    if pin is not None and pin.runtime != "process" and engine.image is None and not case.is_canary:
        yield Violation(
            rule=IMAGE_BY_DIGEST,
            severity=Enforcement.MANDATORY,
            pointer="/pin/runtime",
            message="the pin says 'image', but the engine runs as a process and no image stands behind it",
            remedy="run 'enginehouse pin' on the written manifest again",
        )


def image_recorded(case: Case) -> Iterator[Violation]:
    """The digest is the one that people recorded for this engine and version."""
    image = case.engine.image if case.engine else None
    release = case.release
    if image is None or release is None:
        return
    recorded = tuple(item for item in case.facts.images if _is_of(item, release))
    if any(item.digest == image for item in recorded):
        return
    if recorded:
        yield _other_digest(case, release, image, recorded)
    else:
        yield _unrecorded(case, release, image)


def _is_of(item: ImageRecord, release: Release) -> bool:
    if item.engine is not release.engine:
        return False
    if item.version == release.raw:
        return True
    return release.version is not None and parse_version(item.version) == release.version


def _other_digest(case: Case, release: Release, image: str, recorded: tuple[ImageRecord, ...]) -> Violation:
    known = ", ".join(item.digest for item in recorded)
    return Violation(
        rule=IMAGE_RECORDED,
        severity=Enforcement.MANDATORY,
        pointer="/spec/engine/image",
        message=f"the image {image} is not the one recorded for {release}, which is {known}{_whose(case, image)}",
        remedy=f"take {recorded[0].digest}, or correct images.yaml of environment '{case.facts.environment}'",
        evidence={"image": image, "recorded": known, "recorded_by": ", ".join(item.who for item in recorded)},
    )


def _unrecorded(case: Case, release: Release, image: str) -> Violation:
    """Refused unless the environment runs engines without any image anyway."""
    is_lenient = case.facts.policy.allow_runtime_process
    return Violation(
        rule=IMAGE_RECORDED,
        severity=Enforcement.ADVISORY if is_lenient else Enforcement.MANDATORY,
        pointer="/spec/engine/image",
        message=f"no image of {release} is recorded, so nobody answers for {image}{_whose(case, image)}",
        remedy=f"record engine, version, platform, digest, date and who in images.yaml of environment "
        f"'{case.facts.environment}'",
        evidence={"image": image},
    )


def _whose(case: Case, image: str) -> str:
    """What the digest is recorded for, when it belongs to something else."""
    owner = next((item for item in case.facts.images if item.digest == image), None)
    return f"; it is recorded for {owner.engine} {owner.version}" if owner else ""
