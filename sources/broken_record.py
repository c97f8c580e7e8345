"""What can still be told of a record that can't be read: its id and packages, so that these count as unknown."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from fleet.advisory import PACKAGE_ECOSYSTEMS, normalised_package
from fleet.facts import Quarantined
from sources.json_files import HEAD_BYTES, Document
from sources.package_names import is_ours, package_key

_ID = re.compile(r'"id"\s*:\s*"([A-Za-z][A-Za-z0-9._:-]{2,99})"')
_PACKAGE = re.compile(r'"package"\s*:\s*\{([^{}]{0,2000})')
_FIELD = re.compile(r'"(ecosystem|name|purl)"\s*:\s*"([^"\\]{1,200})"')
_RECORD_NAME = re.compile(r"[A-Z][A-Za-z]{1,15}-[A-Za-z0-9-]{1,60}")


def quarantine(document: Document, reason: str, parsed: object = None) -> tuple[Quarantined, ...]:
    """One entry per package that can be told, or one without a package."""
    if isinstance(parsed, dict):
        name, packages = _parsed_id(parsed), _parsed_packages(parsed)
    else:
        text = document.data[:HEAD_BYTES].decode("utf-8", errors="replace")
        found = _ID.search(text)
        name, packages = (found[1] if found else None), _written_packages(text)
    where = PurePosixPath(document.source.replace("!", "/"))
    name = name or _id_of_file(where)
    told: list[str | None] = [*(packages or _package_of_folder(where))]
    return tuple(
        Quarantined(source=document.source, id=name, package=package, reason=reason) for package in told or [None]
    )


def _parsed_id(record: dict[object, object]) -> str | None:
    value = record.get("id")
    return value[:200] if isinstance(value, str) and value else None


def _parsed_packages(record: dict[object, object]) -> list[str]:
    affected = record.get("affected")
    entries = [entry for entry in affected if isinstance(entry, dict)] if isinstance(affected, list) else []
    return _ours(_texts(entry.get("package")) for entry in entries)


def _texts(package: object) -> dict[str, str]:
    fields = package.items() if isinstance(package, dict) else ()
    return {str(key): value for key, value in fields if isinstance(value, str)}


def _written_packages(text: str) -> list[str]:
    return _ours(dict(_FIELD.findall(body)) for body in _PACKAGE.findall(text))


def _ours(packages: Iterable[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(_names(packages)))


def _names(packages: Iterable[dict[str, str]]) -> Iterator[str]:
    for fields in packages:
        key = package_key(fields.get("ecosystem"), fields.get("name"), fields.get("purl"))
        if key is not None and is_ours(key):
            yield key[1]


def _id_of_file(where: PurePosixPath) -> str | None:
    return where.stem if _RECORD_NAME.fullmatch(where.stem) else None


def _package_of_folder(where: PurePosixPath) -> list[str]:
    """The folder layout of OSV dumps: ``<ecosystem>/<package>/<id>.json``."""
    parts = where.parts
    is_dump = len(parts) >= 3 and parts[-3] in PACKAGE_ECOSYSTEMS
    return [normalised_package(parts[-2])] if is_dump else []
