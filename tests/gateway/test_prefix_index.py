"""What endpoints are believed to hold: bounded, of every prompt a head or nothing, fading, forgotten at a restart."""

import math
from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.prefix_index import PrefixIndex

ADDRESSES = ("a:1", "b:1", "c:1")
TREE_DEPTH = 6
PATHS = st.lists(st.integers(0, 2), min_size=1, max_size=TREE_DEPTH)


def blocks_of(path):
    """Chained numbers: one for each node of a tree, so that equal beginnings have equal numbers."""
    return tuple(int("1" + "".join(map(str, path[: depth + 1]))) for depth in range(len(path)))


def depth_in(held, blocks):
    return next((depth for depth, block in enumerate(blocks) if block not in held), len(blocks))


class IndexAgainstEngines(RuleBasedStateMachine):
    """The index beside one true LRU per endpoint, as an engine keeps it."""

    @initialize(capacity=st.integers(0, 12), ttl=st.sampled_from([5.0, math.inf]))
    def start(self, capacity, ttl):
        self.capacity = dict.fromkeys(ADDRESSES, capacity)
        self.ttl = ttl
        self.now = 0.0
        self.index = PrefixIndex(capacity_blocks=capacity, ttl_seconds=ttl)
        self.engines = {address: OrderedDict() for address in ADDRESSES}

    @rule(address=st.sampled_from(ADDRESSES), path=PATHS)
    def a_prompt_goes_to_an_endpoint(self, address, path):
        blocks = blocks_of(path)
        self.index.note(address, blocks, self.now)
        engine = self.engines[address]
        for block in reversed(blocks[: self.capacity[address]]):
            engine[block] = self.now
            engine.move_to_end(block)
        self.evict(address)

    @rule(seconds=st.floats(0, 4))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(address=st.sampled_from(ADDRESSES))
    def an_endpoint_restarts(self, address):
        self.index.reset(address)
        self.engines[address].clear()

    @rule(address=st.sampled_from(ADDRESSES), capacity=st.integers(0, 12))
    def an_endpoint_says_its_size(self, address, capacity):
        self.index.set_capacity(address, capacity)
        self.capacity[address] = capacity
        self.evict(address)

    @rule(path=PATHS)
    def a_prompt_is_looked_up(self, path):
        blocks = blocks_of(path)
        for engine in self.engines.values():
            for block in [block for block, at in engine.items() if self.now - at > self.ttl]:
                del engine[block]
        depths = {address: depth_in(engine, blocks) for address, engine in self.engines.items()}
        found = self.index.depths(blocks, self.now)
        assert found == {address: depth for address, depth in depths.items() if depth}

    def evict(self, address):
        engine = self.engines[address]
        while len(engine) > self.capacity[address]:
            engine.popitem(last=False)

    @invariant()
    def the_bound_holds_and_every_block_stands_on_its_prefix(self):
        for address in ADDRESSES if hasattr(self, "index") else ():
            held = set(self.index.held_by(address))
            assert len(held) == self.index.count(address) <= self.capacity[address]
            assert all(block < 20 or block // 10 in held for block in held)


TestIndexAgainstEngines = IndexAgainstEngines.TestCase


@given(st.lists(st.tuples(st.sampled_from(ADDRESSES), PATHS), max_size=20), st.sets(st.sampled_from(ADDRESSES)))
def test_endpoints_that_left_leave_nothing_behind(prompts, kept):
    index = PrefixIndex(capacity_blocks=8)
    for address, path in prompts:
        index.note(address, blocks_of(path), 0.0)
    index.keep_only(kept)
    known = {address for address, path in prompts for address in index.depths(blocks_of(path), 0.0)}
    assert known <= kept
    index.keep_only(())
    assert not index._holders
    assert not index._held
    assert not index._addresses


@given(PATHS, st.lists(st.integers(0, TREE_DEPTH - 1)))
def test_removed_blocks_are_not_found_and_end_the_match(path, removed):
    index = PrefixIndex()
    blocks = blocks_of(path)
    index.note("a:1", blocks, 0.0)
    gone = [blocks[place] for place in removed if place < len(blocks)]
    index.drop("a:1", gone)
    index.drop("b:1", gone)
    expected = min((blocks.index(block) for block in gone), default=len(blocks))
    assert index.depths(blocks, 0.0) == ({"a:1": expected} if expected else {})


def test_the_tail_leaves_before_the_head():
    index = PrefixIndex(capacity_blocks=4)
    index.note("a:1", (1, 11, 111), 0.0)
    index.note("a:1", (2, 22), 1.0)
    assert index.depths((1, 11, 111), 1.0) == {"a:1": 2}
    assert index.held_by("a:1") == (11, 1, 22, 2)


def test_a_prompt_larger_than_the_cache_keeps_its_head():
    index = PrefixIndex(capacity_blocks=2)
    index.note("a:1", (1, 11, 111), 0.0)
    assert index.depths((1, 11, 111), 0.0) == {"a:1": 2}


def test_more_endpoints_than_bits_of_a_word():
    index = PrefixIndex()
    for number in range(200):
        index.note(f"e:{number}", (1, 11)[: 1 + number % 2], 0.0)
    assert index.depths((1, 11), 0.0) == {f"e:{number}": 1 + number % 2 for number in range(200)}
