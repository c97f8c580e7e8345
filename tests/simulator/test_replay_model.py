"""The reference model: a naive copy agrees, the router's view returns to zero, disturbances are survived."""

import json
import math
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.replay import PolicyName, ReplaySettings, Sharing, _Replay, replay
from simulator.replay_replica import Replica
from simulator.replay_result import busiest_over_mean, percentile
from simulator.trace_file import Trace

BLOCK, RATE = 10, 100.0
CELL = ReplaySettings(
    PolicyName.ESTIMATED_TTFT, replicas=3, cache_blocks=12, block_tokens=BLOCK, prefill_tokens_per_second=RATE
)
MOONCAKE = Path(__file__).parents[3] / "shared" / "traces" / "mooncake_conversation.jsonl.gz"
POLICY = st.sampled_from(PolicyName)


def blocks_of(path):
    return [int("1" + "".join(map(str, path[: depth + 1]))) for depth in range(len(path))]


REQUESTS = st.lists(
    st.builds(
        lambda gap, path, tail, out: (gap, blocks_of(path), len(path) * BLOCK - tail, out),
        st.integers(0, 3000),
        st.lists(st.integers(0, 2), min_size=1, max_size=6),
        st.integers(0, BLOCK - 1),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=40,
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


def written(folder, requests):
    """A trace file and its lines."""
    lines, at = [], 0
    for gap, ids, tokens, out in requests:
        at += gap
        lines.append({"timestamp": at, "input_length": tokens, "output_length": out, "hash_ids": ids})
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Trace(path), lines


def naive_round_robin(lines, replicas, capacity, load):
    """The model once more, in the plainest form: (cached tokens, TTFTs)."""
    duration = (lines[-1]["timestamp"] - lines[0]["timestamp"]) / 1000
    wished = sum(line["input_length"] for line in lines) / RATE / (load * replicas)
    factor = wished / duration if duration else 0.0
    caches = [OrderedDict() for _ in range(replicas)]
    free_at = [0.0] * replicas
    cached_tokens, ttfts = 0, []
    for number, line in enumerate(lines):
        cache, place = caches[number % replicas], number % replicas
        now = (line["timestamp"] - lines[0]["timestamp"]) / 1000 * factor
        blocks = line["hash_ids"][: (line["input_length"] - 1) // BLOCK]
        hits = next((depth for depth, block in enumerate(blocks) if block not in cache), len(blocks))
        for block in reversed(blocks):
            cache.pop(block, None)
            cache[block] = True
        while len(cache) > capacity:
            cache.popitem(last=False)
        cached_tokens += hits * BLOCK
        free_at[place] = max(now, free_at[place]) + (line["input_length"] - hits * BLOCK) / RATE
        ttfts.append(free_at[place] - now)
    return cached_tokens, ttfts


@settings(max_examples=60)
@given(REQUESTS, st.integers(1, 4), st.integers(0, 15), st.sampled_from([0.3, 0.7, 2.0]))
def test_round_robin_is_the_model_in_its_plainest_form(folder, requests, replicas, capacity, load):
    trace, lines = written(folder, requests)
    cell = replace(CELL, policy=PolicyName.ROUND_ROBIN, replicas=replicas, cache_blocks=capacity, load=load)
    result = replay(trace, cell)
    cached, ttfts = naive_round_robin(lines, replicas, capacity, load)
    assert result.cached_tokens == cached
    assert sorted(result.ttft_seconds) == pytest.approx(sorted(ttfts))
    assert max(result.per_replica_requests) - min(result.per_replica_requests) <= 1


@settings(max_examples=60)
@given(
    REQUESTS,
    POLICY,
    st.integers(1, 3),
    st.sampled_from(Sharing),
    st.none() | st.floats(0, 30),
    st.sampled_from([0.0, 5.0]),
    st.integers(0, 3),
)
def test_every_request_is_answered_and_counters_return_to_zero(
    folder, requests, policy, gateways, sharing, restart_at, delay, seed
):
    trace, lines = written(folder, requests)
    cell = replace(
        CELL,
        policy=policy,
        gateways=gateways,
        sharing=sharing,
        restart_at_seconds=restart_at,
        restart_seconds=3.0,
        metrics_delay_seconds=delay,
        seed=seed,
    )
    run = _Replay(cell)
    arrivals = [(request.at_seconds, request) for request in trace.requests()]
    result = run.run(arrivals, len(lines), None)
    assert len(result.ttft_seconds) == len(lines)
    assert all(0 < seconds < math.inf for seconds in result.ttft_seconds)
    assert sum(result.per_replica_requests) >= len(lines)
    assert 0 <= result.hit_ratio < 1
    addresses = [endpoint.address for endpoint in run._endpoints]
    for router in run._gateways.routers:
        for load in router._loads.loads(addresses, 1e9):
            assert (load.in_flight, load.queued_tokens) == (0, 0.0)
        assert all(router._indexes.of(BLOCK).count(address) <= cell.cache_blocks for address in addresses)
    assert all(replica.running == 0 for replica in run._replicas.values())
    assert not any(run._live.values())


@given(REQUESTS, POLICY, st.integers(0, 3))
def test_the_same_seed_gives_the_same_figures(folder, requests, policy, seed):
    trace, _ = written(folder, requests)
    cell = replace(CELL, policy=policy, seed=seed, gateways=2)
    assert replay(trace, cell).to_document() == replay(trace, cell).to_document()


@given(REQUESTS)
def test_one_replica_leaves_nothing_to_choose(folder, requests):
    trace, _ = written(folder, requests)
    results = [replay(trace, replace(CELL, policy=policy, replicas=1)).to_document() for policy in PolicyName]
    assert all(result == results[0] for result in results)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), max_size=30), st.integers(0, 12))
def test_the_routers_index_is_what_one_engine_holds(folder, paths, capacity):
    trace, _ = written(folder, [(100, blocks_of(path), len(path) * BLOCK, 1) for path in paths] or [(0, [1], 9, 1)])
    run = _Replay(replace(CELL, replicas=1, cache_blocks=capacity))
    run.run([(request.at_seconds, request) for request in trace.requests()], len(paths), None)
    (replica,) = run._replicas.values()
    assert run._gateways.routers[0]._indexes.of(BLOCK).held_by("replica-0000") == tuple(replica._blocks)


def test_a_restarted_engine_computes_everything_anew():
    replica = Replica(10, RATE)
    assert replica.admit((1, 2), 25, BLOCK, 0.0).first_token_at == pytest.approx(0.25)
    assert replica.admit((1, 2), 25, BLOCK, 0.0).first_token_at == pytest.approx(0.30)
    assert replica.waiting(0.1) == 1
    replica.restart()
    assert replica.waiting(0.1) == 0
    assert replica.admit((1, 2), 25, BLOCK, 0.1).first_token_at == pytest.approx(0.35)


def test_an_engine_says_which_blocks_left():
    replica = Replica(2, RATE)
    replica.admit((1, 2), 25, BLOCK, 0.0)
    assert replica.admit((3,), 15, BLOCK, 0.0).removed == (2,)
    assert replica.admit((4, 5, 6), 35, BLOCK, 0.0).removed == (1, 3, 6)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_a_percentile_lies_between_the_values(values, percent):
    ordered = sorted(values)
    assert ordered[0] <= percentile(ordered, percent) <= ordered[-1] or percentile(ordered, percent) == pytest.approx(
        ordered[-1]
    )
    assert percentile(ordered, 0) == ordered[0]
    assert percentile(ordered, 100) == ordered[-1]


def test_nothing_computed_has_no_busiest():
    assert busiest_over_mean([0, 0]) is None
    assert busiest_over_mean([3, 1]) == 1.5


@pytest.mark.skipif(not MOONCAKE.exists(), reason="the trace is not beside this checkout")
def test_the_bar_on_the_conversation_trace():
    cell = ReplaySettings(PolicyName.ESTIMATED_TTFT, replicas=8, cache_blocks=3_000)
    turns = replay(Trace(MOONCAKE), replace(cell, policy=PolicyName.ROUND_ROBIN))
    assert round(turns.hit_ratio, 4) == 0.0925
    assert turns.mean_ttft_seconds == pytest.approx(2.90, abs=0.005)
    own = replay(Trace(MOONCAKE), cell)
    assert own.hit_ratio >= 0.265
    assert own.mean_ttft_seconds <= 1.10
    assert own.busiest_over_mean_tokens <= 1.10
