"""Manifests from files, with errors that end as usage errors."""

from pathlib import Path

from cli.exits import UsageError
from fleet.manifest import AnyManifest, ManifestError
from sources import manifest_file
from sources.errors import SourceError


def read_manifest(path: Path) -> AnyManifest:
    """One manifest from a file.

    Raises:
        UsageError: it can't be read or parsed, with every problem found.
    """
    try:
        return manifest_file.read(path)
    except (ManifestError, SourceError) as error:
        raise UsageError(str(error)) from None
