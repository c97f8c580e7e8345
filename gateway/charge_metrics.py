"""Metrics of admitted requests: how they ended, and what tokens they were charged."""

from prometheus_client import CollectorRegistry, Counter

from gateway.admitted import Ended

_KINDS = ("input", "cached", "output")


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

        self._ends: dict[tuple[str, str, str, str], Counter] = {}
        self._kinds: dict[tuple[str, str, str], tuple[Counter, Counter, Counter]] = {}
        """Found once: to look one up among its like costs more than to count."""

    def ended(self, ended: Ended) -> None:
        """Count an admitted request that is over, and what it was charged."""
        end = (ended.tenant, ended.model, ended.deployment, ended.ending.end.value)
        counter = self._ends.get(end)
        if counter is None:
            counter = self._ends[end] = self._ended.labels(*end)
        counter.inc()
        if ended.settled is None:
            return
        usage = ended.settled.usage
        read, cached, written = self._of_kinds(ended.tenant, ended.model, ended.settled.basis.value)
        read.inc(usage.input_tokens)
        if usage.cached_tokens:
            cached.inc(usage.cached_tokens)
        written.inc(usage.output_tokens)

    def _of_kinds(self, tenant: str, model: str, basis: str) -> tuple[Counter, Counter, Counter]:
        key = (tenant, model, basis)
        found = self._kinds.get(key)
        if found is None:
            read, cached, written = (self._tokens.labels(tenant, model, kind, basis) for kind in _KINDS)
            found = self._kinds[key] = (read, cached, written)
        return found
