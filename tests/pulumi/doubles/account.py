"""What exists in the pretended account or cluster: a journal of every change, shared by the doubles of one test.

The journal (JSON lines) is also what tests read: which resource was created, updated or deleted, in which order. Its
path is in ``DOUBLES_JOURNAL``; without it the journal lies in the folder of the state, with which the account ends.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

# Ids that the account itself gives; those of snapshots, reservations and images come from elsewhere.
_OWN_ID = re.compile(r"^(?:vpc|subnet|sg|igw|rtb|nat|eipalloc|lt|fs|vpce|dra|fl|acl|eni|pg)-[0-9a-f]{8,17}$")


class AccountError(Exception):
    """What the cloud would answer instead of doing it."""


@dataclass(frozen=True)
class Entry:
    """One change."""

    op: str
    """create, update or delete"""
    type: str
    urn: str
    id: str
    unique: str = ""
    """What nobody else of the type may have."""
    refers_to: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)
    """What exists with it: the security group of a cluster, the API groups of a chart."""


class Account:
    """The journal, and what follows from it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of_environment(cls) -> "Account":
        named, backend = os.environ.get("DOUBLES_JOURNAL"), os.environ.get("PULUMI_BACKEND_URL", "")
        if named:
            return cls(Path(named))
        if not backend.startswith("file://"):
            right = "set PULUMI_BACKEND_URL to file:// and a folder, or DOUBLES_JOURNAL to a file"
            raise AccountError(f"the doubles keep no account: PULUMI_BACKEND_URL is {backend!r}; {right}")
        return cls(Path(backend.removeprefix("file://")).expanduser() / "doubles.jsonl")

    def create(self, entry: Entry) -> None:
        """Adds a resource; its name must be free, and what it refers to must exist."""
        with self._locked() as (file, entries):
            living = living_of(entries)
            for other in living.values():
                if entry.unique and (other.type, other.unique) == (entry.type, entry.unique):
                    raise AccountError(f"AlreadyExists: {entry.type} {entry.unique!r} exists ({other.urn})")
            self._append(file, living, entry)

    def update(self, entry: Entry) -> None:
        """Changes a resource that exists."""
        with self._locked() as (file, entries):
            self._append(file, living_of(entries), entry)

    def delete(self, entry: Entry) -> None:
        """Takes a resource away, unless another one refers to it."""
        with self._locked() as (file, entries):
            living = living_of(entries)
            gone = living[entry.urn, entry.id]
            for other in living.values():
                used = {gone.id, *gone.offers}.intersection(other.refers_to)
                if used and other is not gone:
                    raise AccountError(f"DependencyViolation: {', '.join(used)} is in use by {other.urn}")
            _write(file, entry)

    def number(self) -> int:
        """How many changes there were."""
        with self._locked() as (_, entries):
            return len(entries)

    def _append(self, file: TextIO, living: dict[tuple[str, str], Entry], entry: Entry) -> None:
        ids = {other.id for other in living.values()}
        ids.update(offer for other in living.values() for offer in other.offers)
        missing = sorted(set(entry.refers_to) - ids - {entry.id})
        if missing:
            raise AccountError(f"NotFound: {entry.type} refers to {', '.join(missing)}, which does not exist")
        _write(file, entry)

    @contextmanager
    def _locked(self) -> Iterator[tuple[TextIO, list[Entry]]]:
        with self._path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield file, [Entry(**json.loads(line)) for line in file]


def living_of(entries: list[Entry]) -> dict[tuple[str, str], Entry]:
    """The last word about every resource that was not deleted."""
    living: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if entry.op == "delete":
            living.pop((entry.urn, entry.id), None)
        else:
            living[(entry.urn, entry.id)] = entry
    return living


def own_ids(value: Any) -> Iterator[str]:
    """The ids of the account's own resources anywhere in some properties."""
    if isinstance(value, dict):
        for item in value.values():
            yield from own_ids(item)
    elif isinstance(value, list):
        for item in value:
            yield from own_ids(item)
    elif isinstance(value, str) and _OWN_ID.match(value):
        yield value


def _write(file: TextIO, entry: Entry) -> None:
    file.write(json.dumps(asdict(entry)) + "\n")
    file.flush()
