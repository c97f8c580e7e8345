"""Tells other gateways what this one sends where, and applies what they tell: hashes and numbers, never logged.

It is beside the path of a request: a note costs a place in a list, and everything else happens a moment later. What
can't be told is dropped, and said with the next word: the others forget what they heard of this gateway.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter

from gateway.lease_store import StoreLostError
from gateway.router import Choice, InFlight, Router, RouterSettings
from gateway.routing_notes import Hearsay, NoteError, NoteKind, RoutingNote, message_of, read_notes

FLUSH_SECONDS = 0.02
LOOK_SECONDS = 1.0
ALIVE_SECONDS = 5.0
SILENT_SECONDS = 15.0
"""The requests of a gateway that says nothing for so long are over."""
MOST_NOTES = 20_000
AGAIN_SECONDS = 0.5


class NoteChannel(Protocol):
    """Brings messages to all others; every call may raise `StoreLostError`."""

    async def send(self, message: bytes) -> None:
        """To whoever listens now."""

    def messages(self) -> AsyncIterator[bytes]:
        """What is sent from now on, own messages perhaps among it."""

    async def close(self) -> None:
        """End."""


class TellingRouter(Router):
    """A router that says what it sends and what ends."""

    def __init__(self, settings: RouterSettings, name: str) -> None:
        super().__init__(settings)
        self.name = name
        self.notes: list[RoutingNote] = []
        self.has_notes = asyncio.Event()
        """Set with the first of them."""
        self._numbers = count(1)

    def send(self, choice: Choice, now: float, *, place: int = 0, is_watched: bool = True) -> InFlight:
        """As ever, with a note of it."""
        in_flight = super().send(choice, now, place=place, is_watched=is_watched)
        number, request, candidate = next(self._numbers), choice.request, choice.candidates[place]
        tokens, blocks = candidate.uncached_tokens, request.blocks
        note = RoutingNote(
            NoteKind.SENT,
            self.name,
            number,
            candidate.address,
            tokens,
            blocks,
            request.session,
            request.block_tokens,
            is_watched,
        )
        self._add(note)
        in_flight.tell = lambda is_over: self._add(
            RoutingNote(NoteKind.ENDED if is_over else NoteKind.FIRST_TOKEN, self.name, number)
        )
        return in_flight

    def _add(self, note: RoutingNote) -> None:
        if not self.notes:
            self.has_notes.set()
        if len(self.notes) < MOST_NOTES:
            self.notes.append(note)


class RoutingNews:
    """The loops between a router and a channel."""

    def __init__(
        self, router: TellingRouter, channel: NoteChannel, clock: Callable[[], float], registry: CollectorRegistry
    ) -> None:
        self._router = router
        self._channel = channel
        self._clock = clock
        self._hearsay = Hearsay(router, router.name)
        self._heard_at: dict[str, float] = {}
        self._told_at = 0.0
        self._is_new = True
        """Whether the others may believe something of us that is over."""
        self._notes = Counter(
            "enginehouse_gateway_routing_notes",
            "Notes about requests between gateways that share their state: told, heard, or lost on the way.",
            ("way",),
            registry=registry,
        )

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._tell_on())
            loops.create_task(self._look_on())
            loops.create_task(self._hear_on())

    async def close(self) -> None:
        """Say that all of ours is over."""
        with contextlib.suppress(StoreLostError):
            await self._send([RoutingNote(NoteKind.GONE, self._router.name, 0)])
        await self._channel.close()

    async def tell(self) -> None:
        """Send what has come together; what can't be sent is dropped."""
        notes, self._router.notes = self._router.notes, []
        self._router.has_notes.clear()
        now, name = self._clock(), self._router.name
        is_due = now - self._told_at >= ALIVE_SECONDS
        if not (notes or is_due):
            return
        if self._is_new or len(notes) >= MOST_NOTES:
            notes = [RoutingNote(NoteKind.GONE, name, 0), *notes]
        elif not notes:
            notes = [RoutingNote(NoteKind.ALIVE, name, 0)]
        self._told_at = now
        try:
            await self._send(notes)
            self._is_new = False
        except StoreLostError:
            self._is_new = True
            self._notes.labels("lost").inc(len(notes))

    def hear(self, message: bytes) -> None:
        """Apply the notes of one message."""
        now = self._clock()
        try:
            notes = read_notes(message)
        except NoteError:
            self._notes.labels("lost").inc()
            return
        others = [note for note in notes if note.gateway != self._router.name]
        for note in others:
            self._heard_at[note.gateway] = now
            self._hearsay.hear(note, now)
        self._notes.labels("heard").inc(len(others))

    def forget_silent(self, now: float) -> None:
        """A gateway that says nothing has ended, and its requests with it."""
        for gateway in [name for name, heard_at in self._heard_at.items() if now - heard_at > SILENT_SECONDS]:
            del self._heard_at[gateway]
            self._hearsay.gone(gateway, now)

    async def _send(self, notes: list[RoutingNote]) -> None:
        await self._channel.send(message_of(notes))
        self._notes.labels("told").inc(len(notes))

    async def _tell_on(self) -> None:
        """A moment after the first note, so that more of them go together."""
        while True:
            await self._router.has_notes.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            await self.tell()
            self.forget_silent(self._clock())

    async def _look_on(self) -> None:
        """A quiet gateway says so, and looks whether others are silent."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._router.has_notes.set()

    async def _hear_on(self) -> None:
        """Listen again and again; what was missed meanwhile may be ends, so all of others counts as over."""
        while True:
            with contextlib.suppress(StoreLostError):
                async for message in self._channel.messages():
                    self.hear(message)
            for gateway in tuple(self._heard_at):
                self._hearsay.gone(gateway, self._clock())
            self._heard_at.clear()
            await asyncio.sleep(AGAIN_SECONDS)
