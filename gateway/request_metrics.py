"""Metrics of admitted requests in their path: how long until the first token, for each token, and for the whole."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from gateway.admitted import Ended
from gateway.index import SnapshotIndex
from gateway.passage import End

_FIRST_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_TOKEN_SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)
_WHOLE_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_ROUTE = ("model", "deployment")
_ENGINE = ("deployment", "identity", "endpoint")


class RequestMetrics:
    """Label values are names of the snapshot; what leaves it, leaves the metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._first = Histogram(
            "enginehouse_gateway_time_to_first_token_seconds",
            "Of streams: from the coming of a request to the first byte of its answer, time in queues included.",
            _ROUTE,
            buckets=_FIRST_SECONDS,
            registry=registry,
        )
        self._token = Histogram(
            "enginehouse_gateway_time_per_output_token_seconds",
            "Of whole streams: time from the first byte to the end for each output token but the first.",
            _ROUTE,
            buckets=_TOKEN_SECONDS,
            registry=registry,
        )
        self._whole = Histogram(
            "enginehouse_gateway_request_seconds",
            "From the coming of an admitted request to its end, however it ended.",
            _ROUTE,
            buckets=_WHOLE_SECONDS,
            registry=registry,
        )
        self._engines = Counter(
            "enginehouse_gateway_requests_by_engine",
            "Requests by the engine that had them last, its arm (deployment and identity), and how they ended.",
            (*_ENGINE, "end"),
            registry=registry,
        )
        self._routes: dict[tuple[str, str], tuple[Histogram, Histogram, Histogram]] = {}
        self._ends: dict[tuple[str, str, str, str], Counter] = {}
        self._index: SnapshotIndex | None = None

    def ended(self, ended: Ended) -> None:
        """Note an admitted request that is over."""
        first, token, whole = self._of_route(ended.model, ended.deployment)
        seconds, first_seconds = ended.times
        whole.observe(seconds)
        if ended.address:
            self._of_engine(ended).inc()
        if not ended.is_stream or first_seconds is None:
            return
        first.observe(first_seconds)
        tokens = ended.settled.usage.output_tokens if ended.settled else 0
        if tokens > 1 and ended.ending.end is End.WHOLE:
            token.observe((seconds - first_seconds) / (tokens - 1))

    def look(self, index: SnapshotIndex | None) -> None:
        """Drop what left the snapshot, if there is another one."""
        if index is None or index is self._index:
            return
        self._index = index
        routes = {(route.model, arm.deployment) for route in index.routes.values() for arm in route.arms}
        for key in self._routes.keys() - routes:
            del self._routes[key]
            for histogram in (self._first, self._token, self._whole):
                histogram.remove(*key)
        known = index.addresses | index.hosted
        for labels in [labels for labels in self._ends if labels[2] not in known]:
            del self._ends[labels]
            self._engines.remove(*labels)

    def _of_route(self, model: str, deployment: str) -> tuple[Histogram, Histogram, Histogram]:
        found = self._routes.get((model, deployment))
        if found is None:
            labels = (model, deployment)
            found = (self._first.labels(*labels), self._token.labels(*labels), self._whole.labels(*labels))
            self._routes[labels] = found
        return found

    def _of_engine(self, ended: Ended) -> Counter:
        labels = (ended.deployment, ended.identity, ended.address, ended.ending.end.value)
        found = self._ends.get(labels)
        if found is None:
            found = self._ends[labels] = self._engines.labels(*labels)
        return found
