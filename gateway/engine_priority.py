"""The priority that an engine gets with a request: its tenant's, in the engine's own words. Pure.

Engines that schedule by priority believe whatever a request says, so a client's own word never goes further: it may
put its request behind the tenant's others, and never before those of other tenants.
"""

from collections.abc import Mapping

from fleet.snapshot import GatewayArm

FIELD = "priority"
_LOWER_FIRST = frozenset({"vllm"})
"""Engines where the smaller number is served first; their field takes no null, and 0 is what it is without one."""
_HIGHER_FIRST = frozenset({"sglang"})
_KNOWN = _LOWER_FIRST | _HIGHER_FIRST
_MOST = 2**31 - 1


def priority_member(arm: GatewayArm, priority: int, document: Mapping[str, object]) -> dict[str, object]:
    """The member to write into a request, or none; ``priority`` is the tenant's, the higher the sooner."""
    if arm.hosted is not None:
        return {}
    if not (arm.takes_priority and arm.engine in _KNOWN):
        if FIELD not in document:
            return {}
        return _unless_stated(0 if arm.engine in _LOWER_FIRST else None, document)
    stated = _whole(document.get(FIELD))
    if arm.engine in _LOWER_FIRST:
        value = -priority if stated is None else max(-priority, stated)
    else:
        value = priority if stated is None else min(priority, stated)
    if not value and FIELD not in document and arm.engine in _LOWER_FIRST:
        return {}
    return _unless_stated(value, document)


def _unless_stated(value: int | None, document: Mapping[str, object]) -> dict[str, object]:
    if FIELD in document and document[FIELD] == value and not isinstance(document[FIELD], bool | float):
        return {}
    return {FIELD: value}


def _whole(stated: object) -> int | None:
    """A client's own number, within what engines take; what is none counts as not said."""
    if isinstance(stated, bool) or not isinstance(stated, int):
        return None
    return max(-_MOST, min(_MOST, stated))
