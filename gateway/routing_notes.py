"""What gateways that share their state tell each other about requests: sent, first token, ended. Pure.

A note holds hashes and numbers, nothing of a prompt. Requests of a gateway that falls silent end after a while, so that
a crash leaves no load behind.
"""

from collections import OrderedDict
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated

import msgspec

from gateway.endpoint_load import InFlight
from gateway.errors import GatewayError
from gateway.router import Router, RoutingRequest

LEASE_SECONDS = 600.0
"""The longest that a request of another gateway counts without a word of its end."""
MOST_REQUESTS = 200_000


class NoteError(GatewayError):
    """Bytes that are no note."""


class NoteKind(IntEnum):
    """What became of a request."""

    SENT = 0
    FIRST_TOKEN = 1
    ENDED = 2
    GONE = 3
    """Whatever was said of requests of this gateway before is over."""
    ALIVE = 4
    """There is nothing new."""


class RoutingNote(msgspec.Struct, frozen=True, array_like=True):
    """One word of a gateway about one of its requests."""

    kind: NoteKind
    gateway: str
    number: int
    """Which of its requests."""
    address: str = ""
    uncached_tokens: int = 0
    blocks: tuple[int, ...] = ()
    session: int | None = None
    block_tokens: Annotated[int, msgspec.Meta(ge=1)] = 1
    is_watched: bool = True
    """Whether a word of its first token follows; else the prompt is taken to be computed at the known rate."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[RoutingNote])


def message_of(notes: Sequence[RoutingNote]) -> bytes:
    """Notes as they are sent."""
    return _ENCODER.encode(notes)


def read_notes(message: bytes) -> list[RoutingNote]:
    """The notes in a message; raises NoteError."""
    try:
        return _DECODER.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoteError("notes of another gateway can't be read; do all gateways have one version?") from error


class Hearsay:
    """Applies the notes of other gateways to a router."""

    def __init__(self, router: Router, own_name: str) -> None:
        self._router = router
        self._own_name = own_name
        self._live: OrderedDict[tuple[str, int], tuple[InFlight, float]] = OrderedDict()
        """(gateway, number) -> its count here and the second it was heard at, the oldest first."""

    def hear(self, note: RoutingNote, now: float) -> None:
        """Apply one note; own ones come back from a shared channel and change nothing."""
        self.expire(now)
        if note.gateway == self._own_name:
            return
        if note.kind is NoteKind.GONE:
            self.gone(note.gateway, now)
        key = (note.gateway, note.number)
        if note.kind is NoteKind.SENT:
            self._end(key, now)  # a retry at another endpoint
            request = RoutingRequest(note.blocks, note.block_tokens, session=note.session)
            in_flight = self._router.heard(note.address, request, note.uncached_tokens, now, is_watched=note.is_watched)
            self._live[key] = (in_flight, now)
        elif note.kind is NoteKind.ENDED:
            self._end(key, now)
        elif note.kind is NoteKind.FIRST_TOKEN and key in self._live:
            self._live[key][0].first_token(now)

    def gone(self, gateway: str, now: float) -> None:
        """Another gateway has ended: so have its requests."""
        for key in [key for key in self._live if key[0] == gateway]:
            self._end(key, now)

    def expire(self, now: float) -> None:
        """End what was heard too long ago, and the oldest when there is too much."""
        while self._live:
            key, (_, heard_at) = next(iter(self._live.items()))
            if now - heard_at <= LEASE_SECONDS and len(self._live) <= MOST_REQUESTS:
                return
            self._end(key, now)

    def _end(self, key: tuple[str, int], now: float) -> None:
        live = self._live.pop(key, None)
        if live is not None:
            live[0].end(now)
