"""Which arm of a route a conversation belongs to, by weight. Pure."""

import hashlib
import math
from collections.abc import Sequence

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute

MAX_TRIES = 3
_BITS = 52
"""As many as a float holds with a half left over, so that the fraction is never 0 or 1."""


def pick_arm(arms: Sequence[GatewayArm], conversation: bytes) -> GatewayArm | None:
    """The arm of a conversation, or ``None`` when no arm has weight and an endpoint.

    Weighted rendezvous hashing: each arm gets its share of conversations exactly in the long run, a conversation
    stays with its arm whatever the order of the arms, and more weight for one arm moves conversations to it alone.
    """
    if len(arms) == 1:
        return arms[0] if arms[0].weight > 0 and usable_endpoints(arms[0]) else None
    candidates = [arm for arm in arms if arm.weight > 0 and usable_endpoints(arm)]
    return max(candidates, key=lambda arm: _attraction(arm, conversation), default=None)


def arms_of(route: GatewayRoute) -> tuple[GatewayArm, ...]:
    """All arms of a route, the shadow's too."""
    return route.arms if route.shadow is None else (*route.arms, route.shadow.arm)


def arms_for(route: GatewayRoute, tenant: str) -> tuple[GatewayArm, ...]:
    """The arms of a route that a tenant may be sent to."""
    arms = [arm for arm in route.arms if not arm.tenants or tenant in arm.tenants]
    return route.arms if len(arms) == len(route.arms) else tuple(arms)


def pool_of(arm: GatewayArm) -> str:
    """The name of an arm among all arms."""
    return f"{arm.deployment}/{arm.identity}"


def usable_endpoints(arm: GatewayArm) -> tuple[GatewayEndpoint, ...]:
    """The endpoints that take new requests."""
    return tuple([endpoint for endpoint in arm.endpoints if not endpoint.is_draining])


def _attraction(arm: GatewayArm, conversation: bytes) -> float:
    """log(weight) plus a Gumbel-distributed number of (conversation, arm): its maximum falls on arms by weight."""
    name = f"{arm.deployment}\0{arm.identity}".encode()
    number = int.from_bytes(hashlib.blake2b(conversation + name, digest_size=8).digest(), "big") >> (64 - _BITS)
    fraction = (number + 0.5) / (1 << _BITS)
    return math.log(arm.weight) - math.log(-math.log(fraction))
