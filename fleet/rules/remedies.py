"""What would be right instead of a refused version: the published version to take, and the fix of a record."""

from fleet.matching import Match
from fleet.rules.case import Case
from fleet.versions import parse_version


def acceptable_version(case: Case) -> str:
    """The newest published version that no record refuses on the exposed paths, as a sentence."""
    release = case.release
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
    fixes = [fix for fix in match.fixed if current is None or (parse_version(fix) or current) > current]
    ends = f"fixed in {fixes[0]}; " if fixes else "no source names a fix; "
    return ends + acceptable_version(case)
