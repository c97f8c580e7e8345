"""Manifests on disk: written and pinned ones."""

from collections.abc import Iterable
from pathlib import Path

from fleet.manifest import AnyManifest, dump, parse
from sources.whole_file import write_whole
from sources.yaml_file import read_text

PINNED_SUFFIX = ".pinned.yaml"


def read(path: Path) -> AnyManifest:
    """The manifest in a file.

    Raises:
        SourceError: the file can't be read, is too large or is not UTF-8.
        ManifestError: its content is wrong, with every problem by pointer.
    """
    return parse(read_text(path), source=str(path))


def pinned_path(path: Path) -> Path:
    """Where the pinned manifest of a written one stands: ``x.yaml`` -> ``x.pinned.yaml``."""
    return path.with_name(f"{path.stem}{PINNED_SUFFIX}")


def canary_path(path: Path) -> Path:
    """Where the pin of a written manifest's canary stands: ``x.yaml`` -> ``x.canary.pinned.yaml``."""
    return path.with_name(f"{path.stem}.canary{PINNED_SUFFIX}")


def write(path: Path, manifest: AnyManifest, *, comments: Iterable[str] = ()) -> None:
    """Write a manifest, below lines of comment, as a whole or not at all; raises `SourceError`."""
    head = "".join(f"# {line}\n" for line in comments)
    write_whole(path, (head + dump(manifest)).encode())
