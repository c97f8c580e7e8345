"""Endpoints by policy: never a draining one, whatever the order, sticky until saturated, strangers to the idlest."""

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, GatewayEndpoint
from gateway.load import EngineMetrics
from gateway.router import MAX_TRIES, PolicyName, Router, RouterSettings, RoutingRequest
from gateway.routing_policies import POLICIES, Blurred, policy_of

POLICY = st.sampled_from(PolicyName)
SEEDS = st.integers(0, 2**32)
BLOCK_TOKENS = 100


def endpoints_of(count, draining=()):
    return [GatewayEndpoint(address=f"e:{n}", is_draining=n in draining) for n in range(count)]


def chance_of(seed):
    return Random(seed)  # noqa: S311 - a test must be repeatable


def prompt(*blocks, more=50):
    return RoutingRequest(blocks, BLOCK_TOKENS, len(blocks) * BLOCK_TOKENS + more)


def tree_prompt(path):
    return prompt(*(int("1" + "".join(map(str, path[: depth + 1]))) for depth in range(len(path))))


TRAFFIC = st.lists(
    st.tuples(
        st.lists(st.integers(0, 2), max_size=5),
        st.floats(0, 2),
        st.sampled_from(["stay", "first_token", "end"]),
        st.integers(0, 30),
    ),
    max_size=25,
)


def after(router, traffic, endpoints, seed):
    """The router and the clock after some traffic."""
    chance, now, sent = chance_of(seed), 0.0, []
    for path, seconds, what, number in traffic:
        now += seconds
        choice = router.choose(tree_prompt(path), endpoints, now, chance)
        if choice.candidates:
            sent.append(router.send(choice, now))
        if what != "stay" and sent:
            getattr(sent[number % len(sent)], what)(now)
        router.measured(f"e:{number % 7}", EngineMetrics(now, waiting=number, kv_usage=number / 30))
    return now


@given(POLICY, st.integers(0, 7), st.sets(st.integers(0, 6)), TRAFFIC, SEEDS)
def test_a_draining_endpoint_is_never_chosen_and_none_is_named_twice(policy, count, draining, traffic, seed):
    router = Router(RouterSettings(policy=policy))
    now = after(router, traffic, endpoints_of(7), seed)
    choice = router.choose(prompt(1, 10), endpoints_of(count, draining), now, chance_of(seed))
    usable = {f"e:{n}" for n in range(count)} - {f"e:{n}" for n in draining}
    assert set(choice.addresses) <= usable
    assert len(set(choice.addresses)) == len(choice.addresses) == min(MAX_TRIES, len(usable))


@given(POLICY, TRAFFIC, SEEDS, st.permutations(range(6)))
def test_the_order_of_the_endpoints_changes_nothing(policy, traffic, seed, order):
    plain, shuffled = endpoints_of(6), [endpoints_of(6)[n] for n in order]
    answers = []
    for endpoints in (plain, shuffled):
        router = Router(RouterSettings(policy=policy))
        now = after(router, traffic, endpoints, seed)
        answers.append(router.choose(prompt(1, 10), endpoints, now, chance_of(seed)))
    assert answers[0] == answers[1]


@given(POLICY, TRAFFIC, SEEDS)
def test_the_same_chance_gives_the_same_choice(policy, traffic, seed):
    answers = []
    for _ in range(2):
        router = Router(RouterSettings(policy=policy))
        now = after(router, traffic, endpoints_of(5), seed)
        answers.append(router.choose(prompt(1), endpoints_of(5), now, chance_of(seed)))
    assert answers[0] == answers[1]


@settings(max_examples=30)
@given(POLICY, st.lists(st.floats(0.01, 10), min_size=1, max_size=4), TRAFFIC, SEEDS)
def test_affinity_never_moves_a_conversation_to_another_arm(policy, weights, traffic, seed):
    arms = [
        GatewayArm(deployment=f"arm-{n}", identity="i", engine="vllm", weight=weight, endpoints=tuple(endpoints_of(4)))
        for n, weight in enumerate(weights)
    ]
    fresh, used = Router(RouterSettings(policy=policy)), Router(RouterSettings(policy=policy))
    now = after(used, traffic, endpoints_of(4), seed)
    for number in range(20):
        conversation = number.to_bytes(4, "big")
        first, _ = fresh.route(arms, conversation, prompt(1, 10), now, chance_of(seed))
        second, _ = used.route(arms, conversation, prompt(1, 10), now, chance_of(seed))
        assert first.deployment == second.deployment
    assert fresh.route((), b"", prompt(1), now, chance_of(seed)) is None


@given(SEEDS, st.integers(2, 8), st.integers(3, 20))
def test_the_next_turn_goes_where_the_last_one_went_while_that_is_idle(seed, count, turns):
    router, chance, endpoints = Router(), chance_of(seed), endpoints_of(count)
    blocks, homes = (), set()
    for turn in range(turns):
        blocks += (1000 + turn,)
        choice = router.choose(prompt(*blocks), endpoints, float(turn), chance)
        homes.add(choice.addresses[0])
        request = router.send(choice, float(turn))
        request.end(turn + 0.5)
        # Another conversation, so that the endpoints differ in what they were given.
        router.send(router.choose(prompt(turn), endpoints, turn + 0.5, chance), turn + 0.5).end(turn + 0.6)
    assert len(homes) == 1


def test_a_saturated_home_gives_the_prompt_away():
    router, chance, endpoints = Router(), chance_of(0), endpoints_of(2)
    first = router.choose(prompt(*range(10)), endpoints, 0.0, chance)
    home = first.addresses[0]
    router.send(first, 0.0).end(0.1)
    assert router.choose(prompt(*range(11)), endpoints, 1.0, chance).addresses[0] == home
    for number in range(40):
        request = RoutingRequest((), BLOCK_TOKENS, 100)
        only_home = [endpoint for endpoint in endpoints if endpoint.address == home]
        router.send(router.choose(request, only_home, 1.0 + number / 1e6, chance), 1.0)
    assert router.choose(prompt(*range(11)), endpoints, 1.0, chance).addresses[0] != home


@given(SEEDS, st.lists(st.integers(1, 50_000), min_size=4, max_size=4, unique=True))
def test_a_prompt_that_nobody_knows_goes_to_the_least_loaded(seed, queued):
    router, chance = Router(), chance_of(seed)
    for endpoint, tokens in zip(endpoints_of(4), queued, strict=True):
        router.send(router.choose(RoutingRequest((), 1, 10 * tokens), [endpoint], 0.0, chance), 0.0)
    choice = router.choose(RoutingRequest((), 1, 10), endpoints_of(4), 0.0, chance)
    least = min(queued)
    assert 10 * queued[int(choice.addresses[0][2:])] <= 1.05 * (10 * least + 1.5 * 10 + 16) + 16


@pytest.mark.parametrize("seconds_between", [0.05, 1.0, 600.0])
@pytest.mark.parametrize("blocks_after", [1, 4, 20])
def test_a_shared_first_block_never_sends_all_to_one_endpoint(seconds_between, blocks_after):
    router, chance, endpoints, counts = Router(), chance_of(1), endpoints_of(8), Counter()
    for number in range(400):
        now = number * seconds_between
        own = range(1000 + number * blocks_after, 1000 + (number + 1) * blocks_after)
        choice = router.choose(prompt(0, *own), endpoints, now, chance)
        counts[choice.addresses[0]] += 1
        request = router.send(choice, now)
        request.first_token(now + 0.01)
        request.end(now + 0.02)
    assert len(counts) == 8
    assert max(counts.values()) <= 3 * 400 / 8


def test_unrelated_sessions_at_rest_use_all_endpoints():
    router, chance, endpoints = Router(), chance_of(2), endpoints_of(4)
    homes, now = Counter(), 0.0
    for turn in range(5):
        for session in range(8):
            now += 1.0
            choice = router.choose(prompt(*range(session * 100, session * 100 + turn + 5)), endpoints, now, chance)
            router.send(choice, now).end(now + 0.5)
            homes[choice.addresses[0]] += 1
    assert len(homes) == 4
    assert max(homes.values()) <= 15


@given(st.integers(1, 6), st.integers(1, 40))
def test_round_robin_takes_turns(count, requests):
    router = Router(RouterSettings(policy=PolicyName.ROUND_ROBIN))
    taken = [router.choose(prompt(), endpoints_of(count), 0.0, chance_of(n)).addresses[0] for n in range(requests)]
    assert taken == [f"e:{n % count}" for n in range(requests)]


def test_arms_take_turns_apart():
    router = Router(RouterSettings(policy=PolicyName.ROUND_ROBIN))
    for pool in ("a", "b", "a", "b"):
        router.choose(prompt(), endpoints_of(3), 0.0, chance_of(0), pool=pool)
    assert router.choose(prompt(), endpoints_of(3), 0.0, chance_of(0), pool="a").addresses[0] == "e:2"
    router.keep_only({"e:0"}, {"b"})
    assert router.choose(prompt(), endpoints_of(3), 0.0, chance_of(0), pool="a").addresses[0] == "e:0"


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), SEEDS)
def test_least_request_and_power_of_two_look_at_requests_in_flight(loads, seed):
    for policy in (PolicyName.LEAST_REQUEST, PolicyName.POWER_OF_TWO):
        router, chance = Router(RouterSettings(policy=policy)), chance_of(seed)
        for endpoint, load in zip(endpoints_of(len(loads)), loads, strict=True):
            for _ in range(load):
                router.send(router.choose(prompt(), [endpoint], 0.0, chance), 0.0)
        choice = router.choose(prompt(), endpoints_of(len(loads)), 0.0, chance)
        found = [loads[int(address[2:])] for address in choice.addresses]
        if policy is PolicyName.LEAST_REQUEST:
            assert found == sorted(loads)[: len(found)]
        assert found[0] <= found[1]


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=60), st.integers(2, 8), SEEDS)
def test_consistent_hash_bounds_the_load_and_keeps_homes_when_another_leaves(heads, count, seed):
    router, chance = Router(RouterSettings(policy=PolicyName.CONSISTENT_HASH)), chance_of(seed)
    endpoints = endpoints_of(count)
    counts = Counter()
    for total, head in enumerate(heads):
        choice = router.choose(prompt(0, head), endpoints, 0.0, chance)
        counts[choice.addresses[0]] += 1
        assert counts[choice.addresses[0]] <= math.ceil(1.25 * (total + 1) / count)
        router.send(choice, 0.0)
    idle = Router(RouterSettings(policy=PolicyName.CONSISTENT_HASH))
    for head in heads:
        home, *others = idle.choose(prompt(0, head), endpoints, 0.0, chance).addresses
        gone = others[-1]
        left = [endpoint for endpoint in endpoints if endpoint.address != gone]
        assert idle.choose(prompt(0, head), left, 0.0, chance).addresses[0] == home


def test_an_endpoint_without_kv_memory_comes_last():
    router = Router()
    router.send(router.choose(prompt(*range(9)), endpoints_of(1), 0.0, chance_of(0)), 0.0).end(0.1)
    router.measured("e:0", EngineMetrics(0.1, kv_usage=0.99))
    assert router.choose(prompt(*range(9)), endpoints_of(3), 0.1, chance_of(0)).addresses[-1] == "e:0"
    assert router.choose(prompt(*range(9)), endpoints_of(1), 0.1, chance_of(0)).addresses == ("e:0",)


@given(SEEDS)
def test_a_session_stays_even_where_its_blocks_differ(seed):
    router, chance = Router(), chance_of(seed)
    first = router.choose(RoutingRequest((1, 2), 100, 250, session=7), endpoints_of(6), 0.0, chance)
    router.send(first, 0.0).end(0.1)
    router.send(router.choose(prompt(9), endpoints_of(6), 0.2, chance), 0.2).end(0.3)
    again = router.choose(RoutingRequest((5, 6), 100, 250, session=7), endpoints_of(6), 1.0, chance)
    assert again.addresses[0] == first.addresses[0]


def test_the_choice_says_how_long_the_first_token_takes_there():
    router, chance = Router(), chance_of(0)
    router.send(router.choose(RoutingRequest((), 1, 20_000), endpoints_of(1), 0.0, chance), 0.0)
    busy = router.choose(RoutingRequest((), 1, 5_000), endpoints_of(1), 1.0, chance).candidates[0]
    assert busy.ttft_seconds == pytest.approx(1.5)


def test_the_router_says_how_full_endpoints_are():
    router = Router()
    router.measured("e:0", EngineMetrics(0.0, waiting=5))
    router.measured("e:1", EngineMetrics(0.0, kv_usage=0.4))
    assert router.saturations(["e:0", "e:1", "e:2"], 0.5) == [1.0, 0.5, 0.0]
    assert router.saturations(["e:0", "e:1", "e:2"], 5.0) == [1.0, 1.0, 0.0]


def test_a_restarted_engine_is_a_stranger_again():
    router, chance = Router(), chance_of(0)
    choice = router.choose(prompt(*range(20)), endpoints_of(1), 0.0, chance)
    in_flight = router.send(choice, 0.0)
    assert router.choose(prompt(*range(20)), endpoints_of(1), 0.0, chance).candidates[0].cached_tokens == 2000
    router.restarted("e:0")
    fresh = router.choose(prompt(*range(20)), endpoints_of(1), 0.0, chance).candidates[0]
    assert (fresh.cached_tokens, fresh.load.in_flight, fresh.load.queued_tokens) == (0, 0, 0.0)
    in_flight.end(1.0)
    assert router.choose(prompt(), endpoints_of(1), 1.0, chance).candidates[0].load.in_flight == 0


def test_what_engines_say_corrects_what_the_router_believes():
    router, chance = Router(), chance_of(0)
    router.send(router.choose(prompt(1, 2, 3), endpoints_of(1), 0.0, chance), 0.0)
    router.removed("e:0", (3,), 100)
    router.stored("e:1", (1, 2, 3), 100, 0.0)
    cached = {
        c.address: c.cached_tokens for c in router.choose(prompt(1, 2, 3), endpoints_of(2), 0.0, chance).candidates
    }
    assert cached == {"e:0": 200, "e:1": 300}
    router.cleared("e:1")
    router.capacity("e:0", 199)
    cached = {
        c.address: c.cached_tokens for c in router.choose(prompt(1, 2, 3), endpoints_of(2), 0.0, chance).candidates
    }
    assert cached == {"e:0": 100, "e:1": 0}


def test_a_request_that_another_gateway_sent_counts_until_its_end():
    router, chance = Router(), chance_of(0)
    told = router.heard("e:0", prompt(1, 2), 250, 0.0)
    busy = router.choose(prompt(1, 2), endpoints_of(1), 0.0, chance).candidates[0]
    assert (busy.cached_tokens, busy.load.in_flight, busy.load.queued_tokens) == (200, 1, 250.0)
    told.end(1.0)
    assert router.choose(prompt(1, 2), endpoints_of(1), 1.0, chance).candidates[0].load.in_flight == 0


def test_gateways_side_by_side_leave_something_to_chance():
    assert isinstance(policy_of(PolicyName.ESTIMATED_TTFT, 2).picker, Blurred)
    assert policy_of(PolicyName.ESTIMATED_TTFT, 1) is POLICIES[PolicyName.ESTIMATED_TTFT]
    assert policy_of(PolicyName.ROUND_ROBIN, 2) is POLICIES[PolicyName.ROUND_ROBIN]
    router, firsts = Router(RouterSettings(gateways=2)), set()
    for seed in range(50):
        firsts.add(router.choose(prompt(1), endpoints_of(4), 0.0, chance_of(seed)).addresses[0])
    assert len(firsts) == 4


def test_where_places_are_few_equal_endpoints_are_filled_evenly_and_a_cached_prefix_is_still_worth_its_price():
    router, endpoints = Router(), endpoints_of(2)
    requests = [(0, prompt(1))] + [(0, prompt(n, more=10)) for n in (2, 3)] + [(1, prompt(4, more=9_000))]
    for number, request in requests:
        sent = router.send(router.choose(request, [endpoints[number]], 0.0, chance_of(0)), 0.0)
        sent.first_token(0.0)
    wish = prompt(*range(100, 150))
    assert router.choose(wish, endpoints, 0.0, chance_of(0)).addresses == ("e:0", "e:1")  # was given less
    assert router.choose(wish, endpoints, 0.0, chance_of(0), places_are_few=True).addresses == ("e:1", "e:0")
    router.stored("e:0", wish.blocks[:25], BLOCK_TOKENS, 0.0)
    assert router.choose(wish, endpoints, 0.0, chance_of(0), places_are_few=True).addresses == ("e:0", "e:1")
