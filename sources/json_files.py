"""JSON documents in folders, zip archives and single files, one at a time and never larger than the limit.

Only regular files are read. Links to folders are not followed, links to files are (a mounted ConfigMap is made of
them); hidden names are left out, since writers use them for files that are not ready.
"""

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sources.errors import SourceError

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
MAX_ARCHIVE_BYTES = 8 * 1024 * 1024 * 1024
"""Decompressed, over all members: an archive of every PyPI record has under 1 GiB."""
HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of one document, or the reason why they were not read."""

    source: str
    """Where it stands, relative to the folder that was given."""
    data: bytes
    """All of it, or the first 64 KiB when there is a problem."""
    problem: str | None = None


def documents(paths: Sequence[Path]) -> Iterator[Document]:
    """Every document below the paths, in the order of their names.

    Raises:
        SourceError: a path that does not exist.
    """
    for path in paths:
        if path.is_dir():
            yield from _folder(path)
        elif path.exists():
            yield from _file(path, path.name)
        else:
            raise SourceError(f"{path}: no such file or folder; expected a folder of OSV JSON files, a zip or a file")


def _folder(root: Path) -> Iterator[Document]:
    for folder, folders, names in os.walk(root, followlinks=False, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        place = Path(folder).relative_to(root).as_posix()
        for name in sorted(names):
            if not name.startswith(".") and name.lower().endswith((".json", ".zip")):
                yield from _file(Path(folder, name), name if place == "." else f"{place}/{name}")


def _refuse(error: OSError) -> None:
    raise SourceError(f"{error.filename}: the folder can't be listed ({error.strerror})") from error


def readable_name(name: str) -> str:
    """A file's name as text: bytes that are no UTF-8 are written out, because no JSON can hold them."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _file(path: Path, name: str) -> Iterator[Document]:
    source = readable_name(name)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            yield Document(source, b"", "not a regular file")
        elif path.suffix.lower() == ".zip":
            yield from _archive(path, source)
        elif status.st_size > MAX_DOCUMENT_BYTES:
            with path.open("rb") as handle:
                yield Document(source, handle.read(HEAD_BYTES), _too_large(status.st_size))
        else:
            with path.open("rb") as handle:
                yield _limited(source, handle.read(MAX_DOCUMENT_BYTES + 1))
    except OSError as error:
        yield Document(source, b"", f"can't be read ({error.strerror or error})")


def _limited(source: str, data: bytes) -> Document:
    if len(data) > MAX_DOCUMENT_BYTES:
        return Document(source, data[:HEAD_BYTES], _too_large(len(data)))
    return Document(source, data)


def _too_large(size_bytes: int) -> str:
    return f"{size_bytes} bytes; at most {MAX_DOCUMENT_BYTES} are read"


def _archive(path: Path, source: str) -> Iterator[Document]:
    try:
        with zipfile.ZipFile(path) as archive:
            left_bytes = MAX_ARCHIVE_BYTES
            for member in sorted(archive.infolist(), key=lambda item: item.filename):
                if member.is_dir() or not member.filename.lower().endswith(".json"):
                    continue
                document = _member(archive, member, f"{source}!{member.filename}")
                left_bytes -= len(document.data)
                if left_bytes < 0:
                    yield Document(source, b"", f"more than {MAX_ARCHIVE_BYTES} bytes inside; the rest is not read")
                    return
                yield document
    except zipfile.BadZipFile as error:
        yield Document(source, b"", f"not a zip archive that can be read ({error})")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> Document:
    try:
        with archive.open(member) as handle:
            if member.file_size > MAX_DOCUMENT_BYTES:
                return Document(source, handle.read(HEAD_BYTES), _too_large(member.file_size))
            return _limited(source, handle.read(MAX_DOCUMENT_BYTES + 1))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        return Document(source, b"", f"can't be unpacked ({error})")
