"""Metrics of moderation services: how often each was asked, and what came of it."""

from prometheus_client import CollectorRegistry, Counter


class ModerationMetrics:
    """Label values are names of the settings and of this code."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._questions = Counter(
            "enginehouse_gateway_moderation_questions",
            "Questions for a moderation service, by outcome: judged, failed (no verdict in time), or not_asked because "
            "it failed several times in a row and is left alone for some seconds.",
            ("service", "outcome"),
            registry=registry,
        )

    def judged(self, service: str) -> None:
        """Count a question that got its verdicts."""
        self._questions.labels(service, "judged").inc()

    def failed(self, service: str) -> None:
        """Count a question that got none."""
        self._questions.labels(service, "failed").inc()

    def not_asked(self, service: str) -> None:
        """Count a question that was not put."""
        self._questions.labels(service, "not_asked").inc()
