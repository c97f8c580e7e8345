"""Rules about the engine: it is offered, its version exists, and what the manifest asks is in that version."""

from collections.abc import Iterator

from fleet.nearest import did_you_mean
from fleet.rules.case import Case, Release
from fleet.rules.remedies import acceptable_version
from fleet.violation import Enforcement, Violation

ENGINE_OFFERED = "engine-offered"
VERSION_PUBLISHED = "version-published"


def engine_offered(case: Case) -> Iterator[Violation]:
    """The catalogue knows the engine and offers it."""
    name = case.engine.name if case.engine else None
    if name is None:
        return
    known = case.catalogue.names
    offered = [other for other in known if case.catalogue.refusal(other) is None]
    if name not in known:
        reason = f"the catalogue does not know {name}{did_you_mean(name, known)}"
    else:
        reason = case.catalogue.refusal(name) or ""
    if reason:
        yield Violation(
            rule=ENGINE_OFFERED,
            severity=Enforcement.MANDATORY,
            pointer="/spec/engine/name",
            message=f"{name} is not offered: {reason}",
            remedy=f"take one of {', '.join(offered)}" if offered else "the catalogue offers no engine",
            evidence={"engine": name, "reason": reason},
        )


def version_published(case: Case) -> Iterator[Violation]:
    """The version was published; where the data has no list of versions that is said and nothing more."""
    release = case.release
    if release is None:
        return
    published = case.facts.data.published_versions(release.package)
    if published is None:
        yield Violation(
            rule=VERSION_PUBLISHED,
            severity=Enforcement.ADVISORY,
            pointer="/spec/engine/version",
            message=f"unknown: the data has no published versions of {release.package}, so {release} is not checked",
            remedy=f"load the published versions of {release.package}",
            evidence={"package": release.package, "version": release.raw},
        )
    elif release.version is None:
        yield _unpublished(case, release, f"'{release.raw}' is not a version of {release.engine}", near="")
    elif not published.has(release.version):
        near = ", ".join(map(str, published.near(release.version)))
        tail = f"; near it: {near}" if near else "; nothing is published"
        yield _unpublished(case, release, f"{release} is not published{tail}", near=near)


def _unpublished(case: Case, release: Release, message: str, *, near: str) -> Violation:
    retrieved = case.facts.data.published_retrieved
    return Violation(
        rule=VERSION_PUBLISHED,
        severity=Enforcement.MANDATORY,
        pointer="/spec/engine/version",
        message=message,
        remedy=acceptable_version(case),
        evidence={"package": release.package, "version": release.raw, "near": near, "index_read_on": retrieved},
    )
