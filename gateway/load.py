"""How busy each endpoint is: what was sent to it and has not ended, exactly, and what it says itself. Pure.

Prompt tokens wait in an engine until it has computed them, first come first served; the first token of the answer says
that a prompt is done. What gateways that share nothing with this one have sent is seen in the engine's metrics alone.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from gateway.endpoint_load import (
    KV_FULL,
    LEAD_SECONDS,
    QUEUE_FULL,
    STALE_SECONDS,
    USELESS_SECONDS,
    EndpointLoad,
    EngineMetrics,
    InFlight,
)

__all__ = ["DEFAULT_PREFILL_TOKENS_PER_SECOND", "EngineMetrics", "InFlight", "Load", "LoadBook"]

DEFAULT_PREFILL_TOKENS_PER_SECOND = 10_000.0
_FIRST_GUESS_TOKENS = 1_000.0
_MEAN_OF_REQUESTS = 256
_AS_FAST = 1.5
"""Endpoints are taken for equally fast unless the fastest is so many times as fast: those of one deployment have equal
hardware, and what was measured differs by chance. Taken at its word, it would send all prompts of a quiet fleet to the
one endpoint that seems a little faster, whose cache can't hold them, beside others that have nothing to do."""


class Load(NamedTuple):
    """How busy one endpoint is at one moment."""

    in_flight: int = 0
    """Requests that have not ended."""
    queued_tokens: float = 0.0
    """Uncached prompt tokens that are computed before a new prompt, those of other gateways estimated."""
    tokens_per_second: float = DEFAULT_PREFILL_TOKENS_PER_SECOND
    given_tokens: float = 0.0
    """Uncached tokens that it was given; the long past fades."""
    kv_usage: float = 0.0
    saturation: float = 0.0
    """1.0 = full: KV memory at 80 % or 5 requests waiting. An endpoint whose metrics are stale counts as full."""


class LoadBook:
    """The load of all endpoints."""

    def __init__(self, *, prefill_tokens_per_second: float = DEFAULT_PREFILL_TOKENS_PER_SECOND) -> None:
        self._tokens_per_second = prefill_tokens_per_second
        self._endpoints: dict[str, EndpointLoad] = {}
        self._mean_tokens = _FIRST_GUESS_TOKENS
        self._started = 0

    def start(self, address: str, uncached_tokens: int, now: float, *, is_watched: bool = True) -> InFlight:
        """A request was sent; ``is_watched`` = its first token will be told, else it is estimated by the rate."""
        self._started = min(self._started + 1, _MEAN_OF_REQUESTS)
        self._mean_tokens += (uncached_tokens - self._mean_tokens) / self._started
        return InFlight(self._of(address), uncached_tokens, now, is_watched=is_watched)

    def measured(self, address: str, metrics: EngineMetrics) -> None:
        """An engine's metrics were read; they may be late, but not older than those that are known."""
        self._of(address).measured(metrics)

    def loads(self, addresses: Iterable[str], now: float) -> list[Load]:
        """The loads in the order of the addresses.

        An endpoint whose rate is not known yet is taken to be as fast as the fastest of the others: taken for slow, it
        would get nothing and never be known. So is one that is nearly as fast.
        """
        found = [self._endpoints.get(address) for address in addresses]
        busiest, fastest = 0, 0.0
        for item in found:
            if item is None:
                continue
            if item.others_waiting > busiest and _is_fresh(item, now):
                busiest = item.others_waiting
            rate = item.measured_rate
            if rate is not None and rate > fastest:
                fastest = rate
        fastest = fastest or self._tokens_per_second
        unknown = Load(0, busiest * self._mean_tokens, fastest)
        return [unknown if item is None else self._load(item, busiest, fastest, now) for item in found]

    def below(self, addresses: Iterable[str], most_requests: int) -> list[str]:
        """Those that have fewer requests than this."""
        endpoints, found = self._endpoints, []
        for address in addresses:
            endpoint = endpoints.get(address)
            if endpoint is None or endpoint.in_flight < most_requests:
                found.append(address)
        return found

    def fullness(self, address: str, now: float, lead_seconds: float = LEAD_SECONDS) -> float:
        """How full an endpoint is, 1.0 = it should get nothing more; one that nothing is known of is empty."""
        endpoint = self._endpoints.get(address)
        return 0.0 if endpoint is None else endpoint.fullness(now, lead_seconds)

    def in_flight(self, address: str) -> int:
        """Requests at one endpoint that have not ended."""
        endpoint = self._endpoints.get(address)
        return 0 if endpoint is None else endpoint.in_flight

    def restarted(self, address: str) -> None:
        """An engine has lost all that it was doing; what was sent to it before ends without an effect."""
        self._endpoints.pop(address, None)

    def keep_only(self, addresses: Collection[str]) -> None:
        """Forget the endpoints that are not among these."""
        for address in [known for known in self._endpoints if known not in addresses]:
            del self._endpoints[address]

    def _of(self, address: str) -> EndpointLoad:
        endpoint = self._endpoints.get(address)
        if endpoint is None:
            endpoint = self._endpoints[address] = EndpointLoad(self._tokens_per_second)
        return endpoint

    def _load(self, endpoint: EndpointLoad, busiest: int, fastest: float, now: float) -> Load:
        others, saturation, kv_usage = busiest, 0.0, 0.0
        metrics, rate = endpoint.metrics, endpoint.measured_rate
        if metrics is not None:
            others = endpoint.others_waiting
            age = now - metrics.measured_at
            others = others if age <= USELESS_SECONDS else 0
            kv_usage = metrics.kv_usage
            saturation = max(kv_usage / KV_FULL, metrics.waiting / QUEUE_FULL)
            if age > STALE_SECONDS:
                others, saturation = max(others, busiest), max(saturation, 1.0)
        return Load(
            endpoint.in_flight,
            endpoint.queued_tokens(now) + others * self._mean_tokens,
            fastest if rate is None or rate * _AS_FAST >= fastest else rate,
            endpoint.given_tokens(now),
            kv_usage,
            saturation,
        )


def _is_fresh(endpoint: EndpointLoad, now: float) -> bool:
    return endpoint.metrics is not None and now - endpoint.metrics.measured_at <= STALE_SECONDS
