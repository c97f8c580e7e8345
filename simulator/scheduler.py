"""The engine core without a clock: continuous batching over a block pool, one step at a time.

`plan` says what the next step computes, the caller waits as long as that takes, `commit` gives the tokens.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.composition import Piece
from simulator.prefix_cache import BlockKey, BlockPool, Lease, first_key, keys_of, next_key
from simulator.settings import CacheSettings, Limits
from simulator.signals import Count, Measure, Recorder
from simulator.tokens import token_id


@dataclass(slots=True, eq=False)
class Sequence:
    """One choice being generated."""

    prompt: tuple[int, ...]
    pieces: tuple[Piece, ...]
    salt: str | None = None
    adapter: str | None = None
    streams: bool = False
    arrived: float = 0.0
    tokens: list[int] = field(default_factory=list)
    keys: list[BlockKey] = field(default_factory=list)
    lease: Lease | None = None
    computed: int = 0
    emitted: int = 0
    cached: int = 0
    preemptions: int = 0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float = 0.0

    @property
    def is_prefilled(self) -> bool:
        """Tell whether only the newest token is left to compute."""
        return self.emitted > 0 and self.computed >= len(self.tokens) - 1


@dataclass(frozen=True, slots=True)
class Step:
    """The work of one forward pass."""

    prefills: tuple[tuple[Sequence, int], ...]
    decodes: tuple[Sequence, ...]

    @property
    def prefill_tokens(self) -> int:
        """Return how many prompt tokens the step computes."""
        return sum(tokens for _, tokens in self.prefills)


class Scheduler:
    """First come, first served; preempts the youngest running sequence when blocks run out."""

    def __init__(self, limits: Limits, cache: CacheSettings, recorder: Recorder) -> None:
        self._limits = limits
        self._block_size = cache.block_size
        self._caches = cache.prefix_caching
        self._recorder = recorder
        self.pool = BlockPool(cache.num_blocks, keeps_prefixes=cache.prefix_caching)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence, now: float) -> None:
        """Queue a sequence."""
        sequence.arrived = now
        sequence.tokens = list(sequence.prompt)
        sequence.keys = list(
            keys_of(sequence.prompt, self._block_size, first_key(sequence.salt, sequence.adapter))
            if self._caches
            else ()
        )
        self.waiting.append(sequence)

    def abort(self, sequence: Sequence) -> None:
        """Forget a sequence and free its blocks; one that already ended is left alone."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        else:
            return
        self._release(sequence)
        self._recorder.count(Count.ABORTED)

    def plan(self, now: float) -> Step | None:
        """Return the next step, or `None` when there is nothing to do."""
        budget = self._limits.max_num_batched_tokens
        waited_before = len(self.waiting)
        decodes = self._plan_decodes()
        budget -= len(decodes)
        prefills: list[tuple[Sequence, int]] = []
        for sequence in self.running:
            if not sequence.is_prefilled and budget > 0:
                budget -= self._prefill(sequence, budget, prefills)
        preempted = len(self.waiting) > waited_before
        while not preempted and budget > 0 and self._admit(now):
            budget -= self._prefill(self.running[-1], budget, prefills)
        return Step(tuple(prefills), decodes) if prefills or decodes else None

    def commit(self, step: Step, now: float) -> list[tuple[Sequence, Piece]]:
        """Finish a step: return the token of each sequence that got one, in order."""
        made: list[tuple[Sequence, Piece]] = []
        self._recorder.measure(Measure.STEP_TOKENS, step.prefill_tokens + len(step.decodes))
        for sequence, tokens in step.prefills:
            if sequence.lease is not None:
                sequence.computed += tokens
                self._fill_blocks(sequence)
                if sequence.computed >= len(sequence.tokens):
                    made.append((sequence, self._emit(sequence, now)))
        for sequence in step.decodes:
            if sequence.lease is not None:
                sequence.computed += 1
                self._fill_blocks(sequence)
                made.append((sequence, self._emit(sequence, now)))
        return made

    def _plan_decodes(self) -> tuple[Sequence, ...]:
        ready = [sequence for sequence in self.running if sequence.is_prefilled]
        planned = [sequence for sequence in ready if self._has_room_for_next(sequence)]
        return tuple(sequence for sequence in planned if sequence.lease is not None)

    def _has_room_for_next(self, sequence: Sequence) -> bool:
        while sequence.lease is not None and sequence.lease.blocks * self._block_size < len(sequence.tokens):
            if not self.pool.grow(sequence.lease):
                self._preempt(self.running[-1])
        return sequence.lease is not None

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._release(sequence)
        sequence.preemptions += 1
        self._recorder.count(Count.PREEMPTIONS)
        self.waiting.appendleft(sequence)

    def _admit(self, now: float) -> bool:
        if not self.waiting or len(self.running) >= self._limits.max_num_seqs:
            return False
        sequence = self.waiting[0]
        hits = self.pool.match(sequence.keys[: (len(sequence.tokens) - 1) // self._block_size])
        needed = -(-len(sequence.tokens) // self._block_size) - hits
        lease = self.pool.lease(sequence.keys[:hits], needed)
        if lease is None:
            return False
        self.waiting.popleft()
        self.running.append(sequence)
        sequence.lease = lease
        sequence.computed = hits * self._block_size
        if sequence.scheduled is None:
            sequence.scheduled = now
            sequence.cached = sequence.computed
            self._record_admission(sequence, now)
        return True

    def _record_admission(self, sequence: Sequence, now: float) -> None:
        prompt = len(sequence.prompt)
        if self._caches:
            self._recorder.count(Count.CACHE_QUERIES, prompt)
            self._recorder.count(Count.CACHE_HITS, sequence.cached)
        self._recorder.count(Count.COMPUTED_TOKENS, prompt - sequence.cached)
        self._recorder.measure(Measure.QUEUE, now - sequence.arrived)

    @staticmethod
    def _prefill(sequence: Sequence, budget: int, prefills: list[tuple[Sequence, int]]) -> int:
        tokens = min(budget, len(sequence.tokens) - sequence.computed)
        prefills.append((sequence, tokens))
        return tokens

    def _fill_blocks(self, sequence: Sequence) -> None:
        lease = sequence.lease
        size = self._block_size
        while self._caches and lease and (len(lease.keys) + 1) * size <= sequence.computed:
            position = len(lease.keys)
            if position == len(sequence.keys):
                parent = sequence.keys[-1] if sequence.keys else first_key(sequence.salt, sequence.adapter)
                sequence.keys.append(next_key(parent, sequence.tokens[position * size : (position + 1) * size]))
            self.pool.fill(lease, sequence.keys[position])

    def _emit(self, sequence: Sequence, now: float) -> Piece:
        piece = sequence.pieces[sequence.emitted]
        sequence.emitted += 1
        sequence.tokens.append(token_id(piece.text))
        if sequence.first_token is None:
            sequence.first_token = now
            self._recorder.count(Count.PROMPT_TOKENS, len(sequence.prompt), streams=sequence.streams)
            self._recorder.measure(Measure.TIME_TO_FIRST_TOKEN, now - sequence.arrived, streams=sequence.streams)
        else:
            self._recorder.measure(Measure.INTER_TOKEN, now - sequence.last_token)
        sequence.last_token = now
        self._recorder.count(Count.GENERATED_TOKENS, streams=sequence.streams)
        if sequence.emitted == len(sequence.pieces):
            self.running.remove(sequence)
            self._release(sequence)
            self._record_end(sequence, now)
        return piece

    def _release(self, sequence: Sequence) -> None:
        if sequence.lease is not None:
            self.pool.release(sequence.lease)
            sequence.lease = None

    def _record_end(self, sequence: Sequence, now: float) -> None:
        started = now if sequence.scheduled is None else sequence.scheduled
        first = now if sequence.first_token is None else sequence.first_token
        self._recorder.count(Count.REQUESTS, streams=sequence.streams)
        stopped = sequence.pieces[-1].finish == "stop"
        self._recorder.count(Count.FINISHED_STOP if stopped else Count.FINISHED_LENGTH)
        measured = {
            Measure.END_TO_END: now - sequence.arrived,
            Measure.PREFILL: first - started,
            Measure.DECODE: now - first,
            Measure.INFERENCE: now - started,
            Measure.PROMPT_LENGTH: len(sequence.prompt),
            Measure.UNCACHED_PROMPT_LENGTH: len(sequence.prompt) - sequence.cached,
            Measure.ANSWER_LENGTH: sequence.emitted,
            Measure.PREEMPTIONS: sequence.preemptions,
        }
        if sequence.emitted > 1:
            measured[Measure.TIME_PER_OUTPUT_TOKEN] = (now - first) / (sequence.emitted - 1)
        for what, value in measured.items():
            self._recorder.measure(what, value, streams=sequence.streams)


def tokens_of(sequences: Iterable[Sequence]) -> int:
    """Return how many tokens several sequences hold."""
    return sum(len(sequence.tokens) for sequence in sequences)
