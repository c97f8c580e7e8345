"""Metrics of WebSocket connections: how many are open, how they ended, and what came of their turns."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

_KNOWN_CODES = frozenset({1000, 1001, 1003, 1006, 1007, 1008, 1009, 1011, 1012})


class SocketMetrics:
    """Label values are names of the snapshot or of this code, never a client's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._open = Gauge(
            "enginehouse_gateway_websockets_open", "WebSocket connections that are open now.", registry=registry
        )
        self._closed = Counter(
            "enginehouse_gateway_websockets_closed",
            "WebSocket connections that ended, by close code; other = none of those that this gateway knows.",
            ("code",),
            registry=registry,
        )
        self._turns = Counter(
            "enginehouse_gateway_websocket_turns",
            "Turns over WebSocket by tenant and outcome: streamed, refused, failed, or without any answer.",
            ("tenant", "outcome"),
            registry=registry,
        )

    def watch_open(self, count: Callable[[], float]) -> None:
        """Ask at each scrape."""
        self._open.set_function(count)

    def closed(self, code: int | None) -> None:
        """Count a connection that is over."""
        self._closed.labels(str(code) if code in _KNOWN_CODES else "other").inc()

    def turn(self, tenant: str, status: int) -> None:
        """Count a turn that is over, by the status that it was answered with; 0 = none."""
        self._turns.labels(tenant, _outcome(status)).inc()


def _outcome(status: int) -> str:
    if status == 200:
        return "streamed"
    if not status:
        return "unanswered"
    return "refused" if status < 500 else "failed"
