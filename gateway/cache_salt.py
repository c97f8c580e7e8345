"""Keeps the tenants of a route apart in the engines' prompt caches, where the route asks for that. Pure.

An engine finds a cached prompt for a request with the same ``cache_salt`` alone. The salt that engines get is a digest
over the tenant, so no client can have another tenant's; what a client states itself parts its own prompts further.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence

from engines.request_side import salted_operations
from fleet.snapshot import GatewayArm, GatewayRoute
from gateway.asked import Asked
from gateway.paths import Operation

FIELD = "cache_salt"
_WITHOUT_PROMPTS = frozenset({Operation.TOKENIZE, Operation.COUNT_TOKENS, Operation.TRANSCRIPTION})
"""Operations that leave nothing in a cache of prompts."""


def salt_of(asked: Asked, route: GatewayRoute) -> str | None:
    """The salt of a request's prompt in the engines: ours, else the client's own, else none."""
    stated = asked.document.get(FIELD)
    if not route.salts_cache:
        return stated if isinstance(stated, str) else None
    hasher = hashlib.blake2b(digest_size=16)
    own = b"" if stated is None else json.dumps(stated, sort_keys=True).encode()
    for part in (asked.caller.tenant.name.encode(), own):
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.hexdigest()


def members(asked: Asked, route: GatewayRoute) -> Mapping[str, object]:
    """What a body gets for it."""
    is_salted = route.salts_cache and asked.operation not in _WITHOUT_PROMPTS
    return {FIELD: salt_of(asked, route)} if is_salted else {}


def arms_that_salt(asked: Asked, route: GatewayRoute, arms: Sequence[GatewayArm]) -> Sequence[GatewayArm]:
    """The arms that may have the request: where the route parts its tenants, those that can."""
    if not route.salts_cache or asked.operation in _WITHOUT_PROMPTS:
        return arms
    known = salted_operations()
    word = asked.operation.value
    return [arm for arm in arms if arm.hosted is None and word in known.get(arm.engine, ())]
