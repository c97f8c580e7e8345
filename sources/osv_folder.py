"""Folders, zips and files of OSV JSON become advisory data; a bad record is quarantined and the rest goes in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pydantic_core import from_json

from fleet.advisory import Label, Record
from fleet.facts import AdvisoryData, Quarantined
from sources import snapshot
from sources.assemble import assemble
from sources.broken_record import quarantine
from sources.companions import Published, is_labels, is_versions, read_labels, read_versions
from sources.errors import BadRecord
from sources.json_files import Document, documents, readable_name
from sources.osv import read_document
from sources.osv_record import convert

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Scan:
    """What was found below some paths, before it is merged."""

    records: list[Record] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    labels: dict[str, Label] = field(default_factory=dict)
    published: Published | None = None
    unknown_keys: int = 0
    ratings_ignored: int = 0
    """Ratings that are neither a vector nor a known word."""
    entries_ignored: int = 0
    """Entries about packages of other ecosystems."""


def read(
    paths: Sequence[Path],
    *,
    retrieved: date | None = None,
    labels: Mapping[str, Label] | None = None,
    published: Published | None = None,
) -> AdvisoryData:
    """Advisory data of everything below the paths.

    Labels and published versions are the given ones, else those of files found there, else the bundled ones.
    ``retrieved`` is the day from which the age of the data counts; without it the age is not known.

    Raises:
        SourceError: a path that does not exist or a folder that can't be listed.
    """
    found = scan(paths)
    own_labels = found.labels or snapshot.bundled_labels()
    return assemble(
        found.records,
        labels=own_labels if labels is None else labels,
        published=published or found.published or _bundled_versions(),
        quarantined=found.quarantined,
        unknown_keys_ignored=found.unknown_keys,
        retrieved=retrieved,
        source=", ".join(readable_name(str(path)) for path in paths),
    )


def _bundled_versions() -> Published:
    bundled = snapshot.bundled()
    return Published(bundled.published, bundled.published_retrieved)


def scan(paths: Sequence[Path]) -> Scan:
    """Read every document once; nothing of its text is kept."""
    return scan_documents(documents(paths))


def scan_documents(found: Iterable[Document]) -> Scan:
    """Sort documents into records, companion files and quarantine."""
    result = Scan()
    for document in found:
        parsed: object = None
        try:
            parsed = _parsed(document)
            _take(result, document, parsed)
        except BadRecord as error:
            result.quarantined += quarantine(document, str(error), parsed)
    return result


def _parsed(document: Document) -> object:
    if document.problem is not None:
        raise BadRecord(document.problem)
    if not document.data.strip():
        raise BadRecord("the file is empty")
    try:
        return from_json(document.data.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON that can be read: {error}") from None


def _take(result: Scan, document: Document, parsed: object) -> None:
    if is_labels(parsed):
        result.labels |= read_labels(parsed, source=document.source)
    elif is_versions(parsed):
        result.published = _joined(result.published, read_versions(parsed))
    else:
        converted = convert(read_document(parsed))
        result.records.append(converted.record)
        result.unknown_keys += converted.unknown_keys
        result.ratings_ignored += converted.ratings_ignored
        result.entries_ignored += converted.entries_ignored


def _joined(known: Published | None, new: Published) -> Published:
    if known is None:
        return new
    days = [day for day in (known.retrieved, new.retrieved) if day]
    return Published({**known.versions, **new.versions}, min(days, default=""))
