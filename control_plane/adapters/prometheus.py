"""What is counted, as Prometheus metrics with the prefix ``enginehouse_``, on a port of their own."""

import threading
from collections.abc import Mapping
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server


class PrometheusMeter:
    """Counters and gauges of one control plane, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        reg = self.registry
        labels = ("method", "route", "status")
        self._requests = Counter("enginehouse_http_requests", "Answered requests.", labels, registry=reg)
        self._request_seconds = Histogram(
            "enginehouse_http_request_duration_seconds", "Time to answer.", ("method", "route"), registry=reg
        )
        self._reviews = Counter("enginehouse_reviews", "Reviews of everything.", registry=reg)
        self._review_seconds = Histogram(
            "enginehouse_review_duration_seconds", "Time of a review of everything.", registry=reg
        )
        self._review_changes = Counter(
            "enginehouse_review_condition_changes", "Deployments whose condition a review changed.", registry=reg
        )
        self._advisories = Gauge("enginehouse_advisories", "Merged advisories in use.", registry=reg)
        self._quarantined = Gauge(
            "enginehouse_advisory_records_quarantined", "Records that can't be read.", registry=reg
        )
        self._loaded = Gauge(
            "enginehouse_advisory_data_loaded_timestamp_seconds", "When advisory data was last loaded.", registry=reg
        )
        self._lost = Gauge("enginehouse_advisory_feed_lost", "1 while the feed can't be read.", registry=reg)
        self._compliant = Gauge(
            "enginehouse_deployments_compliant", "Deployments by status of Compliant.", ("status",), registry=reg
        )
        self._phases = Gauge("enginehouse_deployments", "Deployments by phase.", ("phase",), registry=reg)
        self._restarts = Counter("enginehouse_engine_restarts", "Engines that died.", ("deployment",), registry=reg)
        self._issuers = Gauge(
            "enginehouse_token_issuers_without_fresh_keys",
            "Token issuers whose public keys could not be read the last time.",
            registry=reg,
        )

    def request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request."""
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def review(self, *, seconds: float, deployments: int, changed: int) -> None:
        """One review of everything."""
        self._reviews.inc()
        self._review_seconds.observe(seconds)
        self._review_changes.inc(changed)

    def advisory_data(self, *, advisories: int, quarantined: int, retrieved_unix_seconds: float) -> None:
        """New advisory data."""
        self._advisories.set(advisories)
        self._quarantined.set(quarantined)
        self._loaded.set(retrieved_unix_seconds)

    def feed_lost(self, *, is_lost: bool) -> None:
        """Whether the feed can't be read."""
        self._lost.set(1 if is_lost else 0)

    def compliance(self, counts: Mapping[str, int]) -> None:
        """Deployments by status of their condition Compliant."""
        for status in ("True", "False", "Unknown"):
            self._compliant.labels(status).set(counts.get(status, 0))

    def phases(self, counts: Mapping[str, int]) -> None:
        """Deployments by phase."""
        for phase in ("Pending", "Starting", "Running", "Degraded", "Failed"):
            self._phases.labels(phase).set(counts.get(phase, 0))

    def issuers_without_fresh_keys(self, count: int) -> None:
        """Token issuers whose public keys could not be read the last time."""
        self._issuers.set(count)

    def restart(self, *, deployment: str) -> None:
        """A dead replica is started again."""
        self._restarts.labels(deployment).inc()

    def serve(self, host: str, port: int) -> tuple[WSGIServer, threading.Thread]:
        """Answer scrapes on a port of their own; raises ``OSError`` when it is in use."""
        return start_http_server(port, addr=host, registry=self.registry)
