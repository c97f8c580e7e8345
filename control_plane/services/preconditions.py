"""Optimistic concurrency: which version of an object a caller says that it saw."""

from dataclasses import dataclass

from control_plane.errors import StaleVersion, VersionRequired
from control_plane.records import Kind


@dataclass(frozen=True, slots=True)
class Precondition:
    """What a request demands of the object before its change."""

    versions: frozenset[str] | None = None
    """Versions that the caller takes (If-Match); ``None`` = it did not say."""
    any_version: bool = False
    """If-Match: * - it must exist, in whatever version."""
    must_be_new: bool = False
    """If-None-Match: * - it must not exist."""


def check(kind: Kind, name: str, generation: int | None, demand: Precondition, *, is_dry_run: bool = False) -> None:
    """Whether a change may go on; ``generation`` is ``None`` for an object that does not exist.

    Raises:
        StaleVersion: another version than the caller saw, or none at all.
        VersionRequired: the object exists and the caller did not say what it saw.
    """
    if generation is None:
        if demand.versions is not None or demand.any_version:
            raise StaleVersion(kind, name, "does not exist (any more); leave If-Match out to create it")
        return
    if demand.must_be_new:
        raise StaleVersion(kind, name, f"exists already, at version {generation}")
    if demand.any_version:
        return
    if demand.versions is None:
        if not is_dry_run:
            raise VersionRequired(kind, name, generation)
        return
    if str(generation) not in demand.versions:
        seen = ", ".join(sorted(demand.versions)) or "an unreadable version"
        raise StaleVersion(kind, name, f"is at version {generation}, not {seen}: read it again and repeat the change")
