"""Replays a trace on the real router against the reference model of an engine fleet, event by event.

The model: a prefix cache of full blocks per replica (the last token is never cached), prompts computed one after the
other at a fixed rate, decoding at a fixed time per token without a limit. The times of the trace are stretched so that
its prompts without any cache would load the fleet as wished.
"""

import heapq
import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fleet.snapshot import GatewayEndpoint
from gateway.router import EngineMetrics, PolicyName, RouterSettings, RoutingRequest
from simulator.replay_gateways import SHARING_DELAY_SECONDS, Gateways, Sent, Sharing, address_of
from simulator.replay_replica import Admitted, Replica
from simulator.replay_result import ReplayResult
from simulator.trace_file import Trace, TracedRequest, TraceSummary

__all__ = ["PolicyName", "ReplayResult", "ReplaySettings", "Sharing", "replay"]


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """A fleet, its load, and what goes wrong."""

    policy: PolicyName
    replicas: int
    cache_blocks: int
    load: float = 0.7
    seed: int = 0
    block_tokens: int = 512
    prefill_tokens_per_second: float = 10_000.0
    seconds_per_output_token: float = 0.03
    gateways: int = 1
    sharing: Sharing = Sharing.NONE
    metrics_interval_seconds: float = 0.5
    metrics_delay_seconds: float = 0.0
    restart_at_seconds: float | None = None
    """When the first replica loses its cache and its requests."""
    restart_seconds: float = 30.0
    """How long it is away then."""


@dataclass(slots=True, eq=False)
class _Live:
    """A request that has not ended."""

    traced: TracedRequest
    routed: RoutingRequest
    arrived_at: float
    gateway: int
    sent: Sent | None = None
    has_first_token: bool = False


@dataclass(slots=True)
class _Tally:
    ttft_seconds: "array[float]" = field(default_factory=lambda: array("d"))
    prompt_tokens: int = 0
    cached_tokens: int = 0


def replay(
    trace: Trace,
    settings: ReplaySettings,
    progress: Callable[[int, int], None] | None = None,
    summary: TraceSummary | None = None,
) -> ReplayResult:
    """Replay a whole trace; ``progress`` is told (requests done, all requests), a known summary need not be made."""
    summary = summary or trace.summary(settings.block_tokens)
    return _Replay(settings).run(_stretched(trace, summary, settings), summary.requests, progress)


def _stretched(trace: Trace, summary: TraceSummary, settings: ReplaySettings) -> Iterator[tuple[float, TracedRequest]]:
    busy_seconds = summary.input_tokens / settings.prefill_tokens_per_second
    wished_seconds = busy_seconds / (settings.load * settings.replicas)
    duration = summary.duration_seconds
    factor = wished_seconds / duration if duration > 0 else 0.0
    for request in trace.in_order(summary):
        yield (request.at_seconds - summary.first_seconds) * factor, request


class _Replay:
    def __init__(self, settings: ReplaySettings) -> None:
        self._settings = settings
        self._replicas = {
            address_of(index): Replica(settings.cache_blocks, settings.prefill_tokens_per_second)
            for index in range(settings.replicas)
        }
        self._endpoints = [GatewayEndpoint(address=address) for address in self._replicas]
        self._gateways = Gateways(
            settings.gateways,
            RouterSettings(
                policy=settings.policy,
                prefill_tokens_per_second=settings.prefill_tokens_per_second,
                most_blocks=settings.cache_blocks,
                ttl_seconds=math.inf,
                gateways=settings.gateways,
            ),
            settings.cache_blocks * settings.block_tokens,
            settings.block_tokens,
            settings.replicas,
            settings.seed,
        )
        self._live: dict[str, dict[_Live, None]] = {address: {} for address in self._replicas}
        self._away: set[str] = set()
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = 0
        self._tally = _Tally()
        self._is_measuring = False

    def run(
        self,
        arrivals: Iterable[tuple[float, TracedRequest]],
        count: int,
        progress: Callable[[int, int], None] | None,
    ) -> ReplayResult:
        if self._settings.restart_at_seconds is not None:
            self._at(self._settings.restart_at_seconds, self._restart)
        for done, (now, traced) in enumerate(arrivals):
            self._run_events(now)
            self._arrive(traced, now)
            if progress is not None:
                progress(done, count)
        self._run_events(math.inf)
        return self._result()

    def _at(self, moment: float, event: Callable[[float], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (moment, self._order, event))

    def _run_events(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            moment, _, event = heapq.heappop(self._events)
            event(moment)

    # --- Requests ---
    def _arrive(self, traced: TracedRequest, now: float) -> None:
        settings = self._settings
        full = max(0, traced.input_tokens - 1) // settings.block_tokens
        routed = RoutingRequest(traced.blocks[:full], settings.block_tokens, traced.input_tokens)
        if settings.policy is PolicyName.ESTIMATED_TTFT and not self._is_measuring:
            self._is_measuring = True
            self._at(now + settings.metrics_interval_seconds, self._measure)
        self._send(_Live(traced, routed, now, self._gateways.any()), now)

    def _send(self, live: _Live, now: float) -> None:
        present = [item for item in self._endpoints if item.address not in self._away] or self._endpoints
        sent = live.sent = self._gateways.send(live.gateway, live.routed, present, now)
        replica = self._replicas[sent.address]
        admitted = replica.admit(live.routed.blocks, live.traced.input_tokens, self._settings.block_tokens, now)
        self._live[sent.address][live] = None
        self._tally.prompt_tokens += live.traced.input_tokens
        self._tally.cached_tokens += admitted.cached_blocks * self._settings.block_tokens
        self._at(admitted.first_token_at, lambda moment: self._first_token(live, sent, moment))
        self._share(live, sent, admitted, now)

    def _first_token(self, live: _Live, sent: Sent, now: float) -> None:
        if live.sent is not sent:
            return
        live.has_first_token = True
        self._tally.ttft_seconds.append(now - live.arrived_at)
        sent.own.first_token(now)
        for told in sent.told:
            told.first_token(now)
        end = now + live.traced.output_tokens * self._settings.seconds_per_output_token
        self._at(end, lambda moment: self._end(live, sent, moment))

    def _end(self, live: _Live, sent: Sent, now: float) -> None:
        if live.sent is not sent:
            return
        live.sent = None
        self._replicas[sent.address].ended()
        del self._live[sent.address][live]
        self._forget(sent, now)

    def _forget(self, sent: Sent, now: float) -> None:
        sent.own.end(now)
        for told in sent.told:
            told.end(now)

    # --- What gateways hear ---
    def _share(self, live: _Live, sent: Sent, admitted: Admitted, now: float) -> None:
        sharing, later = self._settings.sharing, now + SHARING_DELAY_SECONDS
        if sharing is Sharing.STATE and self._settings.gateways > 1:
            self._at(later, lambda moment: self._gateways.tell_others(live.gateway, sent, moment))
        elif sharing is Sharing.KV_EVENTS:
            new = live.routed.blocks[admitted.cached_blocks :]
            self._at(later, lambda moment: self._gateways.stored(sent.address, new, admitted.removed, moment))

    def _measure(self, now: float) -> None:
        delay = self._settings.metrics_delay_seconds
        measured = [
            (address, EngineMetrics(now, replica.running, replica.waiting(now)))
            for address, replica in self._replicas.items()
            if address not in self._away
        ]
        self._at(now + delay, lambda _: self._tell_metrics(measured))
        self._is_measuring = any(self._live.values())
        if self._is_measuring:  # an idle fleet is not measured: a trace may be quiet for days
            self._at(now + self._settings.metrics_interval_seconds, self._measure)

    def _tell_metrics(self, measured: list[tuple[str, EngineMetrics]]) -> None:
        for address, metrics in measured:
            self._gateways.measured(address, metrics)

    # --- What goes wrong ---
    def _restart(self, now: float) -> None:
        address = next(iter(self._replicas))
        self._away.add(address)
        self._replicas[address].restart()
        lost, self._live[address] = list(self._live[address]), {}
        for live in lost:
            if live.sent is not None:
                self._forget(live.sent, now)
                live.sent = None
        for live in lost:
            if not live.has_first_token:
                self._send(live, now)
        self._at(now + self._settings.restart_seconds, self._come_back)

    def _come_back(self, now: float) -> None:
        address = next(iter(self._replicas))
        self._away.discard(address)
        self._gateways.restarted(address)

    def _result(self) -> ReplayResult:
        replicas = list(self._replicas.values())
        return ReplayResult(
            prompt_tokens=self._tally.prompt_tokens,
            cached_tokens=self._tally.cached_tokens,
            ttft_seconds=self._tally.ttft_seconds,
            per_replica_requests=tuple(replica.requests for replica in replicas),
            per_replica_tokens=tuple(replica.computed_tokens for replica in replicas),
        )
