"""What would be right instead of a refused version: the published version to take, and the fix of a record."""

from packaging.version import Version

from fleet.matching import Match
from fleet.rules.case import Case, Release
from fleet.versions import parse_version


def acceptable_version(case: Case) -> str:
    """The newest published version that no record refuses on the exposed paths, as a sentence."""
    release = case.release
    key = ("acceptable version", release and release.title, case.acceptable_version)
    return case.facts.remember(key, lambda: _sentence(case, release))


def _sentence(case: Case, release: Release | None) -> str:
    if release is None or case.facts.data.published_versions(release.package) is None:
        return "take a version that is published"
    if case.acceptable_version is None:
        return f"no published version of {release.engine} is acceptable on the exposed paths; take another engine"
    return (
        f"take {release.engine} {case.acceptable_version}, the newest published version that no record refuses on "
        "these paths"
    )


def beyond(case: Case, match: Match) -> str:
    """Where a record ends for this version, and the version to take."""
    release = case.release
    current = release.version if release else None
    key = ("end", match.advisory.id, match.package, release and release.raw)
    return case.facts.remember(key, lambda: _end(match, current)) + acceptable_version(case)


def _end(match: Match, current: Version | None) -> str:
    fixes = [fix for fix in match.fixed if current is None or (parse_version(fix) or current) > current]
    return f"fixed in {fixes[0]}; " if fixes else "no source names a fix; "
