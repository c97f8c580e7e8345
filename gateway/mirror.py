"""A copy of a request for an arm that nobody is served by: what it gets, and what is known of its end. Pure."""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from fleet.snapshot import GatewayArm, GatewayRoute
from gateway.body_edits import Edit, apply_edits
from gateway.router import Choice, InFlight, Router, RoutingRequest
from gateway.targets import Target, target_of


def shadow_choice(
    route: GatewayRoute, tenant: str, router: Router, request: RoutingRequest, now: float, chance: Random
) -> tuple[GatewayArm, Choice] | None:
    """Where the copy of a request goes; ``None`` = there is none of this one.

    A shadow may share its engines with others, so a full one gets no copies.
    """
    shadow = route.shadow
    if shadow is None or chance.random() >= shadow.share:
        return None
    if shadow.arm.tenants and tenant not in shadow.arm.tenants:
        return None
    with_room = router.roomy(shadow.arm.endpoints, now)
    choice = router.choose(request, with_room, now, chance, pool=f"shadow/{shadow.arm.deployment}")
    return (shadow.arm, choice) if choice.candidates else None


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
