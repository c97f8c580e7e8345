"""Metrics of models that stood in for others, of endpoints that failed, and of shadows."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.admitted import Ended


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

    def watch_ejected(self, count: Callable[[], int]) -> None:
        """Ask at each scrape."""
        self._ejected.set_function(count)

    def ended(self, ended: Ended) -> None:
        """Count an admitted request that is over, if another model stood in."""
        if ended.asked_model != ended.model:
            self._fallbacks.labels(ended.tenant, ended.asked_model, ended.model).inc()
