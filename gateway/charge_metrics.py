"""Metrics of admitted requests: how they ended, and what tokens they were charged."""

from prometheus_client import CollectorRegistry, Counter

from gateway.admitted import Ended


class ChargeMetrics:
    """Label values are names of the snapshot or of this code, never a client's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "enginehouse_gateway_requests_ended",
            "Admitted requests that are over, by how they ended.",
            ("tenant", "model", "deployment", "end"),
            registry=registry,
        )
        self._tokens = Counter(
            "enginehouse_gateway_tokens",
            "Tokens that were charged; kind is input, cached (a part of it) or output, basis is where they are from.",
            ("tenant", "model", "kind", "basis"),
            registry=registry,
        )

    def ended(self, ended: Ended) -> None:
        """Count an admitted request that is over, and what it was charged."""
        self._ended.labels(ended.tenant, ended.model, ended.deployment, ended.ending.end.value).inc()
        if ended.settled is None:
            return
        usage, basis = ended.settled.usage, ended.settled.basis.value
        kinds = {"input": usage.input_tokens, "cached": usage.cached_tokens, "output": usage.output_tokens}
        for kind, tokens in kinds.items():
            self._tokens.labels(ended.tenant, ended.model, kind, basis).inc(tokens)
