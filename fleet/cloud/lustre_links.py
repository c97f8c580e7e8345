"""Links between a Lustre file system and buckets, and the ports by which nodes reach it.

Our own rule: weights are read-only. A file that is deleted in the file system must not vanish from the bucket, and an
object that vanishes from the bucket must not take the file away from under a running engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from fleet.cloud.finding import CloudRule, Finding, Grade

EVENTS = ("NEW", "CHANGED", "DELETED")
SAFE_EVENTS = ("NEW", "CHANGED")
MOST_LINKS = 8

_API = "FSx API, CreateDataRepositoryAssociation"

LINK_PATH = CloudRule(
    "lustre-link-path",
    Grade.HIGH,
    "Every link has a folder of the file system of its own",
    "give each bucket its own folder that begins with '/'",
    _API,
)
LINK_SOURCE = CloudRule(
    "lustre-link-bucket",
    Grade.HIGH,
    "Every link names a bucket, and no two links of a file system name the same place",
    "take s3://BUCKET/ or s3://BUCKET/PREFIX/, each once",
    _API,
)
LINK_EVENTS = CloudRule(
    "lustre-link-events",
    Grade.HIGH,
    "What a link imports by itself are events that exist, each once",
    "take NEW and CHANGED",
    "FSx API, AutoImportPolicy",
)
READ_ONLY = CloudRule(
    "lustre-weights-read-only",
    Grade.CRITICAL,
    "Nothing that happens in the file system reaches the bucket, and no deletion reaches the file system",
    "import NEW and CHANGED, never DELETED, and export nothing",
    "own rule; FSx API, AutoExportPolicy: an export of DELETED deletes objects",
)
LINKABLE = CloudRule(
    "lustre-link-support",
    Grade.HIGH,
    "A linked file system can have links",
    "take PERSISTENT_2 with SSD and Lustre 2.15, at most 8 links, and no tags copied to backups",
    f"{_API}: Lustre 2.12 and newer, neither SCRATCH_1 nor Intelligent-Tiering",
)


@dataclass(frozen=True, slots=True)
class Link:
    """A data repository association as it is asked for."""

    folder: str
    """In the file system."""
    bucket: str
    """``s3://BUCKET/PREFIX/``."""
    imports: tuple[str, ...] = SAFE_EVENTS
    exports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Linked:
    """What of a file system matters for its links."""

    deployment: str = "PERSISTENT_2"
    storage: str = "SSD"
    version: str | None = None
    """``None`` = the cloud's own choice."""
    copies_tags_to_backups: bool = False


def link_findings(link: Link) -> Iterator[Finding]:
    """What is wrong with one link by itself."""
    if _names_no_folder(link.folder):
        yield Finding(LINK_PATH, f"{link.folder} as the folder of {link.bucket}", "take names between single '/'")
    if not link.folder.startswith("/"):
        shown = link.folder or "no folder"
        yield Finding(LINK_PATH, f"{shown} as the folder of {link.bucket}", f"take /{link.folder or 'weights'}")
    if not link.bucket.startswith("s3://") or link.bucket == "s3://":
        yield Finding(LINK_SOURCE, f"'{link.bucket}' as the place that {link.folder} is linked to")
    yield from _events(link)
    if "DELETED" in link.imports:
        yield Finding(READ_ONLY, f"{link.folder} imports DELETED: a deleted object takes its file from running engines")
    if link.exports:
        events = ", ".join(link.exports)
        yield Finding(READ_ONLY, f"{link.folder} exports {events} to {link.bucket}", "leave the export policy out")


def links_findings(links: Sequence[Link], system: Linked) -> Iterator[Finding]:
    """What is wrong with the links of one file system together."""
    if links:
        yield from _support(system)
    if len(links) > MOST_LINKS:
        yield Finding(LINKABLE, f"{len(links)} links on one file system, which can have {MOST_LINKS}")
    for one, other in combinations(links, 2):
        if _overlap(one.folder, other.folder):
            yield Finding(LINK_PATH, f"the folders {one.folder} and {other.folder} lie in each other")
        if _overlap(one.bucket, other.bucket):
            both = one.bucket if one.bucket.rstrip("/") == other.bucket.rstrip("/") else f"{one.bucket}, {other.bucket}"
            yield Finding(LINK_SOURCE, f"{one.folder} and {other.folder} are both linked to {both}")


def _events(link: Link) -> Iterator[Finding]:
    unknown = [event for event in link.imports if event not in EVENTS]
    if unknown:
        yield Finding(LINK_EVENTS, f"{link.folder} imports {', '.join(unknown)}; there are {', '.join(EVENTS)}")
    if len(set(link.imports)) < len(link.imports):
        yield Finding(LINK_EVENTS, f"{link.folder} imports {', '.join(link.imports)}: one event twice")


def _support(system: Linked) -> Iterator[Finding]:
    if system.deployment == "SCRATCH_1" or system.storage == "INTELLIGENT_TIERING" or system.version == "2.10":
        version = "" if system.version is None else f", Lustre {system.version}"
        yield Finding(LINKABLE, f"a link on {system.deployment} with {system.storage}{version}")
    if system.copies_tags_to_backups:
        message = "tags copied to backups on a file system with links"
        yield Finding(LINKABLE, message, "leave copy_tags_to_backups out")


def _names_no_folder(path: str) -> bool:
    """Whether a path holds steps that are no names, such as ``..``."""
    names = path.strip("/")
    return bool({"", ".", ".."} & set(names.split("/"))) if names else len(path) > 1


def _overlap(one: str, other: str) -> bool:
    first, second = (f"{folder.rstrip('/')}/" for folder in (one, other))
    return first.startswith(second) or second.startswith(first)


RULES: tuple[CloudRule, ...] = (LINK_PATH, LINK_SOURCE, LINK_EVENTS, READ_ONLY, LINKABLE)
