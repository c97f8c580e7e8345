"""Laws of the block pool and of continuous batching, driven without a clock."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from simulator.composition import Wish, compose
from simulator.latency import NOISE, LatencyModel
from simulator.prefix_cache import BlockPool, first_key, keys_of
from simulator.scheduler import Scheduler, Sequence
from simulator.settings import CacheSettings, Limits, Pace
from simulator.signals import Count, Measure

SALTS = st.sampled_from([None, "tenant-a", "tenant-b"])


class Tally:
    """A recorder that adds up."""

    def __init__(self):
        self.counts = dict.fromkeys(Count, 0)
        self.measures = {measure: [] for measure in Measure}

    def count(self, what, amount=1, *, streams=False):
        self.counts[what] += amount

    def measure(self, what, value, *, streams=False):
        self.measures[what].append(value)


class PoolRules(RuleBasedStateMachine):
    """Leases come, grow, fill and go in any order."""

    def __init__(self):
        super().__init__()
        self.pool = BlockPool(8)
        self.leases = []

    @rule(tokens=st.lists(st.integers(0, 1), max_size=12), extra=st.integers(0, 3), salt=SALTS)
    def lease(self, tokens, extra, salt):
        keys = keys_of(tokens, 2, first_key(salt, None))
        hits = self.pool.match(keys)
        lease = self.pool.lease(keys[:hits], len(keys) - hits + extra)
        if lease is not None:
            for key in keys[hits:]:
                self.pool.fill(lease, key)
            self.leases.append(lease)

    @rule(place=st.integers(0, 50))
    def grow(self, place):
        if self.leases:
            self.pool.grow(self.leases[place % len(self.leases)])

    @rule(place=st.integers(0, 50))
    def release(self, place):
        if self.leases:
            self.pool.release(self.leases.pop(place % len(self.leases)))

    @invariant()
    def it_never_exceeds_its_blocks(self):
        assert 0 <= self.pool.used <= self.pool.used + self.pool.idle <= self.pool.capacity
        assert 0 <= self.pool.usage <= 1

    @invariant()
    def it_counts_what_is_leased(self):
        keys = {key for lease in self.leases for key in lease.keys}
        assert self.pool.used == len(keys) + sum(lease.open_blocks for lease in self.leases)


TestPool = PoolRules.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@given(st.lists(st.integers(0, 9), max_size=40), SALTS, SALTS)
def test_keys_are_shared_by_equal_prefixes_of_one_salt_only(tokens, salt, other):
    keys = keys_of(tokens, 4, first_key(salt, None))
    assert len(keys) == len(tokens) // 4
    assert keys_of([*tokens, 1, 2, 3, 4], 4, first_key(salt, None))[: len(keys)] == keys
    if salt != other:
        assert not set(keys) & set(keys_of(tokens, 4, first_key(other, None)))


def test_the_tail_of_a_prefix_is_evicted_before_its_head():
    pool = BlockPool(4)
    keys = keys_of(range(8), 2, first_key(None, None))
    lease = pool.lease((), 4)
    for key in keys:
        pool.fill(lease, key)
    pool.release(lease)
    pool.lease((), 2)
    assert pool.match(keys) == 2


def run(scheduler, sequences, *, stop_after=100_000):
    """Add all sequences, step to the end and return what each one got."""
    made = {sequence: [] for sequence in sequences}
    for sequence in sequences:
        scheduler.add(sequence, 0.0)
    now = 0.0
    for _ in range(stop_after):
        step = scheduler.plan(now)
        if step is None:
            return made
        now += 1.0
        for sequence, piece in scheduler.commit(step, now):
            made[sequence].append(piece)
        assert scheduler.pool.used <= scheduler.pool.capacity
    raise AssertionError("the scheduler does not come to an end")


def sequence(prompt, seed=1, tokens=12, **fields):
    return Sequence(tuple(prompt), compose(Wish("p", seed, tokens, ignores_end=True)), **fields)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60), SALTS), min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(4, 64),
    st.booleans(),
)
def test_every_sequence_gets_all_its_pieces_in_order_even_under_preemption(wanted, batch, budget, caches):
    tally = Tally()
    limits = Limits(max_model_len=128, max_num_seqs=batch, max_num_batched_tokens=budget)
    scheduler = Scheduler(limits, CacheSettings(block_size=4, num_blocks=32, prefix_caching=caches), tally)
    sequences = [sequence(range(length), seed, tokens, salt=salt) for seed, (length, tokens, salt) in enumerate(wanted)]
    made = run(scheduler, sequences)
    assert [made[one] for one in sequences] == [list(one.pieces) for one in sequences]
    assert scheduler.pool.used == 0
    assert tally.counts[Count.GENERATED_TOKENS] == sum(len(one.pieces) for one in sequences)
    assert tally.counts[Count.CACHE_HITS] <= tally.counts[Count.CACHE_QUERIES]
    for one in sequences:
        assert one.cached % 4 == 0
        assert one.cached < len(one.prompt)
        assert caches or not one.cached


def test_decoding_past_the_blocks_preempts_the_youngest_and_it_still_completes():
    tally = Tally()
    scheduler = Scheduler(Limits(max_model_len=40), CacheSettings(block_size=4, num_blocks=10), tally)
    made = run(scheduler, [sequence(range(n, n + 16), n, 24) for n in (0, 100)])
    assert tally.counts[Count.PREEMPTIONS] > 0
    assert [len(pieces) for pieces in made.values()] == [24, 24]


def test_the_second_request_with_the_same_prompt_computes_only_the_rest():
    scheduler = Scheduler(Limits(), CacheSettings(block_size=32, num_blocks=400), Tally())
    first, second, other = (
        sequence(range(3_500)),
        sequence(range(3_500)),
        sequence(range(3_500), salt="tenant-b"),
    )
    for one in (first, second, other):
        run(scheduler, [one])
    assert (first.cached, second.cached, other.cached) == (0, 3_488, 0)


def test_an_aborted_sequence_frees_its_blocks_and_gets_nothing_more():
    tally = Tally()
    scheduler = Scheduler(Limits(), CacheSettings(block_size=4, num_blocks=400), tally)
    gone, stays = sequence(range(20)), sequence(range(50, 60))
    scheduler.add(gone, 0.0)
    scheduler.add(stays, 0.0)
    step = scheduler.plan(0.0)
    scheduler.abort(gone)
    scheduler.abort(gone)
    assert [made for made, _ in scheduler.commit(step, 1.0)] == [stays]
    assert scheduler.running == [stays]
    assert scheduler.pool.used == 3
    assert tally.counts[Count.ABORTED] == 1


def test_no_more_sequences_run_than_allowed_and_the_rest_waits_in_order():
    scheduler = Scheduler(Limits(max_num_seqs=2), CacheSettings(), Tally())
    sequences = [sequence(range(9), seed) for seed in range(5)]
    for one in sequences:
        scheduler.add(one, 0.0)
    scheduler.plan(0.0)
    assert scheduler.running == sequences[:2]
    assert list(scheduler.waiting) == sequences[2:]


@given(st.integers(0, 1_000), st.integers(0, 20_000), st.integers(0, 64))
def test_the_same_seed_takes_the_same_time_and_speed_divides_it(seed, prefill, decodes):
    times = [LatencyModel(Pace(seed=seed, speed=speed)).step_seconds(prefill, decodes) for speed in (1.0, 1.0, 2.0)]
    assert times[0] == times[1] == pytest.approx(2 * times[2])
    assert times[0] >= prefill / 10_000 * (1 - NOISE)
    assert times[0] <= (prefill / 10_000 + 0.03 * (1 + 0.004 * 64)) * (1 + NOISE)
