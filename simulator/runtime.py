"""Runs the scheduler in real time and hands every request its tokens as they are made."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

from simulator.composition import Piece
from simulator.latency import LatencyModel
from simulator.scheduler import Scheduler, Sequence, tokens_of
from simulator.settings import EngineSettings
from simulator.signals import Count, Recorder


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of one choice."""

    choice: int
    piece: Piece


class ClientLeftError(Exception):
    """The client closed the connection before the answer was complete."""


class EngineBusyError(Exception):
    """The queue is at its limit, so the request is not taken."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One accepted request: its choices and the queue in which their tokens arrive."""

    sequences: SequenceOf[Sequence]
    choices_per_prompt: int
    arrivals: asyncio.Queue[Token | None] = field(default_factory=asyncio.Queue)
    unfinished: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Return the prompt tokens of all prompts; choices of one prompt share it."""
        return sum(len(sequence.prompt) for sequence in self.sequences[:: self.choices_per_prompt])

    @property
    def cached_tokens(self) -> int:
        """Return how many prompt tokens came from the prefix cache."""
        return sum(sequence.cached for sequence in self.sequences[:: self.choices_per_prompt])


class EngineRuntime:
    """The one engine of a process."""

    def __init__(self, settings: EngineSettings, recorder: Recorder) -> None:
        self._limits = settings.limits
        self._latency = LatencyModel(settings.pace)
        self._recorder = recorder
        self._tickets: dict[Sequence, tuple[Ticket, int]] = {}
        self._work = asyncio.Event()
        self.scheduler = Scheduler(settings.limits, settings.cache, recorder)

    def submit(self, sequences: SequenceOf[Sequence], choices_per_prompt: int = 1) -> Ticket:
        """Queue the choices of one request, or raise `EngineBusyError`."""
        self._refuse_when_full(sequences)
        now = asyncio.get_running_loop().time()
        ticket = Ticket(sequences, choices_per_prompt, unfinished=len(sequences))
        for choice, sequence in enumerate(sequences):
            self._tickets[sequence] = (ticket, choice)
            self.scheduler.add(sequence, now)
        self._work.set()
        return ticket

    def abort(self, ticket: Ticket) -> None:
        """Stop a request whose client left; its blocks are free at once."""
        for sequence in ticket.sequences:
            if self._tickets.pop(sequence, None):
                self.scheduler.abort(sequence)
        ticket.arrivals.put_nowait(None)

    async def tokens(self, ticket: Ticket) -> AsyncIterator[Token]:
        """Yield the tokens of a request until every choice has ended."""
        while ticket.unfinished:
            token = await ticket.arrivals.get()
            if token is None:
                raise ClientLeftError
            if token.piece.finish is not None:
                ticket.unfinished -= 1
            yield token

    async def run(self) -> None:
        """Step for ever."""
        loop = asyncio.get_running_loop()
        while True:
            step = self.scheduler.plan(loop.time())
            if step is None:
                self._work.clear()
                await self._work.wait()
                continue
            await asyncio.sleep(self._latency.step_seconds(step.prefill_tokens, len(step.decodes)))
            for sequence, piece in self.scheduler.commit(step, loop.time()):
                self._deliver(sequence, piece)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the engine stepping inside the block."""
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _deliver(self, sequence: Sequence, piece: Piece) -> None:
        known = self._tickets.get(sequence)
        if known is None:
            return
        ticket, choice = known
        if piece.finish is not None:
            del self._tickets[sequence]
        ticket.arrivals.put_nowait(Token(choice, piece))

    def _refuse_when_full(self, sequences: SequenceOf[Sequence]) -> None:
        most, most_tokens = self._limits.max_queued_requests, self._limits.max_queued_tokens
        waiting, running = self.scheduler.waiting, self.scheduler.running
        counted = len(waiting) + (len(running) if self._limits.queue_limit_counts_running else 0)
        if most is not None and counted >= most:
            self._recorder.count(Count.REFUSED_REQUESTS)
            raise EngineBusyError
        added = sum(len(sequence.prompt) for sequence in sequences)
        if most_tokens is not None and tokens_of(waiting) + tokens_of(running) + added > most_tokens:
            self._recorder.count(Count.REFUSED_TOKENS)
            raise EngineBusyError
