"""Metrics of models that stood in for others, of endpoints that failed, and of shadows."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.admitted import Ended
from gateway.mirror import MirrorName

_FIRST_BYTE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ArmMetrics:
    """Label values are names of the snapshot or of this code, never a client's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._fallbacks = Counter(
            "enginehouse_gateway_fallbacks",
            "Requests for a model that went to another one of its chain, because no engine of its own could serve.",
            ("tenant", "model", "served_model"),
            registry=registry,
        )
        self._ejected = Gauge(
            "enginehouse_gateway_endpoints_ejected",
            "Endpoints that get no requests now because they failed several times in a row.",
            registry=registry,
        )

        self._copies = Counter(
            "enginehouse_gateway_shadow_requests",
            "Copies of requests for shadows, by what came of them; nobody is charged for them.",
            ("model", "deployment", "outcome"),
            registry=registry,
        )
        self._copies_first_byte = Histogram(
            "enginehouse_gateway_shadow_first_byte_seconds",
            "Time from the sending of a copy to the first byte of the shadow's answer.",
            ("deployment",),
            buckets=_FIRST_BYTE_SECONDS,
            registry=registry,
        )

    def mirrored(self, name: MirrorName, outcome: str, first_byte_seconds: float | None) -> None:
        """Count a copy."""
        self._copies.labels(name.model, name.deployment, outcome).inc()
        if first_byte_seconds is not None:
            self._copies_first_byte.labels(name.deployment).observe(first_byte_seconds)

    def watch_ejected(self, count: Callable[[], int]) -> None:
        """Ask at each scrape."""
        self._ejected.set_function(count)

    def ended(self, ended: Ended) -> None:
        """Count an admitted request that is over, if another model stood in."""
        if ended.asked_model != ended.model:
            self._fallbacks.labels(ended.tenant, ended.asked_model, ended.model).inc()
