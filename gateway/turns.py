"""Whose turn it is at the engines of every pool: while they are full, requests wait in fair queues. Pure.

A pool is the engines of one arm. It is full while each of its endpoints is, or while the route has as many requests at
engines as it may. A turn is given at once when there is room and nobody waits; whoever waited is routed anew, among the
endpoints that have room at that moment, and counts there at once.
"""

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from random import Random

from fleet.snapshot import GatewayArm, GatewayRoute
from gateway.arms import arms_for, pick_arm, pool_of
from gateway.fair_queue import FairQueue, Waiting
from gateway.pool_room import Room, Slots, limits_of
from gateway.refusals import Reason, Refused, refuse
from gateway.router import InFlight, Router
from gateway.running_shares import RunningModels, RunningShares
from gateway.service_cost import OutputGuess, service
from gateway.token_lease import THE_WHOLE, Share
from gateway.token_usage import TokenUsage
from gateway.turn_words import Outcome, Waited, Wish, refusal_message

_CONVERSATION_BYTES = 8
_MEMORY = 8
"""Of how many turns the usual wait is learned."""


class Place:
    """The place of one request at a pool. It leaves once, whatever became of it."""

    def __init__(self, turns: "Turns", wish: Wish, now: float, then: Callable[[], None]) -> None:
        self.wish = wish
        self.arm = wish.arm
        self.choice = wish.choice
        self.refused: Refused | None = None
        self.in_flight: InFlight | None = None
        """At the first endpoint of the choice, from its turn on."""
        self.waiting: Waiting | None = None
        """Also after its turn, for the correction of its cost."""
        self.came_at = now
        self.then = then
        self._turns = turns
        self._has_left = False

    @property
    def has_turn(self) -> bool:
        """Whether it may go."""
        return self.in_flight is not None

    def leave(self, now: float, usage: TokenUsage | None = None) -> None:
        """It is over here; ``usage`` = what it took, where that is known."""
        if not self._has_left:
            self._has_left = True
            self._turns.left(self, usage, now)


class _Pool:
    """The engines of one arm and those that wait for them."""

    def __init__(self, arm: GatewayArm, queue: FairQueue) -> None:
        self.arm = arm
        self.queue = queue
        self.places: dict[Waiting, Place] = {}
        self.shares = RunningShares()
        self.costs: dict[Place, float] = {}
        """What those that have their turn were expected to cost."""
        self.waited_seconds = 0.0
        """About what those waited who had their turn last."""


class Turns:
    """All pools of one gateway."""

    def __init__(
        self,
        router: Router,
        chance: Random,
        on_waited: Callable[[Waited], None] = lambda _: None,
        *,
        new_queue: Callable[[], FairQueue] = FairQueue,
        share: Share = THE_WHOLE,
    ) -> None:
        self._router = router
        self._chance = chance
        self._on_waited = on_waited
        self._new_queue = new_queue
        self._share = share
        self._guess = OutputGuess()
        self._pools: dict[str, _Pool] = {}
        self._running = RunningModels()
        self._routes: Mapping[tuple[str, str], GatewayRoute] = {}
        self._limits: dict[str, tuple[int, int]] = {}
        """Of each model: the most requests that engines may have, and how many endpoints there are."""

    def __len__(self) -> int:
        """Requests that wait."""
        return sum(len(pool.queue) for pool in self._pools.values())

    @property
    def running(self) -> int:
        """Requests that have had their turn and have not left."""
        return self._running.requests

    def waiting(self, model: str) -> int:
        """How many requests of a model wait."""
        return sum(pool.queue.in_flow(model) for pool in self._pools.values())

    def replace(self, routes: Mapping[tuple[str, str], GatewayRoute], tenants: Collection[str], now: float) -> None:
        """Other routes (by tenant and model) from now on; who waits for an arm that is gone moves to another."""
        self._routes = routes
        self._limits = limits_of(routes.values(), self._share)
        self._guess.keep_only(tenants)
        arms = {pool_of(arm): arm for route in routes.values() for arm in route.arms}
        for key, pool in tuple(self._pools.items()):
            pool.queue.keep_only(tenants)
            if key in arms:
                pool.arm = arms[key]
                continue
            for place in tuple(pool.places.values()):
                self._move(pool, place, now)
            if not pool.costs:
                del self._pools[key]
        self.pump(now)

    def place(self, wish: Wish, now: float, then: Callable[[], None] = lambda: None) -> Place:
        """A place for a request that comes now; ``then`` is called when it need not wait any longer."""
        return Place(self, wish, now, then)

    def enter(self, place: Place) -> None:
        """It has its turn, or waits, or is refused."""
        now, limits = place.came_at, place.wish.route.queue
        pool = self._pool(place.arm)
        if self._goes_at_once(pool, place, now):
            return
        self._join(pool, place, now + limits.max_wait_seconds, now)
        if place.refused is None:
            self._serve(pool, now)
            if place.waiting in pool.places and not limits.max_waiting:
                self._refuse(pool, place, Outcome.QUEUE_FULL, now)

    def pump(self, now: float) -> None:
        """Give every turn that there is room for, and refuse those whose time is over."""
        for pool in tuple(self._pools.values()):
            if len(pool.queue):
                for item in pool.queue.expire(now):
                    self._refuse(pool, pool.places[item], Outcome.QUEUE_TIMEOUT, now)
                self._serve(pool, now)

    def left(self, place: Place, usage: TokenUsage | None, now: float) -> None:
        """A place is given up."""
        item = place.waiting
        if item is None or place.refused is not None:
            return
        pool = self._pools[pool_of(place.arm)]
        if place.in_flight is None:
            pool.queue.leave(item)
            del pool.places[item]
            self._tell(place, Outcome.LEFT, now)
            return
        place.in_flight.end(now)
        if usage is not None:
            tenant = place.wish.tenant.name
            if usage.output_tokens:
                self._guess.learn(tenant, usage.output_tokens)
            pool.queue.correct(item, service(usage.input_tokens, usage.cached_tokens, usage.output_tokens))
        pool.shares.end(item.tenant, item.cost - pool.costs.pop(place), now)
        self._running.end(place.wish.model, place.choice.addresses[0])
        self.pump(now)

    # --- Inside ---
    def _pool(self, arm: GatewayArm) -> _Pool:
        pool = self._pools.get(pool_of(arm))
        if pool is None:
            pool = self._pools[pool_of(arm)] = _Pool(arm, self._new_queue())
        return pool

    def _goes_at_once(self, pool: _Pool, place: Place, now: float) -> bool:
        """The common case, in which nothing is to be looked for: nobody waits, and its first choice has room."""
        wish = place.wish
        if len(pool.queue) or wish.model in self._limits or not wish.choice.candidates:
            return False
        if pool.shares.is_above(wish.tenant.name) or not self._router.has_room(wish.choice.addresses[0], now):
            return False
        item = place.waiting = self._item(wish, now)
        pool.queue.serve_at_once(item)
        self._start(pool, place, item, now)
        return True

    def _item(self, wish: Wish, deadline: float) -> Waiting:
        tenant = wish.tenant
        return Waiting(tenant.name, self._cost(wish), deadline, tenant.priority, tenant.queue_weight, wish.model)

    def _join(self, pool: _Pool, place: Place, deadline: float, now: float) -> None:
        wish = place.wish
        item = place.waiting = self._item(wish, deadline)
        pool.places[item] = place
        if pool.queue.is_hopeless(item, now):
            self._refuse(pool, place, Outcome.QUEUE_TIMEOUT, now)
            return
        out = pool.queue.join(item, max(1, wish.route.queue.max_waiting))
        if out is not None:
            self._refuse(pool, pool.places[out], Outcome.QUEUE_FULL, now)

    def _cost(self, wish: Wish) -> float:
        best, prompt_tokens = next(iter(wish.choice.candidates), None), wish.choice.request.prompt_tokens
        output = min(self._guess.tokens(wish.tenant.name), wish.most_output_tokens)
        return service(prompt_tokens, 0 if best is None else best.cached_tokens, output)

    def _serve(self, pool: _Pool, now: float) -> None:
        """Turns, while there is room."""
        while len(pool.queue):
            room = Room(self._router, pool.arm, pool.shares, self._slots, now)
            top = pool.queue.top_priority(now, room.has_slot) if room.any else None
            if top is None:
                return
            item = pool.queue.take(now, partial(_may_go, room, top))
            if item is None:
                return
            place = pool.places.pop(item)
            self._choose(pool, place, item, room, now)
            self._start(pool, place, item, now)

    def _slots(self, model: str) -> Slots | None:
        found = self._limits.get(model)
        return None if found is None else Slots(self._running.of(model), *found, partial(self._running.at, model))

    def _choose(self, pool: _Pool, place: Place, item: Waiting, room: Room, now: float) -> None:
        """Where it goes: as planned if it did not wait and takes no kept place, else by how things stand now."""
        planned, roomy = place.choice.addresses, room.of(item)
        short = room.short(item) if self._router.spreads_places else frozenset()
        free = {endpoint.address for endpoint in roomy}
        if now > place.came_at or not planned or planned[0] in short or not free.issuperset(planned):
            request, few = place.wish.choice.request, bool(short)
            choice = self._router.choose(request, roomy, now, self._chance, pool=pool_of(pool.arm), places_are_few=few)
            place.choice = choice if choice.candidates else place.choice

    def _start(self, pool: _Pool, place: Place, item: Waiting, now: float) -> None:
        """It has its turn, and counts at its endpoint from now on."""
        wish = place.wish
        place.in_flight = self._router.send(place.choice, now, is_watched=wish.is_watched)
        pool.costs[place] = item.cost
        pool.shares.start(item.tenant, item.cost, item.weight, now)
        pool.waited_seconds += (now - place.came_at - pool.waited_seconds) / _MEMORY
        self._running.start(wish.model, place.choice.addresses[0])
        self._tell(place, Outcome.TURN, now)

    def _refuse(self, pool: _Pool, place: Place, outcome: Outcome, now: float) -> None:
        wish, item = place.wish, place.waiting
        if item is not None:
            pool.queue.leave(item)
            pool.places.pop(item, None)
        seconds = max(1, math.ceil(pool.waited_seconds))
        place.refused = refuse(
            Reason(outcome.value),
            refusal_message(wish, outcome),
            headers=(("retry-after", str(seconds)),),
            tenant=wish.tenant.name,
            model=wish.model,
        )
        self._tell(place, outcome, now)

    def _move(self, pool: _Pool, place: Place, now: float) -> None:
        """Let it wait for another arm of its route: its own one is gone."""
        wish, item = place.wish, place.waiting
        route = self._routes.get((wish.tenant.name, wish.model))
        conversation = self._chance.randbytes(_CONVERSATION_BYTES)
        there = () if route is None else arms_for(route, wish.tenant.name)
        arm = pick_arm([arm for arm in there if _is_alike(arm, place.arm)], conversation)
        if arm is None or item is None:
            self._refuse(pool, place, Outcome.NO_ENDPOINT, now)
            return
        pool.queue.leave(item)
        del pool.places[item]
        place.arm = arm
        self._join(self._pool(arm), place, item.deadline, now)

    def _tell(self, place: Place, outcome: Outcome, now: float) -> None:
        wish = place.wish
        self._on_waited(Waited(wish.tenant.name, wish.model, now - place.came_at, outcome))
        place.then()


def _may_go(room: Room, priority: int, item: Waiting) -> bool:
    return item.priority == priority and bool(room.of(item))


def _is_alike(arm: GatewayArm, other: GatewayArm) -> bool:
    """Whether it takes requests that were made ready for the other one: each engine has its own words."""
    return (arm.engine, arm.hosted, arm.serves, arm.takes_priority) == (
        other.engine,
        other.hosted,
        other.serves,
        other.takes_priority,
    )
