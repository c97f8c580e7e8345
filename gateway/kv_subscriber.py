"""Hears from engines which prompts they hold, where they publish it, and tells the router.

What was missed is asked for anew where the engine keeps it. Messages are the tenants' data: nothing of them is logged.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import structlog

from fleet.snapshot import GatewayArm
from gateway.arms import arms_of
from gateway.endpoint_tasks import EndpointTasks
from gateway.engine_blocks import Change, Cleared, EngineBlocks, Stored
from gateway.engine_scrapes import FOLLOW_SECONDS, Tables
from gateway.index import SnapshotIndex
from gateway.kv_events import KvEventError, read_batch
from gateway.kv_metrics import KvMetrics
from gateway.kv_sockets import KvMessage, Publisher, messages, missed_messages, new_context, subscribe
from gateway.rank_blocks import RankBlocks
from gateway.router import Router

if TYPE_CHECKING:
    import zmq.asyncio

MOST_BLOCKS = 65_536
"""Of one engine that are remembered by the engine's own names; some 250 bytes each."""

_log = structlog.get_logger("gateway.kv_events")


class Source(NamedTuple):
    """One data-parallel rank of an engine that says what it holds."""

    address: str
    deployment: str
    model: str
    publisher: Publisher
    rank: int = 0
    ranks: int = 1
    """How many of them the engine has."""

    @property
    def most_blocks(self) -> int:
        """Of this rank that are remembered."""
        return MOST_BLOCKS // self.ranks


@dataclass(slots=True)
class _Heard:
    """What one rank of an engine has said so far."""

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
        self._heard: dict[tuple[str, int], _Heard] = {}
        """By the engine's address and the rank."""
        self._shared: dict[str, RankBlocks] = {}
        """Of engines that have several ranks."""
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
        if address in self._shared:
            self._shared[address] = RankBlocks(MOST_BLOCKS)
        for (engine, _), heard in self._heard.items():
            if engine == address:
                heard.blocks = heard.blocks.anew()

    async def _listen(self, source: Source) -> None:
        """One rank of an engine, for as long as it is in the snapshot."""
        if self._context is None:  # it has a thread of its own, which nobody needs without such engines
            self._context = new_context()
        place = (source.address, source.rank)
        heard = self._heard[place] = _Heard(EngineBlocks(source.model, source.most_blocks))
        if source.ranks > 1:
            self._shared.setdefault(source.address, RankBlocks(MOST_BLOCKS))
        else:
            self._shared.pop(source.address, None)
        try:
            with subscribe(self._context, source.publisher) as socket:
                await self._catch_up(source, heard)
                async with aclosing(messages(socket)) as told:
                    async for message in told:
                        if message.sequence > heard.blocks.sequence + 1:
                            await self._catch_up(source, heard)
                        self._hear(source, heard, message)
        finally:
            if self._heard.get(place) is heard:
                del self._heard[place]
            if not any(address == source.address for address, _ in self._heard):
                self._shared.pop(source.address, None)

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
        address, size, shared = source.address, blocks.block_tokens, self._shared.get(source.address)
        if isinstance(change, Cleared):
            self._clear(source, size, shared)
            self._metrics.event(source.deployment, "cleared")
        elif isinstance(change, Stored):
            self._router.cut_into(address, size)
            self._router.stored(address, change.blocks, size, self._clock())
            if shared is not None:
                shared.store(source.rank, change.blocks)
            self._metrics.event(source.deployment, "stored")
        else:
            gone = change.blocks if shared is None else shared.remove(source.rank, change.blocks)
            self._router.removed(address, gone, size)
            self._metrics.event(source.deployment, "removed")

    def _clear(self, source: Source, size: int, shared: RankBlocks | None) -> None:
        """What other ranks hold stays believed; prompts of text, which no event names, until none holds anything."""
        gone = shared.clear(source.rank) if shared is not None else ()
        if shared is not None and len(shared):
            self._router.removed(source.address, gone, size)
        else:
            self._router.cleared(source.address)


def sources(index: SnapshotIndex) -> tuple[Source, ...]:
    """What publishes; where routes share an engine, its prompts are those of the first model by name."""
    found: dict[tuple[str, int], Source] = {}
    for route in sorted(index.routes.values(), key=lambda route: route.model):
        for arm in arms_of(route):
            if arm.kv_events is None or arm.hosted is not None:
                continue
            for endpoint in arm.endpoints:
                for source in _ranks(arm, endpoint.address, arm.kv_events, route.model):
                    found.setdefault((source.address, source.rank), source)
    return tuple(found.values())


def _ranks(arm: GatewayArm, address: str, template: str, model: str) -> Iterator[Source]:
    """The ranks of one engine; an address that can't be is left out, and a local socket has room for one rank."""
    count = arm.kv_ranks if template.startswith("tcp://") else 1
    for rank in range(count):
        publisher = Publisher.of(template, address, rank)
        if publisher.is_a_place:
            yield Source(address, arm.deployment, model, publisher, rank, count)
