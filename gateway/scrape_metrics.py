"""Metrics about reading engines' metrics: what failed, and how old the figures are that requests are routed by."""

import math
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gateway.router import EngineMetrics


class ScrapeMetrics(Collector):
    """Label values are names of deployments in the snapshot, and of this code."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deployments: Mapping[str, str] = {}
        self._read: dict[str, EngineMetrics] = {}
        self._failures = Counter(
            "enginehouse_gateway_engine_scrape_failures",
            "Attempts to read an engine's metrics that failed; the figures before go on and grow old.",
            ("deployment", "reason"),
            registry=registry,
        )
        self._restarts = Counter(
            "enginehouse_gateway_engine_restarts",
            "Engines that turned out to be another process than before; nothing is believed to be cached there.",
            ("deployment",),
            registry=registry,
        )
        registry.register(self)

    def keep_only(self, deployments: Mapping[str, str]) -> None:
        """Show the age of these endpoints (address -> deployment) and of no others."""
        self._deployments = deployments
        self._read = {address: figures for address, figures in self._read.items() if address in deployments}

    def read(self, address: str, figures: EngineMetrics) -> None:
        """An engine's metrics were read."""
        self._read[address] = figures

    def failed(self, deployment: str, reason: str) -> None:
        """They could not be read."""
        self._failures.labels(deployment, reason).inc()

    def restarted(self, deployment: str) -> None:
        """An engine is a new process."""
        self._restarts.labels(deployment).inc()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The families without samples."""
        yield from self._families()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The figures at this moment."""
        age, requests, usage = self._families()
        for deployment, figures in self._by_deployment().items():
            age.add_metric((deployment,), max(self._age(one) for one in figures))
            known = [one for one in figures if one is not None]
            requests.add_metric((deployment, "running"), sum(one.running for one in known))
            requests.add_metric((deployment, "waiting"), sum(one.waiting for one in known))
            usage.add_metric((deployment,), max((one.kv_usage for one in known), default=math.nan))
        yield from (age, requests, usage)

    def _by_deployment(self) -> Mapping[str, list[EngineMetrics | None]]:
        found: dict[str, list[EngineMetrics | None]] = {}
        for address, deployment in self._deployments.items():
            found.setdefault(deployment, []).append(self._read.get(address))
        return found

    def _age(self, figures: EngineMetrics | None) -> float:
        return math.inf if figures is None else max(0.0, self._clock() - figures.measured_at)

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                "enginehouse_gateway_engine_metrics_age_seconds",
                "Age of the oldest figures of a deployment's engines; +Inf where one was never read.",
                labels=("deployment",),
            ),
            GaugeMetricFamily(
                "enginehouse_gateway_engine_stated_requests",
                "Requests in a deployment's engines as they last said; state is running or waiting.",
                labels=("deployment", "state"),
            ),
            GaugeMetricFamily(
                "enginehouse_gateway_engine_kv_usage",
                "Share of the KV cache in use in the fullest of a deployment's engines; NaN where none was read.",
                labels=("deployment",),
            ),
        )
