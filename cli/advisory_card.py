"""One advisory in full: what each source says, and which published versions it hits."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from fleet.advisory import Advisory, AffectedPackage, AffectedRange, Record
from fleet.facts import AdvisoryData
from fleet.matching import Result, Subject
from fleet.nearest import nearest
from fleet.severity import Severity, highest

UNRATED = "unrated"
"""What people read where no source rates a record."""
NEAREST = 3

Row = dict[str, object]


def rated(severity: Severity | None) -> str:
    """A rating for people."""
    return UNRATED if severity is None else str(severity)


def find(data: AdvisoryData, wanted: str) -> Advisory | None:
    """The advisory of an id or an alias, however its letters are cased."""
    name = wanted.strip().casefold()
    return next((item for item in data.advisories if any(known.casefold() == name for known in item.all_ids)), None)


def nearest_ids(data: AdvisoryData, wanted: str) -> list[str]:
    """The ids and aliases that a mistyped one is nearest to, the nearest first."""
    known = {name for item in data.advisories for name in item.all_ids}
    found: list[str] = []
    while len(found) < NEAREST and (close := nearest(wanted.strip().upper(), sorted(known - set(found)))):
        found.append(close)
    return found


def document(advisory: Advisory, data: AdvisoryData) -> Row:
    """The advisory as JSON."""
    ratings = map(advisory.severity, sorted(advisory.packages))
    severity = highest(ratings)
    return {
        "id": advisory.id,
        "aliases": list(advisory.aliases),
        "severity": None if severity is None else str(severity),
        "is_malware": advisory.is_malware,
        "is_withdrawn": advisory.is_withdrawn,
        "withdrawn_by": list(advisory.withdrawn_by),
        "incomplete_fix_of": list(advisory.incomplete_fix_of),
        "packages": [_package(advisory, package, data) for package in sorted(advisory.packages)],
        "sources": [record.model_dump(mode="json", exclude={"aliases"}) for record in advisory.records],
    }


def _package(advisory: Advisory, package: str, data: AdvisoryData) -> Row:
    severity = advisory.severity(package)
    labels = [label for name, label in advisory.labels if name == package]
    results = _results(advisory, package, data)
    return {
        "package": package,
        "severity": None if severity is None else str(severity),
        "paths": sorted(advisory.paths(package)),
        "labels": [label.model_dump(mode="json") for label in labels],
        "versions": results and {str(result): [v for v, said in results if said is result] for result in Result},
    }


def _results(advisory: Advisory, package: str, data: AdvisoryData) -> list[tuple[str, Result]] | None:
    """What the advisory says of each published version, ascending; ``None`` when the data knows no versions."""
    published = data.published_versions(package)
    if published is None:
        return None
    subject = Subject.of(advisory, package)
    return [(str(v), subject.match(v, str(v)).result) for v in published.ascending]


def source_rows(advisory: Advisory) -> list[Row]:
    """Who rates it how, and when it was changed last."""
    return [
        {
            "source": record.id,
            "severity": rated(highest([record.severity, *(entry.severity for entry in record.affected)])),
            "published": _day(record.published),
            "modified": _day(record.modified),
            "withdrawn": _day(record.withdrawn),
        }
        for record in advisory.records
    ]


def _day(moment: str | None) -> str | None:
    return moment and moment[:10]


def range_rows(advisory: Advisory) -> list[Row]:
    """What each source says about versions."""
    return [row for record in advisory.records for entry in record.affected for row in _ranges(record, entry)]


def _ranges(record: Record, entry: AffectedPackage) -> Iterator[Row]:
    base: Row = {"source": record.id, "package": entry.package}
    for item in entry.ranges:
        yield base | {"range": _bounds(item)}
    if entry.versions:
        partly = " (an excerpt)" if entry.is_partial else ""
        yield base | {"range": f"{len(entry.versions)} versions listed{partly}"}
    if not entry.ranges and not entry.versions:
        yield base | {"range": "neither a range nor versions"}


def _bounds(item: AffectedRange) -> str:
    events = ", ".join(f"{event.kind.replace('_', ' ')} {event.version}" for event in item.events)
    return f"{events} (commits)" if item.type == "GIT" else events


def package_rows(advisory: Advisory, data: AdvisoryData) -> list[Row]:
    """Per package and answer: the code paths, and the published versions as spans."""
    return [row for package in sorted(advisory.packages) for row in _spans(advisory, package, data)]


def _spans(advisory: Advisory, package: str, data: AdvisoryData) -> Iterator[Row]:
    base: Row = {"package": package, "paths": sorted(advisory.paths(package)) or "every path"}
    results = _results(advisory, package, data)
    if not results:
        yield base | {"result": None, "published_versions": "none known in the data"}
        return
    runs = [(result, [name for name, _ in run]) for result, run in groupby(results, key=lambda item: item[1])]
    for result in Result:
        spans = [_span(names) for said, names in runs if said is result]
        if spans:
            yield base | {"result": str(result), "published_versions": spans}


def _span(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"


def links(advisory: Advisory) -> Iterable[str]:
    """Every reference once, in the order of the sources."""
    return dict.fromkeys(reference.url for record in advisory.records for reference in record.references)
