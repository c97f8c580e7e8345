"""Advisories and policy turned into pins: from which version on is an engine acceptable on a code path?

The floor of (engine, path) is the smallest published version such that it and every newer published final version are
acceptable. Where none is, the path is closed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from fleet.codepath import KNOWN_PATHS, CodePath
from fleet.facts import AdvisoryData
from fleet.matching import Match, Result
from fleet.policy import Policy
from fleet.verdict import is_reachable
from fleet.versions import is_final


@dataclass(frozen=True, slots=True)
class Floor:
    """The smallest acceptable version; every newer published final one is acceptable too."""

    version: str


@dataclass(frozen=True, slots=True)
class Closed:
    """No published version is acceptable from there on."""

    reason: str


Limit = Floor | Closed


@dataclass(frozen=True, slots=True)
class PathPin:
    """The limit of one code path and the records that decided it."""

    path: CodePath
    limit: Limit
    decided_by: tuple[str, ...]
    """Ids of the records that refuse the newest refused final version: what stands below the floor."""


@dataclass(frozen=True, slots=True)
class EnginePins:
    """All pins of one package."""

    package: str
    paths: tuple[PathPin, ...]
    recommended: str | None
    """The newest published version without a refusing match on any path: a final one where there is one."""
    reason: str
    """Why there is no recommendation, or how it was found."""


def refuses_version(match: Match, policy: Policy) -> bool:
    """Whether a match refuses by itself: malware, or affected with a rating from the policy's level on.

    A missing rating refuses only where the policy wants a triage entry for it: until somebody has looked, it counts.
    """
    if match.result is not Result.AFFECTED:
        return False
    if match.advisory.is_malware:
        return True
    if match.severity is None:
        return policy.unrated_affected_needs_triage
    return match.severity.rank >= policy.refuse_affected_from.rank


def refusing_matches(
    data: AdvisoryData, package: str, version: str, policy: Policy, paths: frozenset[CodePath] | None
) -> tuple[Match, ...]:
    """The matches that refuse a version when these paths are switched on (``None`` = all), worst first."""
    found = (match for match in data.live_matches(package, version) if refuses_version(match, policy))
    return tuple(match for match in found if is_reachable(match, paths))


def _is_refused(
    data: AdvisoryData, package: str, version: str, policy: Policy, paths: frozenset[CodePath] | None
) -> bool:
    live = data.live_matches(package, version)
    return any(refuses_version(match, policy) and is_reachable(match, paths) for match in live)


def engine_pins(data: AdvisoryData, package: str, policy: Policy) -> EnginePins:
    """Floors and closed paths of a package, and the version to take when every path is switched on."""
    published = data.published_versions(package)
    if published is None:
        reason = f"no published versions of {package} in the data"
        return EnginePins(package, tuple(PathPin(path, Closed(reason), ()) for path in KNOWN_PATHS), None, reason)
    unknown = data.why_unknown(package)
    if unknown:
        reason = f"unknown: {unknown}"
        return EnginePins(package, tuple(PathPin(path, Closed(reason), ()) for path in KNOWN_PATHS), None, reason)
    versions = published.ascending
    pins = tuple(_path_pin(data, package, policy, versions, path) for path in code_paths(data, package))
    recommended = newest_acceptable(data, package, policy, paths=None)
    reason = (
        "newest published version without a refusing record" if recommended else "every published version is refused"
    )
    return EnginePins(package, pins, recommended, reason)


def newest_acceptable(
    data: AdvisoryData, package: str, policy: Policy, *, paths: frozenset[CodePath] | None
) -> str | None:
    """The newest published version that nothing refuses; a pre-release only when no final version is acceptable."""
    published = data.published_versions(package)
    names = map(str, published.newest_first if published else ())
    return next((name for name in names if not _is_refused(data, package, name, policy, paths)), None)


def code_paths(data: AdvisoryData, package: str) -> tuple[CodePath, ...]:
    """The known paths and any further word that a label of this package uses."""
    labelled = {path for advisory in data.advisories_for(package) for path in advisory.paths(package)}
    return (*KNOWN_PATHS, *sorted(labelled - set(KNOWN_PATHS)))


def _path_pin(
    data: AdvisoryData, package: str, policy: Policy, ascending: Sequence[Version], path: CodePath
) -> PathPin:
    """Walk down from the newest version until a final one is refused."""
    floor: Version | None = None
    for version in reversed(ascending):
        refusing = refusing_matches(data, package, str(version), policy, frozenset({path}))
        if not refusing:
            floor = floor if version.is_devrelease else version
        elif is_final(version):
            ids = tuple(match.advisory.id for match in refusing)
            return PathPin(path, _limit(floor, version, ids), ids)
    return PathPin(path, _limit(floor, None, ()), ())


def _limit(floor: Version | None, refused: Version | None, ids: Sequence[str]) -> Limit:
    if floor is not None:
        return Floor(str(floor))
    return Closed(
        f"the newest final version {refused} is refused by {', '.join(ids)}" if refused else "no release is published"
    )
