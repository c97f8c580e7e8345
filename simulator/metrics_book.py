"""Turns what happens in an engine into the metric families of its dialect."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from packaging.version import InvalidVersion, Version

from simulator.engine_state import EngineState
from simulator.exposition import Family, Labels, render
from simulator.signals import Count, Measure

PLAIN_TEXT = "text/plain; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """One answered HTTP request."""

    handler: str
    method: str
    status: int
    seconds: float
    request_bytes: int
    response_bytes: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where a count or a measurement goes."""

    family: Family
    labels: Labels
    splits_by_stream: bool = False

    def labels_for(self, streams: bool) -> Labels:
        """Return the labels, with `is_streaming` where the family has it."""
        return {**self.labels, "is_streaming": str(streams).lower()} if self.splits_by_stream else self.labels


def _nothing_more(exchange: HttpExchange) -> None:
    return None


@dataclass(frozen=True, slots=True)
class MetricsBook:
    """The metrics of one engine: a recorder, and the text that `/metrics` answers with."""

    families: Sequence[Family]
    counts: Mapping[Count, Sequence[Target]]
    measures: Mapping[Measure, Sequence[Target]]
    update: Callable[[EngineState], None]
    note_http: Callable[[HttpExchange], None] = _nothing_more
    more_families: Callable[[], Sequence[Family]] = field(default=tuple)
    with_created: bool = False
    content_type: str = PLAIN_TEXT
    path: str = "/metrics"

    def count(self, what: Count, amount: float = 1, *, streams: bool = False) -> None:
        """Add to every counter that this dialect keeps for it."""
        for target in self.counts.get(what, ()):
            target.family.add(target.labels_for(streams), amount)

    def measure(self, what: Measure, value: float, *, streams: bool = False) -> None:
        """Observe in every histogram that this dialect keeps for it."""
        for target in self.measures.get(what, ()):
            target.family.observe(target.labels_for(streams), value)

    def text(self, state: EngineState) -> str:
        """Return the exposition text for the present state."""
        self.update(state)
        return render((*self.more_families(), *self.families), with_created=self.with_created)


def catalog(name: str) -> dict[str, Any]:
    """Read a metric catalogue that comes with the package."""
    text = resources.files("simulator").joinpath("data", name).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def is_in_version(entry: Mapping[str, Any], version: str, oldest: str) -> bool:
    """Tell whether a version has a family; one below the oldest known counts as the oldest."""
    try:
        wanted = max(Version(version), Version(oldest))
    except InvalidVersion:
        wanted = Version(oldest)
    since, until = entry.get("since"), entry.get("until")
    return (since is None or Version(since) <= wanted) and (until is None or wanted < Version(until))
