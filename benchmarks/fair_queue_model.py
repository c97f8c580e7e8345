"""A run of the fair-queue benchmark in virtual time: the real turns, queues, loads and router before modelled engines.

Every half second an engine says how many wait inside of it and how full its memory is; first tokens and ends are told
at once, as the guard tells them. No prompt is cached.
"""

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from fair_queue_engine import Asked, Engine, Fleet, Served

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewayTenant, QueueLimits
from gateway.fair_queue import FairQueue
from gateway.router import EngineMetrics, InFlight, Router, RoutingRequest
from gateway.token_usage import TokenUsage
from gateway.turn_words import Wish
from gateway.turns import Place, Turns

METRICS_SECONDS = 0.5
_NEVER_SECONDS = 1e9
_MODEL = "m"


@dataclass(slots=True)
class Run:
    """What a run came to."""

    asked: list[Asked]
    ended_at: float = 0.0
    served: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    """Each second, the service that every tenant has got so far."""

    def served_between(self, start: float, end: float) -> dict[str, float]:
        """The service of each tenant in a span of time."""
        before = next(counts for moment, counts in self.served if moment >= start)
        after = next((counts for moment, counts in self.served if moment >= end), self.served[-1][1])
        return {tenant: after[tenant] - before.get(tenant, 0.0) for tenant in after}


@dataclass(slots=True)
class _Sent:
    in_flight: InFlight
    place: Place | None


class FleetRun:
    """Requests arrive, wait for their turn as the queue says, and are served; without a queue nobody waits here."""

    def __init__(
        self, fleet: Fleet, asked: Iterable[Asked], new_queue: Callable[[], FairQueue] | None, seed: int
    ) -> None:
        self._engines = {f"127.0.0.1:{9000 + n}": Engine(fleet, 100 * seed + n) for n in range(fleet.engines)}
        endpoints = tuple(GatewayEndpoint(address=address) for address in self._engines)
        self._arm = GatewayArm(deployment="d", identity="i", engine="vllm", endpoints=endpoints)
        self._route = GatewayRoute(
            model=_MODEL,
            arms=(self._arm,),
            concurrent_requests=fleet.concurrent_requests,
            queue=QueueLimits.model_construct(max_waiting=10**9, max_wait_seconds=_NEVER_SECONDS),
        )
        self._router, self._chance = Router(), Random(seed)  # noqa: S311
        self._turns = None if new_queue is None else Turns(self._router, self._chance, new_queue=new_queue)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._now = 0.0
        self._served: Served = defaultdict(float)
        self._sent: dict[Asked, _Sent] = {}
        self._run = Run(sorted(asked, key=lambda one: one.at))
        self._open = len(self._run.asked)

    def run(self, until: float = math.inf) -> Run:
        """Everything until the last request is answered, or until a moment."""
        if self._turns is not None:
            tenants = {one.tenant for one in self._run.asked}
            self._turns.replace({(tenant, _MODEL): self._route for tenant in tenants}, tenants, 0.0)
        for one in self._run.asked:
            self._at(one.at, lambda one=one: self._arrive(one))  # type: ignore[misc]
        self._at(0.0, self._measure)
        self._at(0.0, self._note)
        while self._open and self._now < until:
            self._now, _, event = heapq.heappop(self._events)
            event()
        self._run.ended_at = self._now
        self._run.served.append((self._now, dict(self._served)))
        return self._run

    def _at(self, moment: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), event))

    def _arrive(self, one: Asked) -> None:
        request = RoutingRequest((), 1, one.input_tokens)
        choice = self._router.choose(request, self._arm.endpoints, self._now, self._chance)
        if self._turns is None:
            self._sent[one] = _Sent(self._router.send(choice, self._now), None)
            self._reach(one, choice.addresses[0])
            return
        tenant = GatewayTenant(name=one.tenant, queue_weight=one.weight)
        wish = Wish(tenant, self._route, self._arm, choice, 4 * one.output_tokens)
        place = self._turns.place(wish, self._now, lambda: self._go(one, place))
        self._turns.enter(place)

    def _go(self, one: Asked, place: Place) -> None:
        """Its turn; nobody is refused here, since neither queues nor patience end."""
        if place.in_flight is None:
            raise RuntimeError("a request was refused, though queues and patience have no end here")
        self._sent[one] = _Sent(place.in_flight, place)
        address = place.choice.addresses[0]
        self._at(self._now, lambda: self._reach(one, address))

    def _reach(self, one: Asked, address: str) -> None:
        engine = self._engines[address]
        engine.waiting.append(one)
        if not engine.is_stepping:
            self._step(engine)

    def _step(self, engine: Engine) -> None:
        chunks, seconds = engine.plan()
        engine.is_stepping = seconds > 0
        if seconds:
            self._at(self._now + seconds, lambda: self._stepped(engine, chunks))

    def _stepped(self, engine: Engine, chunks: list[tuple[Asked, int]]) -> None:
        begun, done = engine.commit(chunks, self._served)
        for one in begun:
            one.first_token_at = self._now
            self._sent[one].in_flight.first_token(self._now)
        for one in done:
            self._end(one)
        if begun and self._turns is not None:
            self._turns.pump(self._now)
        self._step(engine)

    def _end(self, one: Asked) -> None:
        self._open -= 1
        sent = self._sent.pop(one)
        sent.in_flight.end(self._now)
        if sent.place is not None:
            sent.place.leave(self._now, TokenUsage(one.input_tokens, 0, one.output_tokens))

    def _measure(self) -> None:
        for address, engine in self._engines.items():
            waiting = len(engine.waiting)
            self._router.measured(address, EngineMetrics(self._now, engine.running, waiting, engine.kv_usage))
        if self._turns is not None:
            self._turns.pump(self._now)
        self._at(self._now + METRICS_SECONDS, self._measure)

    def _note(self) -> None:
        self._run.served.append((self._now, dict(self._served)))
        self._at(self._now + 1.0, self._note)
