"""The facts of a match that decided, as they are shown with a violation."""

from fleet.codepath import CLOSABLE_AT_THE_DOOR, CodePath
from fleet.matching import Match
from fleet.rules.case import Case

DOOR_CLOSES = "door_closes"
"""The paths by which a match is reached, where the gateway can refuse every request that reaches them."""


def of_match(case: Case, match: Match) -> dict[str, str]:
    """Ids, rating, result with its reason, fixes, paths and who disagrees; never the prose of a record."""
    version = case.release.raw if case.release else ""
    key = ("evidence", match.advisory.id, match.package, version)
    shown = case.facts.remember(key, lambda: _of_records(match))
    told = {"exposed_by": exposed_by(case, match), DOOR_CLOSES: ", ".join(closed_by_the_door(case, match))}
    return shown | {key: value for key, value in told.items() if value}


def _of_records(match: Match) -> dict[str, str]:
    """What does not depend on the manifest."""
    advisory = match.advisory
    shown = {
        "id": advisory.id,
        "aliases": ", ".join(advisory.aliases),
        "severity": rating(match),
        "result": match.result.value,
        "reason": match.reason,
        "fixed": ", ".join(match.fixed),
        "paths": ", ".join(sorted(match.paths)) or "every path",
        "reference": next((item.url for record in advisory.records for item in record.references), ""),
        "sources": _sources(match) if match.sources_disagree else "",
        "withdrawn_by": ", ".join(advisory.withdrawn_by),
        "incomplete_fix_of": ", ".join(advisory.incomplete_fix_of),
    }
    return {key: value for key, value in shown.items() if value}


def rating(match: Match) -> str:
    """The severity as a word; a missing one is said to be missing."""
    return match.severity.value if match.severity else "unrated"


def exposed_by(case: Case, match: Match) -> str:
    """Which of the record's paths are switched on, and by what."""
    reasons = case.exposure.reasons
    return "; ".join(f"{path}: {reasons[path]}" for path in sorted(match.paths) if path in reasons)


def _sources(match: Match) -> str:
    return "; ".join(f"{name}: {answer.result.value}, {answer.reason}" for name, answer in match.by_source)


def closed_by_the_door(case: Case, match: Match) -> tuple[CodePath, ...]:
    """The paths that the gateway has to close so that nothing reaches the defect; empty = it can't close them all."""
    reached = match.paths & case.exposure.paths
    is_enough = reached <= CLOSABLE_AT_THE_DOOR and not match.advisory.is_malware
    return tuple(sorted(reached)) if is_enough else ()
