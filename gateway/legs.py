"""The ways that one request can go, one after the other: the arms of its route, then the models that stand in for it.

Pure. A leg holds something in budgets; whoever takes the next one has let go of the one before.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fleet.snapshot import GatewayArm, GatewayRoute
from gateway.arms import arms_for, pool_of, usable_endpoints
from gateway.asked import Asked, asked_instead
from gateway.billed import Billed
from gateway.ext_authz import PIN_HEADER
from gateway.index import SnapshotIndex
from gateway.passage import Patience
from gateway.pins import pinned_arms
from gateway.refusals import Reason, Refused, quoted, refuse
from gateway.request_edits import RequestEdits
from gateway.reservations import Reservation
from gateway.router import Choice
from gateway.shown import shown
from gateway.targets import Target, target_of


class Leg(NamedTuple):
    """One model that serves a request: where it goes, what is held for it, and what its engines get."""

    route: GatewayRoute
    arm: GatewayArm
    choice: Choice
    held: Reservation
    edits: RequestEdits
    patience: Patience
    billed: Billed

    def __repr__(self) -> str:
        """All but the edits."""
        return shown(self, "route", "arm", "choice", "held", "patience", "billed")

    def target(self, address: str) -> Target:
        """How one of its endpoints is reached."""
        return target_of(self.arm, address)

    @property
    def model(self) -> str:
        """The public name of the model that serves."""
        return self.route.model


MakeLeg = Callable[[Asked, Sequence[GatewayArm], float], Leg | Refused | None]
"""A leg over one of these arms; ``None`` = none of them has an engine that is ready."""


class Way(NamedTuple):
    """One model, and the arms of it that may serve."""

    asked: Asked
    arms: tuple[GatewayArm, ...]


class Legs:
    """The legs of one request."""

    def __init__(self, ways: Sequence[Way], make: MakeLeg, wait: Callable[[Iterable[str], float], float]) -> None:
        self._make = make
        self._wait = wait
        """How long the first of some endpoints has still asked to be left alone."""
        self._ways = deque(ways)
        self._tried: set[str] = set()

    def first(self, now: float) -> Leg | Refused:
        """Where it goes first, or why it goes nowhere; a budget that is used up is no reason to take another model."""
        asked, arms = self._ways[0]
        leg = self._over(self._ways[0], now)
        if leg is None:
            self._ways.popleft()
            leg = self.next(now)
        if leg is not None:
            if not self.may_go_on:
                self.forget()
            return leg
        tenant, model = asked.caller.tenant.name, asked.route.model
        message = f"No engine is ready for the model {quoted(model)}; try again in a moment."
        seconds = self._wait((one.address for arm in arms for one in usable_endpoints(arm)), now)
        headers = (("retry-after", str(math.ceil(seconds))),) if seconds else ()
        return refuse(Reason.NO_ENDPOINT, message, headers=headers, tenant=tenant, model=model)

    def next(self, now: float) -> Leg | None:
        """Where it goes after all engines of a leg have failed; ``None`` = nowhere."""
        while self._ways:
            leg = self._over(self._ways[0], now)
            if isinstance(leg, Leg):
                return leg
            self._ways.popleft()
        return None

    @property
    def may_go_on(self) -> bool:
        """Whether there is something left to try; what comes of it is known when it is tried."""
        return len(self._ways) > 1 or (bool(self._ways) and bool(self._left(self._ways[0])))

    def forget(self) -> None:
        """There is no next leg: an engine has begun to answer. What the request said need not be kept for it."""
        self._ways.clear()

    def _over(self, way: Way, now: float) -> Leg | Refused | None:
        arms = self._left(way)
        leg = self._make(way.asked, arms, now) if arms else None
        if isinstance(leg, Leg):
            self._tried.add(pool_of(leg.arm))
        return leg

    def _left(self, way: Way) -> tuple[GatewayArm, ...]:
        if not self._tried:
            return way.arms
        return tuple(arm for arm in way.arms if arm.weight > 0 and pool_of(arm) not in self._tried)


def ways_of(index: SnapshotIndex, asked: Asked) -> Sequence[Way] | Refused:
    """The route that was asked for, then those that may stand in for it; with a pin there is one way or none."""
    pin = asked.request.headers.get(PIN_HEADER)
    if pin is not None:
        arms = pinned_arms(asked, pin)
        return arms if isinstance(arms, Refused) else (Way(asked, arms),)
    tenant = asked.caller.tenant.name
    ways = [Way(asked, arms_for(asked.route, tenant))]
    if asked.route.fallbacks:
        ways += [Way(one, arms_for(one.route, tenant)) for one in _stand_ins(index, asked)]
    return ways


def _stand_ins(index: SnapshotIndex, asked: Asked) -> Iterator[Asked]:
    """The same request for each model that may stand in, in the route's order.

    Never one outside of the scopes of tenant and key, none that does not take such a request, and none with another
    output filter: a filtered model must not answer unfiltered because its engines are away. Nor one that lets tenants
    share cached prompts where the other does not.
    """
    tenant, key = asked.caller.tenant.name, asked.caller.key
    seen = {asked.route.model}
    for name in asked.route.fallbacks:
        route = index.routes.get((tenant, name))
        if route is None or route.model in seen or not key.admits(route.model):
            continue
        seen.add(route.model)
        instead = asked_instead(asked, route)
        if instead is not None and _is_as_closed(route, asked.route):
            yield instead


def _is_as_closed(route: GatewayRoute, asked: GatewayRoute) -> bool:
    return route.output_filter == asked.output_filter and (route.salts_cache or not asked.salts_cache)
