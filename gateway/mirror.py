"""A copy of a request for an arm that nobody is served by: what it gets, and what is known of its end. Pure."""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from fleet.snapshot import GatewayArm
from gateway.arm_edits import edits_for
from gateway.asked import Asked
from gateway.body_edits import Edit, apply_edits
from gateway.cache_salt import arms_that_salt
from gateway.router import Choice, InFlight, Router, RoutingRequest
from gateway.targets import Target, target_of


class MirrorName(NamedTuple):
    """Which mirror, for metrics."""

    model: str
    deployment: str


class Mirror:
    """One copy on its way."""

    def __init__(
        self,
        name: MirrorName,
        arm: GatewayArm,
        choice: Choice,
        edits: Sequence[Edit],
        router: Router,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.target: Target = target_of(arm, choice.addresses[0])
        self._choice = choice
        self._edits = edits
        self._router = router
        self._clock = clock
        self._in_flight: InFlight | None = None

    def edited(self, body: bytes) -> bytes:
        """The body that the engine gets."""
        return apply_edits(body, self._edits)

    def begin(self) -> None:
        """It goes out."""
        self._in_flight = self._router.send(self._choice, self._clock(), is_watched=False)

    def end(self, *, is_well: bool | None, pause_seconds: float = 0.0) -> None:
        """It is over; ``None`` = it says nothing about the engine."""
        now, address = self._clock(), self._choice.addresses[0]
        if self._in_flight is not None:
            self._in_flight.end(now)
            self._in_flight = None
        self._router.ejections.pause(address, now + pause_seconds, now)
        if is_well:
            self._router.ejections.well(address, now)
        elif is_well is not None:
            self._router.ejections.failed(address, now)


class Mirrors:
    """Makes the copies of a gateway's requests."""

    def __init__(self, router: Router, chance: Random, clock: Callable[[], float]) -> None:
        self._router = router
        self._chance = chance
        self._clock = clock

    def of(self, asked: Asked, request: RoutingRequest, bound: int | None, now: float) -> Mirror | None:
        """The copy of a request; ``None`` = there is none of this one.

        A shadow may share its engines with others, so a full one gets no copies.
        """
        shadow = asked.route.shadow
        if shadow is None or self._chance.random() >= shadow.share:
            return None
        arm = shadow.arm
        if arm.tenants and asked.caller.tenant.name not in arm.tenants:
            return None
        if not arms_that_salt(asked, asked.route, (arm,)):  # it would mix the tenants' prompts
            return None
        with_room = self._router.roomy(arm.endpoints, now)
        choice = self._router.choose(
            request._replace(reach=None), with_room, now, self._chance, pool=f"shadow/{arm.deployment}"
        )
        if not choice.candidates:
            return None
        name = MirrorName(asked.route.model, arm.deployment)
        return Mirror(name, arm, choice, edits_for(asked, arm, bound).edits, self._router, self._clock)
