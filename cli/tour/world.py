"""What the tour acts on: a running fleet, its API and its gateway. Tests give a world with one fault."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cli.tour.pace import SIMULATED, Pace
from cli.tour.stream import ChatStream

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command of ours answered."""

    command: str
    """As a person would type it."""
    exit_code: int
    document: Document
    """What it printed with ``-o json``."""
    talk: str
    """What it said on stderr."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the gateway answered to a request that is no stream."""

    status: int
    document: Document


class AdminApi(Protocol):
    """The part of `cli.client.Api` that the tour uses."""

    def get(self, path: str, **query: str | int | None) -> Document:
        """One document."""
        ...

    def get_with_etag(self, path: str) -> tuple[Document, str]:
        """One document and its ETag."""
        ...

    def find(self, path: str) -> tuple[Document, str] | None:
        """One document and its ETag, or ``None`` when there is none."""
        ...

    def put(self, path: str, body: Document, *, etag: str | None = None, dry_run: bool = False) -> Document:
        """Create or replace."""
        ...

    def post(self, path: str, body: Document) -> Document:
        """Create something whose name the server gives."""
        ...

    def every(self, path: str, **query: str | int | None) -> Iterator[Document]:
        """All items of a list."""
        ...


class World(Protocol):
    """A running fleet."""

    @property
    def api(self) -> AdminApi:
        """The admin API, with a token that may do everything."""
        ...

    @property
    def manifests(self) -> Sequence[Path]:
        """The written example manifests, copied into the fleet's environment."""
        ...

    @property
    def runbook(self) -> Sequence[Path]:
        """The public runbook as manifests."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...

    def command(self, *arguments: str) -> Said:
        """Run ``enginehouse`` with these arguments and ``-o json``."""
        ...

    def ask(self, key: str, path: str, body: Document | None = None) -> Reply:
        """A request through Envoy; POST when there is a body."""
        ...

    def chat(self, key: str, model: str, text: str, *, max_tokens: int) -> AbstractContextManager[ChatStream]:
        """A streamed chat through Envoy."""
        ...

    def drop_advisory(self, record: Document) -> None:
        """Put a record into the watched folder."""
        ...

    def agree(self, question: str) -> bool:
        """Ask the person; ``--yes`` says yes to everything."""
        ...

    def now_iso(self) -> str:
        """The moment, in UTC."""
        ...

    def until(self, condition: Callable[[], object], *, seconds: float) -> float | None:
        """Wait for a condition; how long it took, or ``None`` when it did not come true in time."""
        ...


def store(api: AdminApi, path: str, body: Document) -> Document:
    """Create it, or replace what an earlier tour left."""
    found = api.find(path)
    return api.put(path, body, etag=found[1] if found else None)


@dataclass(slots=True)
class Journey:
    """What earlier steps found out and later ones need."""

    pace: Pace = SIMULATED
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    """Tenant -> API key; never printed by the tour."""
    exercised: str = ""
    """The deployment that the exercise's advisory hits."""
    version_before: str = ""
    version_after: str = ""
    advisory: str = ""
