"""Hears from engines which prompts they hold, where they publish it, and tells the router.

What was missed is asked for anew where the engine keeps it. Messages are the tenants' data: nothing of them is logged.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

import structlog
import zmq
import zmq.asyncio

from gateway.arms import arms_of
from gateway.endpoint_tasks import EndpointTasks
from gateway.engine_blocks import Change, Cleared, EngineBlocks, Stored
from gateway.engine_scrapes import FOLLOW_SECONDS, Tables
from gateway.index import SnapshotIndex
from gateway.kv_events import KvEventError, read_batch
from gateway.kv_metrics import KvMetrics
from gateway.kv_sockets import KvMessage, Publisher, messages, missed_messages, subscribe
from gateway.router import Router

MOST_BLOCKS = 65_536
"""Of one engine that are remembered by the engine's own names; some 250 bytes each."""

_log = structlog.get_logger("gateway.kv_events")


class Source(NamedTuple):
    """An engine that says what it holds."""

    address: str
    deployment: str
    model: str
    publisher: Publisher


@dataclass(slots=True)
class _Heard:
    """What one engine has said so far."""

    blocks: EngineBlocks


class KvSubscriber:
    """The loop."""

    def __init__(self, tables: Tables, router: Router, metrics: KvMetrics, clock: Callable[[], float]) -> None:
        self._tables = tables
        self._router = router
        self._metrics = metrics
        self._clock = clock
        """The router's."""
        self._context: zmq.asyncio.Context | None = None
        self._heard: dict[str, _Heard] = {}
        self._tasks = EndpointTasks(self._listen)

    async def run(self) -> None:
        """Listen to the engines of the snapshot in use that publish something."""
        try:
            while True:
                index = self._tables.index
                self._tasks.follow(sources(index) if index is not None else ())
                await asyncio.sleep(FOLLOW_SECONDS)
        finally:
            await self._tasks.end()
            if self._context is not None:
                self._context.destroy(linger=0)

    def restarted(self, address: str) -> None:
        """An engine is a new process: its names mean other blocks, and its messages are counted anew."""
        heard = self._heard.get(address)
        if heard is not None:
            heard.blocks = EngineBlocks(heard.blocks.model, MOST_BLOCKS)

    async def _listen(self, source: Source) -> None:
        """One engine, for as long as it is in the snapshot."""
        if self._context is None:  # it has a thread of its own, which nobody needs without such engines
            self._context = zmq.asyncio.Context()
        heard = self._heard[source.address] = _Heard(EngineBlocks(source.model, MOST_BLOCKS))
        try:
            with subscribe(self._context, source.publisher) as socket:
                await self._catch_up(source, heard)
                async with aclosing(messages(socket)) as told:
                    async for message in told:
                        if message.sequence > heard.blocks.sequence + 1:
                            await self._catch_up(source, heard)
                        self._hear(source, heard, message)
        finally:
            if self._heard.get(source.address) is heard:
                del self._heard[source.address]

    async def _catch_up(self, source: Source, heard: _Heard) -> None:
        """Hear what the engine has said since the last message that was heard, as far as it remembers it."""
        if self._context is None or not source.publisher.replay:
            return
        try:
            first = heard.blocks.sequence + 1
            async with aclosing(missed_messages(self._context, source.publisher, first)) as told:
                async for message in told:
                    self._hear(source, heard, message)
        except TimeoutError:
            self._metrics.fault(source.deployment, "no_replay")
            _log.warning("kv_events.no_replay", address=source.address, deployment=source.deployment)

    def _hear(self, source: Source, heard: _Heard, message: KvMessage) -> None:
        blocks, deployment = heard.blocks, source.deployment
        missed, unplaced = blocks.missed_messages, blocks.unplaced_blocks
        try:
            batch = read_batch(message.payload)
            for change in blocks.read(message.sequence, batch):
                self._apply(source, blocks, change)
        except KvEventError:
            self._metrics.fault(deployment, "unreadable")
            return
        self._metrics.event(deployment, "unread", batch.unread)
        self._metrics.fault(deployment, "missed", blocks.missed_messages - missed)
        self._metrics.fault(deployment, "unplaced", blocks.unplaced_blocks - unplaced)

    def _apply(self, source: Source, blocks: EngineBlocks, change: Change) -> None:
        address, size = source.address, blocks.block_tokens
        if isinstance(change, Cleared):
            self._router.cleared(address)
            self._metrics.event(source.deployment, "cleared")
        elif isinstance(change, Stored):
            self._router.cut_into(address, size)
            self._router.stored(address, change.blocks, size, self._clock())
            self._metrics.event(source.deployment, "stored")
        else:
            self._router.removed(address, change.blocks, size)
            self._metrics.event(source.deployment, "removed")


def sources(index: SnapshotIndex) -> tuple[Source, ...]:
    """The engines that publish; where routes share one, its prompts are those of the first model by name."""
    found: dict[str, Source] = {}
    for route in sorted(index.routes.values(), key=lambda route: route.model):
        for arm in arms_of(route):
            if arm.kv_events is None or arm.hosted is not None:
                continue
            for endpoint in arm.endpoints:
                publisher = Publisher.of(arm.kv_events, endpoint.address)
                source = Source(endpoint.address, arm.deployment, route.model, publisher)
                found.setdefault(endpoint.address, source)
    return tuple(found.values())
