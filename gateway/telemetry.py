"""What the gateway shows about itself: metrics and health, without content and without keys."""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from gateway.closed_metrics import ClosedMetrics
from gateway.credential_metrics import CredentialMetrics
from gateway.decision import Answered, Decision
from gateway.exchange import HttpResponse
from gateway.http_protocol import HttpRequest
from gateway.index import SnapshotIndex
from gateway.refusals import Refused
from gateway.version_metrics import VersionMetrics

_NOBODY = "unknown"
_DECISION_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)


class Telemetry:
    """The metrics of one gateway process. Label values are names of the snapshot or of this code, never a client's."""

    def __init__(self) -> None:
        self._waiting_of: Callable[[str], int] = lambda _: 0
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "enginehouse_gateway_requests",
            "Decisions by tenant, model and outcome; the outcome is allowed, answered or the code of the refusal.",
            ("tenant", "model", "outcome"),
            registry=self.registry,
        )
        self._outcomes: dict[tuple[str, str, str], Counter] = {}
        self._decision_seconds = Histogram(
            "enginehouse_gateway_decision_seconds",
            "Time from a whole request to its decision.",
            buckets=_DECISION_SECONDS,
            registry=self.registry,
        )
        self._closed = ClosedMetrics(self.registry)
        self._credentials = CredentialMetrics(self.registry)
        self._waiting = Gauge(
            "enginehouse_gateway_requests_waiting",
            "Admitted requests of a model that wait in the gateway for room at an engine.",
            ("model",),
            registry=self.registry,
        )
        self._snapshot_age = Gauge(
            "enginehouse_gateway_snapshot_age_seconds",
            "Time since the control plane last confirmed the snapshot in use; NaN before the first.",
            registry=self.registry,
        )
        self._left_out = Gauge(
            "enginehouse_gateway_snapshot_left_out",
            "Endpoints and arms of the snapshot in use that are malformed and therefore left out; the log names them.",
            registry=self.registry,
        )
        self._version = VersionMetrics(self.registry)
        self._sync_failures = Counter(
            "enginehouse_gateway_sync_failures",
            "Attempts to get or apply a snapshot that failed.",
            registry=self.registry,
        )

    def decided(self, decision: Decision, seconds: float) -> None:
        """Count one decision."""
        self._decision_seconds.observe(seconds)
        if isinstance(decision, Refused):
            self.count(decision.tenant, decision.model, decision.reason.value)
            if decision.closed is not None:
                self._closed.refused(decision.model or _NOBODY, decision.closed)
            if decision.credential is not None:
                self._credentials.refused(*decision.credential)
        elif isinstance(decision, Answered):
            self.count(decision.tenant, None, "answered")
        else:
            self.count(decision.tenant, decision.model, "allowed")

    def count(self, tenant: str | None, model: str | None, outcome: str) -> None:
        """Count one outcome."""
        key = (tenant or _NOBODY, model or _NOBODY, outcome)
        counter = self._outcomes.get(key)
        if counter is None:
            counter = self._outcomes[key] = self._requests.labels(*key)
        counter.inc()

    def sync_failed(self) -> None:
        """Count one failed attempt."""
        self._sync_failures.inc()

    def show_version(self, *, is_older: bool) -> None:
        """Show whether the control plane's snapshots are of a newer form than this gateway reads."""
        self._version.show(is_older=is_older)

    def watch_snapshot_age(self, age_seconds: Callable[[], float]) -> None:
        """Ask for the age at each scrape."""
        self._snapshot_age.set_function(age_seconds)

    def watch_waiting(self, waiting: Callable[[str], int]) -> None:
        """Ask at each scrape how many requests of a model wait."""
        self._waiting_of = waiting

    def show_models(self, index: SnapshotIndex) -> None:
        """Show a figure for each model of the snapshot and for no other, and how much of it could not be used."""
        self._left_out.set(len(index.unusable_addresses) + len(index.unusable_arms))
        self._waiting.clear()
        for model in index.all_models:
            self._waiting.labels(model).set_function(partial(self._count_waiting, model))

    def _count_waiting(self, model: str) -> float:
        return self._waiting_of(model)


def telemetry_page(telemetry: Telemetry, is_ready: Callable[[], bool]) -> Callable[[HttpRequest], HttpResponse]:
    """The handler of the metrics port: ``/metrics``, ``/livez`` and ``/readyz``."""

    def handle(request: HttpRequest) -> HttpResponse:
        path = request.target.partition("?")[0]
        if request.method not in {"GET", "HEAD"}:
            return HttpResponse(405, (("allow", "GET, HEAD"),))
        if path == "/metrics":
            return HttpResponse(200, (("content-type", CONTENT_TYPE_LATEST),), generate_latest(telemetry.registry))
        if path == "/livez":
            return _text(200, "ok\n")
        if path == "/readyz":
            return _text(200, "ok\n") if is_ready() else _text(503, "no snapshot from the control plane yet\n")
        return _text(404, "served are /metrics, /livez and /readyz\n")

    return handle


def _text(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, (("content-type", "text/plain; charset=utf-8"),), text.encode())
