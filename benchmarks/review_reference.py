"""What the rules mean, in plain loops: shares no matching code with them, keeps nothing, looks at every record."""

from collections.abc import Iterator
from datetime import date, timedelta

from packaging.version import InvalidVersion, Version

from engines.catalogue import Catalogue
from fleet.advisory import Advisory, AffectedPackage, AffectedRange, Event
from fleet.facts import Facts
from fleet.manifest import PinnedManifest
from fleet.waiver import Waiver

Said = tuple[str, str, str, str | None]
"""Rule, severity, pointer, advisory."""
RANKS = ("not_affected", "unknown", "no_fix_known", "affected")
WORDS = ("none", "low", "medium", "high", "critical")


def reference(manifest: PinnedManifest, facts: Facts, catalogue: Catalogue) -> Iterator[Said]:
    """Everything that the load can break, said again."""
    engine = manifest.spec.engine
    if engine is None or engine.name is None or engine.version is None:
        return
    package = catalogue.package(engine.name)
    own = [waiver for waiver in facts.waivers if waiver.identity == manifest.identity]
    published = facts.data.published[package]
    yield from [] if engine.version in published else [("version-published", "mandatory", "/spec/engine/version", None)]
    known = [
        item for item in facts.data.advisories if any(e.package == package for r in item.records for e in r.affected)
    ]
    if not known:
        yield "advisory-data", "advisory", "/spec/engine/name", None
    on = catalogue.exposure(manifest, engine.name, engine.version).paths
    for advisory in known:
        yield from of_advisory(advisory, package, engine.version, on, facts, own)
    for problem in catalogue.flag_problems(manifest, engine.name, engine.version):
        yield "flags-valid", "mandatory", f"/spec/engine/flags/{problem.flag}", None
    for item in catalogue.unsupported(manifest, engine.name, engine.version):
        yield "supported", "mandatory", item.pointer, None
    if manifest.spec.features.trust_remote_code:
        holds = any(waiver.rule == "remote-code" and in_time(waiver.expires, facts) for waiver in own)
        yield "remote-code", "advisory" if holds else "mandatory", "/spec/features/trust_remote_code", None
    if manifest.spec.hardware and manifest.spec.hardware.gpus != manifest.spec.parallelism.tensor:
        yield "gpus-match-plan", "mandatory", "/spec/hardware/gpus", None
    yield from of_exceptions(own, known, package, facts)


def of_exceptions(own: list[Waiver], known: list[Advisory], package: str, facts: Facts) -> Iterator[Said]:
    """Waivers and triage that do nothing: out of time, or about an advisory of another package."""
    for waiver in own:
        if not in_time(waiver.expires, facts):
            yield "waiver-valid", "advisory", "", waiver.advisory
        if waiver.advisory and not any(waiver.advisory in names(advisory) for advisory in known):
            yield "waiver-valid", "advisory", "", waiver.advisory
    for entry in facts.triage:
        if entry.package == package and not in_time(entry.expires, facts):
            yield "triage-valid", "advisory", "/spec/engine/version", entry.advisory


def of_advisory(
    advisory: Advisory, package: str, raw: str, on: frozenset[str], facts: Facts, own: list[Waiver]
) -> Iterator[Said]:
    """One advisory against one version; the load holds no malware."""
    result = judged(advisory, package, raw)
    labels = [label for name, label in advisory.labels if name == package]
    paths = {path for label in labels for path in label.paths} if all(label.is_confirmed for label in labels) else set()
    if result == "not_affected" or (paths and not paths & on):
        return
    ids, rating = names(advisory), rated(advisory, package)
    word = [e for e in facts.triage if e.package == package and e.advisory in ids and in_time(e.expires, facts)]
    if result == "affected":
        refuses = rating >= WORDS.index("medium") if rating >= 0 else not word
    elif word and min(word, key=lambda entry: entry.name).status != "accepted":
        return
    else:
        refuses = not word and rating >= WORDS.index("high")
    waived = any(waiver.advisory in ids and in_time(waiver.expires, facts) for waiver in own)
    rule = "advisory-affected" if result == "affected" else "advisory-residual"
    yield rule, "mandatory" if refuses and not waived else "advisory", "/spec/engine/version", first_name(ids)


def in_time(end: date, facts: Facts) -> bool:
    """Between today and 90 days from now."""
    return facts.today <= end <= facts.today + timedelta(days=90)


def names(advisory: Advisory) -> set[str]:
    """Every id and alias."""
    return {name for record in advisory.records for name in (record.id, *record.aliases)}


def first_name(ids: set[str]) -> str:
    """CVE before GHSA before PYSEC before MAL before the rest."""
    order = ["CVE-", "GHSA-", "PYSEC-", "MAL-", ""]
    return min(ids, key=lambda name: (next(i for i, prefix in enumerate(order) if name.startswith(prefix)), name))


def rated(advisory: Advisory, package: str) -> int:
    """The highest rating of any source; -1 for none."""
    found = [record.severity for record in advisory.records]
    found += [entry.severity for record in advisory.records for entry in record.affected if entry.package == package]
    return max((WORDS.index(item) for item in found if item), default=-1)


def judged(advisory: Advisory, package: str, raw: str) -> str:
    """The strictest answer of the records that stand."""
    live = [record for record in advisory.records if not record.withdrawn]
    entries = [entry for record in live for entry in record.affected if entry.package == package]
    ordered = [r for entry in entries for r in entry.ranges if r.type != "GIT"]
    fixes = [read(event.version) for r in ordered for event in r.events if event.kind == "fixed"]
    answers = [of_entry(entry, raw, [fix for fix in fixes if fix]) for entry in entries]
    return max(answers, key=RANKS.index, default="not_affected")


def of_entry(entry: AffectedPackage, raw: str, fixes: list[Version]) -> str:
    """The list of versions, then the ranges."""
    version = read(raw)
    if version is None:
        return "unknown"
    listed = [item for item in map(read, entry.versions) if item is not None]
    if version in listed:
        return "affected"
    ordered = [item for item in entry.ranges if item.type != "GIT"]
    if ordered:
        return max((of_range(item, version, fixes) for item in ordered), key=RANKS.index)
    if not entry.versions or entry.is_partial:
        return "unknown"
    ends = [event.kind for item in entry.ranges for event in item.events if event.kind != "introduced"]
    is_above = not listed or version > max(listed)
    return "unknown" if entry.ranges and not ends and is_above else "not_affected"


def of_range(affected: AffectedRange, version: Version, fixes: list[Version]) -> str:
    """The OSV schema's loop over sorted events, and what lies above a last affected version."""
    bounds = [(Version("0.dev0") if event.version == "0" else read(event.version), event) for event in affected.events]
    if any(bound is None for bound, _ in bounds):
        return "unknown"
    order = {"fixed": 0, "introduced": 1, "last_affected": 2, "limit": 3}
    events: list[tuple[Version, Event]] = sorted(
        ((bound, event) for bound, event in bounds if bound is not None),
        key=lambda item: (item[0], order[item[1].kind]),
    )
    is_inside = all(event.kind != "introduced" for _, event in events)
    for bound, event in events:
        if event.kind == "introduced" and version >= bound:
            is_inside = True
        if (event.kind == "fixed" and version >= bound) or (event.kind == "last_affected" and version > bound):
            is_inside = False
    if is_inside:
        return "affected"
    passed = [bound for bound, event in events if event.kind == "last_affected" and bound < version]
    open_end = any(not any(bound < fix <= version for fix in fixes) for bound in passed)
    return "no_fix_known" if open_end else "not_affected"


def read(text: str) -> Version | None:
    """A version without its local part."""
    try:
        return Version(text.strip().lstrip("vr").replace(" ", "").partition("+")[0])
    except InvalidVersion:
        return None
