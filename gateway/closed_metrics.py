"""How often a closed code path was asked for, by the reference that its client was given."""

from prometheus_client import CollectorRegistry, Counter

from fleet.snapshot import ClosedPath


class ClosedMetrics:
    """Label values are those of the snapshot: operators find the advisory by the reference."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refused = Counter(
            "enginehouse_gateway_closed_field_refusals",
            "Requests refused because a field of theirs reaches a code path that is closed.",
            ("model", "path", "reference"),
            registry=registry,
        )

    def refused(self, model: str, closed: ClosedPath) -> None:
        """Count one refusal."""
        self._refused.labels(model, closed.path, closed.reference).inc()
