"""How many credentials were refused, and why; a label says words of this code alone."""

from prometheus_client import CollectorRegistry, Counter


class CredentialMetrics:
    """The metric of refused credentials."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refused = Counter(
            "enginehouse_gateway_credentials_refused",
            "Requests without a credential that counts; kind is key or token, flaw is why.",
            ("kind", "flaw"),
            registry=registry,
        )

    def refused(self, kind: str, flaw: str) -> None:
        """Count one."""
        self._refused.labels(kind, flaw).inc()
