"""What is kept free of a pool: a little, of those above their share alone, and nothing for a tenant that is alone."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, GatewayEndpoint
from gateway.fair_queue import Waiting
from gateway.pool_room import Room, Slots
from gateway.router import Router, RoutingRequest
from gateway.running_shares import RunningModels, RunningShares

ENDPOINTS = tuple(GatewayEndpoint(address=f"127.0.0.1:{port}") for port in range(1, 9))
ARM = GatewayArm(deployment="chat", identity="i", engine="vllm", endpoints=ENDPOINTS)
CHANCE = Random(0)  # noqa: S311


def waiting(tenant):
    return Waiting(tenant, 1.0, 1e9, flow="m")


def shares_of(now=0.0, **services):
    shares = RunningShares()
    for tenant, service in services.items():
        shares.start(tenant, service, 1.0, now)
    return shares


def slots(running, limit=100, endpoints=8, at=0):
    return lambda _: Slots(running, limit, endpoints, lambda _: at)


def busy_router(*addresses, now=0.0):
    """One that has learned how fast engines compute, with a long prompt at each of these addresses."""
    router = Router()
    for endpoint in ENDPOINTS:
        sent = router.send(router.choose(RoutingRequest((), 1, 20_000), (endpoint,), now - 2, CHANCE), now - 2)
        sent.first_token(now)
        sent.end(now)
    for endpoint in ENDPOINTS:
        if endpoint.address in addresses:
            router.send(router.choose(RoutingRequest((), 1, 9_000), (endpoint,), now, CHANCE), now)
    return router


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 1e5), st.floats(0.1, 9), st.floats(0, 100), st.booleans()),
        max_size=40,
    )
)
def test_shares_add_up_fade_and_end_at_nothing(steps):
    shares, running, now = RunningShares(), [], 0.0
    for tenant, service, weight, later, ends in steps:
        now += later * 30
        if ends and running:
            shares.end(running.pop(), -service, now)
        else:
            shares.start(tenant, service, weight, now)
            running.append(tenant)
        assert len(shares) == len(set(running))
        assert 0.0 <= shares.part_of_others() <= 1.0 + 1e-9
        assert not all(shares.is_above(tenant) for tenant in running) or not running
    for tenant in running:
        shares.end(tenant, 0.0, now)
    assert len(shares) == 0
    assert shares.part_of_others() == 0.0


def test_what_was_served_long_ago_counts_for_less():
    shares = shares_of(old=1_000.0, new=10.0)
    assert shares.is_above("old")
    shares.start("new", 500.0, 1.0, 100.0)
    assert (shares.is_above("old"), shares.is_above("new")) == (False, True)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("mn"), st.sampled_from("xy")), max_size=30))
def test_models_are_counted_by_endpoint_and_end_at_nothing(started):
    running = RunningModels()
    for model, _, address in started:
        running.start(model, address)
    for model in "ab":
        assert running.of(model) == sum(name == model for name, _, _ in started)
        assert running.of(model) == sum(running.at(model, address) for address in "xy")
    for model, _, address in started:
        running.end(model, address)
    assert running.requests == 0


def test_the_last_slots_are_for_those_that_are_not_above_their_share():
    shares = shares_of(flood=900.0, calm=100.0)
    room = Room(Router(), ARM, shares, slots(running=95), 0.0)
    assert not room.of(waiting("flood"))
    assert room.of(waiting("calm")) == room.of(waiting("new")) == ENDPOINTS
    assert room.has_slot(waiting("flood"))
    full = Room(Router(), ARM, shares, slots(running=100), 0.0)
    assert not full.of(waiting("calm"))
    assert not full.has_slot(waiting("calm"))


def test_a_tenant_that_is_alone_may_have_all():
    room = Room(busy_router(), ARM, shares_of(flood=900.0), slots(running=99), 0.0)
    assert room.of(waiting("flood")) == ENDPOINTS


def test_where_the_others_use_little_little_is_kept():
    room = Room(Router(), ARM, shares_of(flood=990.0, calm=10.0), slots(running=98), 0.0)
    assert room.of(waiting("flood"))


def test_long_prompts_of_a_flood_leave_endpoints_free_for_what_the_others_use():
    shares = shares_of(flood=400.0, one=300.0, two=300.0)  # 0.6 of it is of others: half of that is kept
    kept = int(8 * 0.5 * 0.6)
    busy = [endpoint.address for endpoint in ENDPOINTS[: 8 - kept]]
    almost = Room(busy_router(*busy[:-1]), ARM, shares, lambda _: None, 0.0)
    assert {endpoint.address for endpoint in almost.of(waiting("flood"))}.isdisjoint(busy[:-1])
    assert almost.of(waiting("flood"))
    room = Room(busy_router(*busy), ARM, shares, lambda _: None, 0.0)
    assert not room.of(waiting("flood"))
    assert len(room.of(waiting("one"))) == kept


def test_a_limit_is_spread_over_the_endpoints():
    full_at = {"127.0.0.1:1"}
    spread = Slots(10, 16, 8, lambda address: 2 if address in full_at else 1)
    room = Room(Router(), ARM, shares_of(a=1.0), lambda _: spread, 0.0)
    assert [endpoint.address for endpoint in room.of(waiting("a"))] == [e.address for e in ENDPOINTS[1:]]


def room_with(counts, limit):
    """One where the endpoints have so many requests of a model, most of which are of others than the flood."""
    at = dict(zip((endpoint.address for endpoint in ENDPOINTS), counts, strict=True))
    shares = shares_of(flood=400.0, one=300.0, two=300.0)
    return Room(Router(), ARM, shares, lambda _: Slots(sum(counts), limit, 8, at.__getitem__), 0.0)


@given(counts=st.lists(st.integers(0, 15), min_size=8, max_size=8), limit=st.integers(1, 120))
def test_a_flood_may_go_where_no_kept_slot_is_used_and_never_where_the_others_may_not(counts, limit):
    room = room_with(counts, limit)
    free = {endpoint.address for endpoint in room.of(waiting("one"))}
    above = {endpoint.address for endpoint in room.of(waiting("flood"))}
    short = room.short(waiting("one"))
    assert short | above <= free
    assert short.isdisjoint(above)
    assert not room.short(waiting("flood"))


def test_endpoints_are_short_of_slots_where_only_those_that_are_kept_are_left():
    counts = [12] * 2 + [11] * 6
    assert room_with(counts, limit=100).short(waiting("one")) == {"127.0.0.1:1", "127.0.0.1:2"}
    alone = Room(Router(), ARM, shares_of(one=1.0), slots(running=78, at=12), 0.0)
    assert not alone.short(waiting("one"))
    few = Room(Router(), ARM, shares_of(one=1.0, two=1.0), slots(running=7, limit=16, at=1), 0.0)
    assert not few.short(waiting("one"))  # nothing is kept of so few
