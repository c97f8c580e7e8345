"""Metrics of the fair queues: who waits, how long, and what came of it."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from gateway.turn_words import Outcome, Waited

_SECONDS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class WaitingMetrics:
    """Label values are names of the snapshot or of this code, never a client's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "enginehouse_gateway_queue_wait_seconds",
            "Time from an admitted request's arrival at its engines' queue to its turn; at once is 0.",
            ("model",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._refused = Counter(
            "enginehouse_gateway_queue_refusals",
            "Admitted requests that had no turn: queue_full, queue_timeout, no_endpoint, or left by their client.",
            ("tenant", "model", "outcome"),
            registry=registry,
        )

    def waited(self, waited: Waited) -> None:
        """Count one request that waits no longer."""
        if waited.outcome is Outcome.TURN:
            self._seconds.labels(waited.model).observe(waited.seconds)
        else:
            self._refused.labels(waited.tenant, waited.model, waited.outcome.value).inc()
