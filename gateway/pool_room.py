"""The room that a pool has at one moment, and for whom: all of it, or all but what is kept free. Pure."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute
from gateway.arms import usable_endpoints
from gateway.fair_queue import Waiting
from gateway.router import Router
from gateway.running_shares import RunningShares
from gateway.token_lease import Share

KEPT_SLOTS = 0.05
"""Of what a route may have at engines at once, for tenants that are not above their share."""
KEPT_ENDPOINTS = 0.5
"""Of what those tenants have at engines, as a part of all that is there, so many endpoints are free of long prompts of
the others: what is kept free is what they use."""
ABOVE_LEAD_SECONDS = 0.05
"""Prompts that are sent ahead for a tenant above its share."""

Endpoints = tuple[GatewayEndpoint, ...]


class Slots(NamedTuple):
    """How many requests of a model engines have and may have at once."""

    running: int
    limit: int
    endpoints: int
    """Among which the limit is spread evenly: an engine that is full lets wait inside of it, out of order."""
    at: Callable[[str], int]
    """Requests of the model at an endpoint."""

    def left(self, endpoints: Endpoints, kept: float) -> Endpoints:
        """The endpoints that may get one more."""
        limit = self._limit(kept)
        if self.running >= limit:
            return ()
        most = self._most(limit)
        return tuple(endpoint for endpoint in endpoints if self.at(endpoint.address) < most)

    def short(self, endpoints: Endpoints, kept: float) -> frozenset[str]:
        """The endpoints that have no slots left but those that are kept."""
        limit = self._limit(kept)
        if limit == self.limit:
            return frozenset()
        most = self._most(limit)
        return frozenset(endpoint.address for endpoint in endpoints if self.at(endpoint.address) >= most)

    def _limit(self, kept: float) -> int:
        return self.limit - int(self.limit * kept)

    def _most(self, limit: int) -> int:
        return math.ceil(limit / max(1, self.endpoints))


def limits_of(routes: Iterable[GatewayRoute], share: Share) -> dict[str, tuple[int, int]]:
    """Of each model with a limit: this process's part of it, one at least, and how many endpoints there are."""
    return {
        route.model: (
            max(1, share.of(route.concurrent_requests)) if route.concurrent_requests else 0,
            sum(len(usable_endpoints(arm)) for arm in route.arms),
        )
        for route in routes
        if route.concurrent_requests is not None
    }


class Room:
    """What a pool has room for."""

    def __init__(
        self, router: Router, arm: GatewayArm, shares: RunningShares, slots: Callable[[str], Slots | None], now: float
    ) -> None:
        self.any = router.roomy(arm.endpoints, now)
        """The endpoints with room."""
        self._above = self.any
        self._shares = shares
        self._slots = slots
        self._kept = 0.0
        if self.any and len(shares) > 1:
            others = shares.part_of_others()
            idle = router.roomy(arm.endpoints, now, ABOVE_LEAD_SECONDS)
            self._kept = min(KEPT_SLOTS, others)
            self._above = idle if len(idle) > int(len(arm.endpoints) * KEPT_ENDPOINTS * others) else ()
        self._found: dict[tuple[str, bool], Endpoints] = {}

    def has_slot(self, item: Waiting) -> bool:
        """Whether it could go if its tenant had nothing there."""
        return bool(self._of(item.flow, is_above=False))

    def of(self, item: Waiting) -> Endpoints:
        """Where it may go now."""
        return self._of(item.flow, is_above=self._shares.is_above(item.tenant))

    def short(self, item: Waiting) -> frozenset[str]:
        """Where it may go, but would take a slot that is kept."""
        slots = self._slots(item.flow) if self._kept else None
        return frozenset() if slots is None else slots.short(self.of(item), self._kept)

    def _of(self, flow: str, *, is_above: bool) -> Endpoints:
        found = self._found.get((flow, is_above))
        if found is None:
            slots = self._slots(flow)
            found = self._above if is_above else self.any
            if slots is not None and found:
                found = slots.left(found, self._kept if is_above else 0.0)
            self._found[flow, is_above] = found
        return found
