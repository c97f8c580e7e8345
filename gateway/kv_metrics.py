"""Metrics about what engines say of the prompts that they hold."""

from prometheus_client import CollectorRegistry, Counter


class KvMetrics:
    """Label values are names of deployments in the snapshot, and of this code."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._events = Counter(
            "enginehouse_gateway_kv_events",
            "KV events of engines; kind is stored, removed, cleared or unread (of no use for prefixes).",
            ("deployment", "kind"),
            registry=registry,
        )
        self._faults = Counter(
            "enginehouse_gateway_kv_event_faults",
            "What was not heard; reason is missed, unreadable, unplaced (blocks after an unknown one) or no_replay.",
            ("deployment", "reason"),
            registry=registry,
        )

    def event(self, deployment: str, kind: str, count: int = 1) -> None:
        """Count events."""
        if count:
            self._events.labels(deployment, kind).inc(count)

    def fault(self, deployment: str, reason: str, count: int = 1) -> None:
        """Count what went wrong."""
        if count:
            self._faults.labels(deployment, reason).inc(count)
