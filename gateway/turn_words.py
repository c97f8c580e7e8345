"""The words of waiting for engines: what is wished, what came of it, and what a client is told. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fleet.snapshot import GatewayArm, GatewayRoute, GatewayTenant
from gateway.arms import usable_endpoints
from gateway.refusals import quoted
from gateway.router import Choice, RoutingRequest


class Outcome(StrEnum):
    """What came of coming to a pool; the value is a metric's label."""

    TURN = "turn"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    NO_ENDPOINT = "no_endpoint"
    LEFT = "left"
    """The client did not wait."""


class Waited(NamedTuple):
    """How the waiting of one request ended, for metrics."""

    tenant: str
    model: str
    seconds: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Wish:
    """A request that wants to go to the engines of an arm."""

    tenant: GatewayTenant
    route: GatewayRoute
    arm: GatewayArm
    choice: Choice
    """Where it would go if it went at once."""
    most_output_tokens: int
    is_watched: bool = True
    """Whether its first token will be told."""

    @property
    def model(self) -> str:
        """The public name."""
        return self.route.model


def refusal_message(wish: Wish, outcome: Outcome) -> str:
    """What a client is told that has no turn."""
    model, limits = quoted(wish.model), wish.route.queue
    if outcome is Outcome.QUEUE_FULL:
        return f"All engines of the model {model} are busy, and as many requests wait as may; try again later."
    if outcome is Outcome.QUEUE_TIMEOUT:
        return f"All engines of the model {model} are busy; no turn can be had within {limits.max_wait_seconds:g} s."
    return f"No engine is ready for the model {model}; try again in a moment."


def asleep(
    route: GatewayRoute, arms: Sequence[GatewayArm], request: RoutingRequest
) -> tuple[GatewayArm, Choice] | None:
    """The arm to wait for where the route waits for a first engine: none is there, and no model may stand in."""
    if not route.queue.waits_without_engine or route.fallbacks or any(map(usable_endpoints, arms)):
        return None
    arm = max(arms, key=lambda arm: arm.weight, default=None)
    return None if arm is None else (arm, Choice(request, ()))
