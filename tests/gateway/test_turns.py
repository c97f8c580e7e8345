"""Whose turn it is at a pool: every place leaves once, limits hold, and what is free is used."""

import asyncio
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewayTenant, QueueLimits
from gateway.arms import pool_of
from gateway.refusals import Reason
from gateway.router import EngineMetrics, PolicyName, Router, RouterSettings, RoutingRequest
from gateway.token_usage import TokenUsage
from gateway.turn_words import Outcome, Wish
from gateway.turns import Turns
from gateway.waiting import LOOK_SECONDS, WaitingRoom

CHANCE = Random(0)  # noqa: S311
ADDRESSES = ("127.0.0.1:1", "127.0.0.1:2")


def arm(name="chat", addresses=ADDRESSES, **more):
    endpoints = tuple(GatewayEndpoint(address=address) for address in addresses)
    return GatewayArm(deployment=name, identity=name, engine="vllm", endpoints=endpoints, **more)


class Pools:
    """Turns at two engines, with a clock that stands where the test puts it."""

    def __init__(self, *arms, limit=None, **queue):
        self.route = GatewayRoute(
            model="m",
            tenants=("a", "b"),
            arms=arms or (arm(),),
            concurrent_requests=limit,
            queue=QueueLimits(**queue),
        )
        self.router, self.now, self.told = Router(), 100.0, []
        self.turns = Turns(self.router, CHANCE, self.told.append)
        self.replace(self.route)

    def replace(self, *routes):
        by_name = {(tenant, route.model): route for route in routes for tenant in route.tenants}
        self.turns.replace(by_name, {"a", "b"}, self.now)

    def wish(self, tenant="a", tokens=100, **more):
        chosen = self.route.arms[0]
        request = RoutingRequest((), 1, tokens)
        choice = self.router.choose(request, chosen.endpoints, self.now, CHANCE, pool=pool_of(chosen))
        return Wish(GatewayTenant(name=tenant, **more), self.route, chosen, choice, 100)

    def ask(self, tenant="a", tokens=100, **more):
        place = self.turns.place(self.wish(tenant, tokens, **more), self.now)
        self.turns.enter(place)
        return place

    def ask_at(self, number, tenant, tokens):
        """One whose choice is an endpoint, first of all."""
        wish = self.wish(tenant, tokens)
        ordered = sorted(wish.choice.candidates, key=lambda candidate: candidate.address != ADDRESSES[number])
        place = self.turns.place(replace(wish, choice=wish.choice._replace(candidates=tuple(ordered))), self.now)
        self.turns.enter(place)
        return place

    def measure(self, waiting=0, kv_usage=0.0):
        for address in ADDRESSES:
            self.router.measured(address, EngineMetrics(self.now, 10, waiting, kv_usage))

    def in_flight(self):
        return sum(self.router._loads.in_flight(address) for address in ADDRESSES)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "leave", "later", "full", "free"]), st.integers(0, 99)), max_size=60
)


@given(actions=ACTIONS, limit=st.none() | st.integers(1, 4), most=st.integers(0, 5))
def test_every_place_is_left_once_limits_hold_and_in_the_end_nothing_is_left(actions, limit, most):
    pools, places = Pools(limit=limit, max_waiting=most, max_wait_seconds=5.0), []
    for action, number in actions:
        open_places = [place for place in places if place.refused is None]
        if action == "ask":
            places.append(pools.ask("ab"[number % 2], tokens=10 * number + 1))
        elif action == "leave" and open_places:
            place = open_places[number % len(open_places)]
            place.leave(pools.now, TokenUsage(number, 0, number) if number % 2 else None)
            place.leave(pools.now)
            places.remove(place)
        elif action == "later":
            pools.now += number / 50
            pools.turns.pump(pools.now)
        elif action in {"full", "free"}:
            pools.measure(waiting=9 if action == "full" else 0)
            pools.turns.pump(pools.now)
        held = [place for place in places if place.has_turn]
        assert pools.turns.running == pools.in_flight() == len(held) <= (limit or 99)
        assert len(pools.turns) == sum(not place.has_turn and place.refused is None for place in places) <= most
        assert pools.turns.waiting("m") == len(pools.turns)
    for place in places:
        place.leave(pools.now)
    assert (len(pools.turns), pools.turns.running, pools.in_flight()) == (0, 0, 0)
    assert len(pools.told) == sum(action == "ask" for action, _ in actions)


def test_while_there_is_room_nobody_waits_and_the_choice_stays():
    pools = Pools()
    place = pools.ask()
    assert place.has_turn
    assert place.choice is place.wish.choice
    assert [waited.outcome for waited in pools.told] == [Outcome.TURN]


def crowded(limit=40, **settings):
    """The first engine has nineteen requests, the second one has five and was given much more."""
    pools = Pools(limit=limit)
    pools.router = Router(RouterSettings(**settings))
    pools.turns = Turns(pools.router, CHANCE)
    pools.replace(pools.route)
    for number in range(24):
        address, tokens = (0, 100) if number < 19 else (1, 90_000)
        pools.ask_at(address, "ba"[number % 2], tokens).in_flight.first_token(pools.now)
    return pools


def test_the_last_slots_of_an_engine_are_not_taken_while_another_that_is_as_good_has_more():
    assert crowded().ask_at(0, "b", 200_000).choice.addresses[0] == ADDRESSES[1]


@pytest.mark.parametrize("more", [{"limit": None}, {"limit": 200}, {"policy": PolicyName.ROUND_ROBIN}])
def test_where_no_slot_is_the_last_or_nobody_minds_the_choice_stays(more):
    place = crowded(**more).ask_at(0, "b", 200_000)
    assert place.choice is place.wish.choice


def test_all_engines_full_by_their_own_words_is_a_queue_and_one_with_room_is_not():
    pools = Pools()
    pools.measure(waiting=5)
    place = pools.ask()
    assert len(pools.turns) == 1
    pools.now += 0.1
    pools.router.measured(ADDRESSES[1], EngineMetrics(pools.now, 10, 2))
    pools.turns.pump(pools.now)
    assert place.choice.addresses == (ADDRESSES[1],)  # routed anew: the other one is still full


@pytest.mark.parametrize("kv_usage", [0.8, 0.95])
def test_memory_of_80_percent_is_full(kv_usage):
    pools = Pools()
    pools.measure(kv_usage=kv_usage)
    assert not pools.ask().has_turn


def test_what_was_sent_since_the_metrics_were_read_counts():
    pools = Pools()
    pools.measure(waiting=0)
    pools.now += 0.1
    places = [pools.ask() for _ in range(30)]
    assert sum(place.has_turn for place in places) == 2 * 5
    for place in places[:10]:
        place.in_flight.first_token(pools.now)
    pools.turns.pump(pools.now)
    assert sum(place.has_turn for place in places) == 20


def test_engines_that_say_nothing_may_have_a_hundred_requests_each():
    pools = Pools()
    places = [pools.ask() for _ in range(201)]
    assert sum(place.has_turn for place in places) == 200
    assert not places[-1].has_turn


def test_old_metrics_never_stop_an_engine_that_has_none_of_our_requests():
    pools = Pools()
    pools.measure(waiting=50)
    pools.now += 2.0
    places = [pools.ask() for _ in range(3)]
    assert [place.has_turn for place in places] == [True, True, False]
    pools.now += 20.0
    pools.turns.pump(pools.now)
    assert places[2].has_turn


def test_a_turn_that_can_not_be_had_in_time_is_refused_with_the_time_to_come_back():
    pools = Pools(limit=1, max_wait_seconds=2.0)
    pools.ask()
    late = pools.ask("b")
    pools.now += 2.1
    pools.turns.pump(pools.now)
    assert late.refused.reason is Reason.QUEUE_TIMEOUT
    assert late.refused.status == 503
    assert dict(late.refused.headers)["retry-after"] == "1"


def test_priority_and_weight_come_with_the_tenant():
    pools = Pools(limit=1)
    first = pools.ask()
    low, high = pools.ask("a"), pools.ask("b", priority=1)
    first.leave(pools.now)
    assert (low.has_turn, high.has_turn) == (False, True)


def test_who_waits_for_an_arm_that_is_gone_moves_to_another_one():
    pools = Pools(limit=1)
    pools.ask()
    place = pools.ask()
    other = arm("other", ("127.0.0.1:3",))
    pools.replace(pools.route.model_copy(update={"arms": (other,), "concurrent_requests": None}))
    assert place.has_turn
    assert (place.arm, place.choice.addresses) == (other, ("127.0.0.1:3",))


def test_who_waits_for_a_model_that_is_gone_is_refused():
    pools = Pools(limit=1)
    running, place = pools.ask(), pools.ask()
    pools.replace()
    assert place.refused.reason is Reason.NO_ENDPOINT
    running.leave(pools.now)
    assert pools.turns.running == 0


def test_two_arms_share_the_limit_of_their_route():
    pools = Pools(arm(), arm("canary", ("127.0.0.1:3",)), limit=1)
    first = pools.ask()
    canary = pools.wish()
    canary = Wish(canary.tenant, canary.route, pools.route.arms[1], canary.choice, 100)
    place = pools.turns.place(canary, pools.now)
    pools.turns.enter(place)
    assert not place.has_turn
    first.leave(pools.now)
    assert place.has_turn


def test_a_turn_is_awaited_and_leaving_meanwhile_leaves_nothing():
    async def story():
        pools = Pools(limit=1, max_wait_seconds=60.0)
        room = WaitingRoom(pools.turns, lambda: pools.now)
        held = []
        first = await room.turn(pools.wish(), held.append)
        waiting = asyncio.ensure_future(room.turn(pools.wish(), held.append))
        leaving = asyncio.ensure_future(room.turn(pools.wish(), held.append))
        await asyncio.sleep(0)
        assert len(pools.turns) == 2
        leaving.cancel()
        await asyncio.wait([leaving])
        held[2].leave(pools.now)
        first.leave(pools.now)
        assert (await waiting).has_turn
        waiting_last = asyncio.ensure_future(room.turn(pools.wish(), held.append))
        await asyncio.sleep(0)
        pools.now += 61.0
        refused = await asyncio.wait_for(waiting_last, 100 * LOOK_SECONDS)
        assert refused.refused.reason is Reason.QUEUE_TIMEOUT
        held[1].leave(pools.now)
        assert (len(pools.turns), pools.turns.running) == (0, 0)

    asyncio.run(story())


def test_who_waits_for_a_model_that_sleeps_has_its_turn_when_an_engine_is_there():
    asleep_arm = arm(addresses=())
    pools = Pools(asleep_arm, waits_without_engine=True)
    place = pools.ask()
    assert (place.has_turn, pools.turns.waiting("m")) == (False, 1)
    pools.now += 15.0
    pools.replace(pools.route.model_copy(update={"arms": (arm(),)}))
    assert place.has_turn
    assert set(place.choice.addresses) == set(ADDRESSES)
