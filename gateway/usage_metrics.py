"""Metrics of usage records: what became of them, and what still waits."""

from collections.abc import Callable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge


class Outcome(StrEnum):
    """What became of a record; the value is a metric's label."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    """Brought before, and counted then."""
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    REFUSED = "refused"
    """The control plane can't read its batch, which is set aside."""
    MALFORMED = "malformed"
    """It can't be a record, or the disk gave back something else."""
    DROPPED_IN_MEMORY = "dropped_in_memory"
    DROPPED_ON_DISK = "dropped_on_disk"


class UsageMetrics:
    """Label values are words of this code."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._records = Counter(
            "enginehouse_gateway_usage_records",
            "Usage records by what became of them; all but stored and duplicate are missing in the sums.",
            ("outcome",),
            registry=registry,
        )
        for outcome in Outcome:
            self._records.labels(outcome.value)
        self._failures = Counter(
            "enginehouse_gateway_usage_delivery_failures",
            "Attempts to bring usage records to the control plane that failed; they are repeated.",
            registry=registry,
        )
        self._disk_failures = Counter(
            "enginehouse_gateway_usage_disk_failures",
            "Attempts to write usage records to disk that failed; they are repeated.",
            registry=registry,
        )
        self._bytes = Gauge(
            "enginehouse_gateway_usage_spool_bytes", "Usage records on disk that still wait.", registry=registry
        )
        self._age = Gauge(
            "enginehouse_gateway_usage_spool_age_seconds",
            "How long the oldest usage records on disk wait; 0 = none do.",
            registry=registry,
        )

    def count(self, outcome: Outcome, records: int = 1) -> None:
        """Count records."""
        self._records.labels(outcome.value).inc(records)

    def delivery_failed(self) -> None:
        """Count one failed attempt."""
        self._failures.inc()

    def disk_failed(self) -> None:
        """Count one failed attempt."""
        self._disk_failures.inc()

    def watch_spool(self, size_bytes: Callable[[], float], age_seconds: Callable[[], float]) -> None:
        """Ask for these at each scrape."""
        self._bytes.set_function(size_bytes)
        self._age.set_function(age_seconds)
