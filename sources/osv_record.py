"""From an OSV record to the kernel's: facts are taken over, prose is read for two questions and dropped."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleet.advisory import Record
from fleet.severity import Severity, highest
from sources.fix_links import incomplete_fix_ids
from sources.osv import OsvAffected, OsvRange, OsvRecord, OsvSeverity
from sources.package_names import PackageKey, is_ours, package_key
from sources.ratings import rating

_MALWARE = re.compile(
    r"\b(?:contain|publish|includ|embed|distribut|inject|ship)\w*\b.{0,60}\bmalware\b"
    r"|\bmalware (?:in|inside|found|detected|published|uploaded)\b"
    r"|\b(?:malicious|backdoored|compromised) (?:release|version)s?\b"
    r"|\b(?:backdoored|compromised) (?:package|wheel|upload)s?\b"
    r"|(?<!\ba )(?<!\bany )(?<!via )(?<!through )(?<!by )(?<!installing )(?<!loading )"
    r"\bmalicious (?:package|wheel|upload)s?\b"
    r"|\bmalicious code (?:in|inside|found|inserted|injected|published|embedded)\b|\bembedded malicious code\b",
    re.IGNORECASE,
)
_EMBEDDED_MALICIOUS_CODE = "CWE-506"


@dataclass(frozen=True, slots=True)
class Converted:
    """A record and what was left out of it."""

    record: Record
    unknown_keys: int
    ratings_ignored: int
    """Vectors and words that mean no severity."""
    entries_ignored: int
    """Entries about packages of other ecosystems."""


@dataclass(frozen=True, slots=True)
class _Rated:
    severity: Severity | None
    ignored: int


def convert(osv: OsvRecord) -> Converted:
    """The kernel's record, validated once as a whole (part by part takes twice as long)."""
    entries = osv.affected or ()
    kept = [(key, entry) for key, entry in ((_key(entry), entry) for entry in entries) if is_ours(key)]
    own = _rate(osv.severity, [osv.database_specific.get("severity")])
    per_entry = [_rate(entry.severity, _entry_words(entry)) for _, entry in kept]
    is_partial = osv.database_specific.get("partial") is True
    affected = tuple(
        _affected(key, entry, rated.severity, is_partial=is_partial)
        for (key, entry), rated in zip(kept, per_entry, strict=True)
        if key is not None
    )
    return Converted(
        record=Record.model_validate(_record(osv, own.severity) | {"affected": affected}),
        unknown_keys=osv.unknown_keys(),
        ratings_ignored=own.ignored + sum(rated.ignored for rated in per_entry),
        entries_ignored=len(entries) - len(kept),
    )


def _record(osv: OsvRecord, severity: Severity | None) -> dict[str, object]:
    ids = frozenset((osv.id, *osv.aliases))
    return {
        "id": osv.id,
        "aliases": _distinct(osv.aliases, without=osv.id),
        "related": _distinct((*osv.related, *osv.upstream), without=osv.id),
        "incomplete_fix_of": incomplete_fix_ids(f"{osv.summary or ''}\n{osv.details or ''}", ids),
        "published": osv.published,
        "modified": osv.modified,
        "withdrawn": osv.withdrawn,
        "is_malware": _is_malware(osv),
        "severity": severity,
        "references": tuple({"type": link.type or "WEB", "url": link.url} for link in osv.references),
    }


def _distinct(names: Iterable[str], *, without: str) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name != without)


def _key(entry: OsvAffected) -> PackageKey | None:
    repositories = [item.repo for item in entry.ranges]
    if entry.package is None:
        return package_key(None, None, None, repositories)
    return package_key(entry.package.ecosystem, entry.package.name, entry.package.purl, repositories)


def _affected(key: PackageKey, entry: OsvAffected, severity: Severity | None, *, is_partial: bool) -> dict[str, object]:
    return {
        "ecosystem": key[0],
        "package": key[1],
        "ranges": tuple(_range(item) for item in entry.ranges),
        "versions": entry.versions,
        "is_partial": is_partial or entry.database_specific.get("partial") is True,
        "severity": severity,
    }


def _range(osv: OsvRange) -> dict[str, object]:
    return {"type": osv.type, "events": tuple({"kind": kind, "version": version} for kind, version in osv.bounds())}


def _entry_words(entry: OsvAffected) -> list[Any]:
    return [entry.ecosystem_specific.get("severity"), entry.database_specific.get("severity")]


def _rate(given: Iterable[OsvSeverity], words: Iterable[Any]) -> _Rated:
    """The highest of all ratings that can be read; what is not text was never a rating."""
    texts = [item.score for item in given] + [word for word in words if isinstance(word, str)]
    read = [rating(text) for text in texts]
    return _Rated(severity=highest(read), ignored=sum(severity is None for severity in read))


def _is_malware(osv: OsvRecord) -> bool:
    if any(name.startswith("MAL-") for name in (osv.id, *osv.aliases)):
        return True
    return _EMBEDDED_MALICIOUS_CODE in _weaknesses(osv) or bool(_MALWARE.search(osv.summary or ""))


def _weaknesses(osv: OsvRecord) -> frozenset[str]:
    """CWE ids from the two places where producers put them."""
    named = _texts(osv.database_specific.get("cwe_ids"))
    for entry in osv.affected or ():
        cwes = entry.database_specific.get("cwes")
        for item in cwes if isinstance(cwes, list) else ():
            named += _texts([item.get("cweId")] if isinstance(item, dict) else [])
    return frozenset(named)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
