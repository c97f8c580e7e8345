"""A verdict on one version: its document, its rows, and what people read below them."""

from cli.advisory_card import rated
from cli.facts_at_hand import where_from
from cli.output import say
from fleet.facts import AdvisoryData
from fleet.matching import Match, Result
from fleet.nearest import did_you_mean
from fleet.severity import Severity
from fleet.verdict import Verdict

Row = dict[str, object]


def packages(data: AdvisoryData) -> list[str]:
    """Every package that an advisory names."""
    return sorted({package for advisory in data.advisories for package in advisory.packages})


def origin(data: AdvisoryData) -> dict[str, object]:
    """Where an answer comes from."""
    return {"facts": {"digest": data.digest, "as_of": data.as_of, "source": data.source}}


def verdict_json(verdict: Verdict, data: AdvisoryData, take: str | None) -> dict[str, object]:
    """The verdict as JSON; ``take`` is the version to take, or ``None``."""
    return {
        "engine": verdict.package,
        "version": verdict.version,
        "published": verdict.published,
        "verdict": str(verdict.result),
        "reason": verdict.reason,
        "recommended": take,
        "matches": [_match_json(match) for match in verdict.matches],
        "suppressed": [_match_json(match) for match in verdict.suppressed],
        "quarantined": [item.model_dump(mode="json") for item in data.quarantined],
        **origin(data),
    }


def _match_json(match: Match) -> dict[str, object]:
    advisory = match.advisory
    return {
        "id": advisory.id,
        "aliases": list(advisory.aliases),
        "severity": word(match.severity),
        "paths": sorted(match.paths),
        "result": str(match.result),
        "reason": match.reason,
        "fixed": list(match.fixed),
        "is_malware": advisory.is_malware,
        "incomplete_fix_of": list(advisory.incomplete_fix_of),
        "withdrawn_by": list(advisory.withdrawn_by),
        "sources": [
            {"id": name, "result": str(answer.result), "reason": answer.reason} for name, answer in match.by_source
        ],
        "references": [reference.url for record in advisory.records for reference in record.references],
    }


def word(severity: Severity | None) -> str | None:
    """A rating for scripts."""
    return None if severity is None else str(severity)


def match_row(match: Match) -> dict[str, object]:
    """A match as a row of the table."""
    return {
        "id": match.advisory.id,
        "result": str(match.result),
        "severity": rated(match.severity),
        "paths": sorted(match.paths) or "every path",
        "fixed": list(match.fixed),
        "reason": match.reason + (" (sources disagree)" if match.sources_disagree else ""),
    }


def say_verdict(verdict: Verdict, data: AdvisoryData, take: str | None) -> None:
    """The verdict, the way out of it, and what it stands on."""
    say(f"verdict: {verdict.result} ({verdict.reason})")
    if verdict.result is Result.AFFECTED:
        say(_way_out(verdict, take))
    if not data.advisories_for(verdict.package):
        say(f"{verdict.package} is in no record{did_you_mean(verdict.package, packages(data))}")
    if verdict.published is False:
        say(_not_published(verdict, data))
    if verdict.suppressed:
        ids = ", ".join(match.advisory.id for match in verdict.suppressed)
        say(f"not counted, their code paths are off: {ids}")
    say(where_from(data))


def _way_out(verdict: Verdict, take: str | None) -> str:
    if take is None:
        return f"no published version of {verdict.package} is without a refusing record"
    if take == verdict.version:
        return f"{take} is the newest published version that the default policy accepts"
    return f"take {verdict.package}=={take}: the newest published version without a refusing record"


def _not_published(verdict: Verdict, data: AdvisoryData) -> str:
    from fleet.versions import parse_version

    published, version = data.published_versions(verdict.package), parse_version(verdict.version)
    near = published.near(version) if published and version else ()
    beside = f"; near it: {', '.join(map(str, near))}" if near else ""
    return f"{verdict.package} {verdict.version} is not published{beside}"
