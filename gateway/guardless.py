"""Which requests Envoy may take to the engines itself, and the words that tell it what to do with them. Pure."""

from collections.abc import Mapping, Sequence

from fleet.snapshot import GatewayArm, GatewayRoute
from gateway.body_edits import Edit
from gateway.ext_authz import EDITS_HEADER, UNGUARDED_HEADER, USAGE_INJECTED, USAGE_KEPT
from gateway.paths import Operation

MOST_EDIT_BYTES = 8192
"""Of edits in a header; what does not fit goes through the guard."""
_NO_FILTER = "none"
_USAGE_AT_THE_END = frozenset({Operation.CHAT, Operation.COMPLETION})
"""Whose streams say in one chunk what they took; those of other APIs say it piece by piece."""
_GUARD_WORK = ("concurrent_requests", "fallbacks", "shadow", "first_byte_seconds", "idle_seconds")
"""Fields of a route for which somebody has to wait, to ask elsewhere, or to watch the time."""


def needs_guard(
    route: GatewayRoute, arm: GatewayArm, operation: Operation, document: Mapping[str, object], edits: Sequence[Edit]
) -> bool:
    """Whether a request must pass the guard, whatever its route asks for."""
    return (
        route.is_guarded
        or route.output_filter != _NO_FILTER
        or any(getattr(route, name, None) for name in _GUARD_WORK)
        or arm.hosted is not None
        or (document.get("stream") is True and operation not in _USAGE_AT_THE_END)
        or edit_words(edits) is None
    )


def words_for_envoy(edits: Sequence[Edit], *, is_usage_injected: bool) -> tuple[tuple[str, str], ...]:
    """The headers of a decision by which Envoy takes a request to its engine."""
    kind = (UNGUARDED_HEADER, USAGE_INJECTED if is_usage_injected else USAGE_KEPT)
    words = edit_words(edits)
    return (kind, (EDITS_HEADER, words)) if words else (kind,)


def edit_words(edits: Sequence[Edit]) -> str | None:
    """The edits as Envoy's script reads them; ``None`` = they can't stand in a header."""
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    words = "".join(f"{e.start}:{e.end}:{len(e.insert)}:{e.insert.decode('latin-1')}" for e in ordered)
    is_sayable = len(words) <= MOST_EDIT_BYTES and words.isascii() and words.isprintable() and not words.endswith(" ")
    return words if is_sayable or not words else None
