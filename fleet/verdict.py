"""One engine version against the advisories: the verdict that people ask for first."""

from dataclasses import dataclass

from fleet.codepath import ALWAYS_EXPOSED, CodePath
from fleet.facts import AdvisoryData
from fleet.matching import Match, Result
from fleet.versions import parse_version


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the data says about a version; ``result`` is the strictest of all reachable matches."""

    package: str
    version: str
    published: bool | None
    """``None`` when the data does not know the package's versions."""
    result: Result
    reason: str
    matches: tuple[Match, ...]
    """Every match that is not ``not_affected`` and can be reached, worst first."""
    suppressed: tuple[Match, ...]
    """Matches whose confirmed code paths are all outside the given ones."""


def check(data: AdvisoryData, package: str, version: str, paths: frozenset[CodePath] | None = None) -> Verdict:
    """Judge a version; ``paths`` are those switched on besides the always exposed ones, ``None`` = all."""
    found = data.live_matches(package, version)
    reachable = [match for match in found if is_reachable(match, paths)]
    suppressed = [match for match in found if not is_reachable(match, paths)]
    result, reason = _verdict(data, package, version, reachable)
    parsed = parse_version(version)
    return Verdict(
        package=package,
        version=version,
        published=data.is_published(package, parsed) if parsed else _spelling_is_published(data, package),
        result=result,
        reason=reason,
        matches=tuple(reachable),
        suppressed=tuple(suppressed),
    )


def is_reachable(match: Match, paths: frozenset[CodePath] | None) -> bool:
    """Whether a match counts for the given paths: malware and unlabelled records count for every path."""
    if paths is None or match.advisory.is_malware or not match.paths:
        return True
    return not match.paths.isdisjoint(paths | ALWAYS_EXPOSED)


def _verdict(data: AdvisoryData, package: str, version: str, reachable: list[Match]) -> tuple[Result, str]:
    worst = max(
        (match.result for match in reachable), key=lambda result: result.strictness, default=Result.NOT_AFFECTED
    )
    unknown = data.why_unknown(package)
    if unknown and worst.strictness <= Result.UNKNOWN.strictness:
        return Result.UNKNOWN, f"unknown: {unknown}"
    if worst is Result.NOT_AFFECTED and parse_version(version) is None:
        return Result.UNKNOWN, f"'{version}' is not a version that can be compared"
    count = sum(match.result is worst for match in reachable)
    return worst, f"{count} matching" if count else "no record says that it is affected"


def _spelling_is_published(data: AdvisoryData, package: str) -> bool | None:
    return None if data.published_versions(package) is None else False
