"""Which requests Envoy may take to the engines itself, and the words that tell it what to do with them. Pure."""

from collections.abc import Mapping, Sequence

from fleet.snapshot import GatewayArm, GatewayRoute
from gateway.body_edits import Edit
from gateway.ext_authz import EDITS_HEADER, UNGUARDED_HEADER, USAGE_INJECTED, USAGE_KEPT, USAGE_WHOLE
from gateway.paths import Operation

MOST_EDIT_BYTES = 8192
"""Of edits in a header; what does not fit goes through the guard."""
_NO_FILTER = "none"
_USAGE_AT_THE_END = frozenset({Operation.CHAT, Operation.COMPLETION})
"""Whose streams say in one chunk what they took; those of other APIs say it piece by piece."""

_WHOLE = ((UNGUARDED_HEADER, USAGE_WHOLE),)
_STREAM = ((UNGUARDED_HEADER, USAGE_KEPT),)


def needs_guard(
    route: GatewayRoute, arm: GatewayArm, operation: Operation, document: Mapping[str, object], edits: Sequence[Edit]
) -> bool:
    """Whether a request must pass the guard, whatever its route asks for."""
    return (
        route.is_guarded
        or route.output_filter != _NO_FILTER
        or route.concurrent_requests is not None
        or bool(route.fallbacks)
        or route.first_byte_seconds is not None
        or route.idle_seconds is not None
        or route.shadow is not None
        or arm.hosted is not None
        or (document.get("stream") is True and operation not in _USAGE_AT_THE_END)
        or not _can_stand_in_a_header(edits)
    )


def words_for_envoy(edits: Sequence[Edit], *, is_stream: bool, is_usage_injected: bool) -> tuple[tuple[str, str], ...]:
    """The headers of a decision by which Envoy takes a request to its engine."""
    if not edits:
        return _STREAM if is_stream else _WHOLE
    kind = (UNGUARDED_HEADER, USAGE_INJECTED if is_usage_injected else USAGE_KEPT)
    return (kind, (EDITS_HEADER, edit_words(edits)))


def edit_words(edits: Sequence[Edit]) -> str:
    """The edits as Envoy's script reads them."""
    ordered = sorted(edits, key=_place) if len(edits) > 1 else edits
    return "".join([f"{e.start}:{e.end}:{len(e.insert)}:{e.insert.decode('latin-1')}" for e in ordered])


def _place(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


def _can_stand_in_a_header(edits: Sequence[Edit]) -> bool:
    if not edits:
        return True
    inserts = b"".join([edit.insert for edit in edits])
    is_plain = inserts.isascii() and inserts.decode("latin-1").isprintable() and not inserts.endswith(b" ")
    return is_plain and len(inserts) <= MOST_EDIT_BYTES
