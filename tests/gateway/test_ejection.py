"""Ejected endpoints: never too many, never for ever, and back by one request."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, GatewayEndpoint
from gateway.ejection import Ejections, EjectionSettings
from gateway.router import Router, RouterSettings, RoutingRequest

SETTINGS = EjectionSettings(failures=3, first_seconds=5.0, longest_seconds=60.0, probe_seconds=30.0)
CHANCE = Random(0)  # noqa: S311 nothing secret hangs on it
POOL = ["a", "b", "c", "d"]
STEPS = st.lists(
    st.tuples(st.sampled_from(["well", "failed", "take", "wait"]), st.sampled_from(POOL), st.floats(0, 100)),
    max_size=80,
)


def ejected(name="a", pool=POOL, now=0.0):
    made = Ejections(SETTINGS)
    assert [made.failed(name, now) for _ in range(SETTINGS.failures)] == [False] * (SETTINGS.failures - 1) + [True]
    assert name not in made.usable(pool, now)
    return made


@given(steps=STEPS, pool=st.lists(st.sampled_from(POOL), unique=True, min_size=1))
def test_whatever_happens_at_least_half_of_a_pool_stays_and_everything_comes_back(steps, pool):
    made, now = Ejections(SETTINGS), 0.0
    for kind, name, seconds in steps:
        now += seconds if kind == "wait" else 0.0
        if kind == "take":
            made.take(name, pool, now)
        elif kind != "wait":
            getattr(made, kind)(name, now)
        usable = made.usable(pool, now)
        assert len(usable) >= max(1, len(pool) - len(pool) // 2)
        assert usable == [name for name in pool if name in usable]
    assert made.usable(pool, now + SETTINGS.longest_seconds + SETTINGS.probe_seconds) == pool


@given(failures=st.lists(st.integers(0, SETTINGS.failures - 1)))
def test_failures_that_are_not_in_a_row_eject_nobody(failures):
    made = Ejections(SETTINGS)
    for count in failures:
        assert not any(made.failed("a", 0.0) for _ in range(count))
        made.well("a", 0.0)
    assert made.usable(POOL, 0.0) == POOL
    assert not made._sick


def test_after_an_ejection_one_request_decides():
    made = ejected()
    assert made.usable(POOL, 4.9) == ["b", "c", "d"]
    assert not made.take("a", POOL, 4.9)
    assert made.usable(POOL, 5.0) == POOL
    assert made.take("a", POOL, 5.0)
    assert not made.take("a", POOL, 5.0)
    assert made.usable(POOL, 5.1) == ["b", "c", "d"]
    made.well("a", 5.2)
    assert made.usable(POOL, 5.2) == POOL
    assert made.take("a", POOL, 5.2)
    assert made.take("a", POOL, 5.2)


def test_a_probe_that_fails_ejects_for_twice_as_long_up_to_the_longest():
    made, now = ejected(), 5.0
    spans = []
    for _ in range(6):
        assert made.take("a", POOL, now)
        assert made.failed("a", now)
        end = now
        while "a" not in made.usable(POOL, end):
            end += 1.0
        spans.append(end - now)
        now = end
    assert spans == [10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


def test_a_probe_of_which_nothing_is_heard_makes_room_for_another():
    made = ejected()
    assert made.take("a", POOL, 5.0)
    assert not made.take("a", POOL, 34.9)
    assert made.take("a", POOL, 35.0)


def test_one_that_flaps_is_ejected_longer_and_one_that_was_well_for_long_starts_anew():
    made = ejected()
    assert made.take("a", POOL, 5.0)
    made.well("a", 5.0)
    assert any(made.failed("a", 6.0) for _ in range(3))
    assert "a" not in made.usable(POOL, 15.9)
    assert made.take("a", POOL, 16.0)
    made.well("a", 16.0)
    made.well("a", 30.0)
    assert any(made.failed("a", 31.0) for _ in range(3))
    assert "a" in made.usable(POOL, 36.0)


def test_what_comes_late_from_before_the_ejection_changes_nothing():
    made = ejected()
    made.well("a", 1.0)
    assert not made.failed("a", 2.0)
    assert "a" not in made.usable(POOL, 4.9)
    assert "a" in made.usable(POOL, 5.0)


def test_the_only_endpoint_of_a_pool_is_never_ejected_not_even_for_its_probe():
    made = ejected("a")
    for now in (0.0, 5.0, 5.1):
        assert made.usable(["a"], now) == ["a"]
        assert made.take("a", ["a"], now)
        assert made.take("a", ["a"], now)


def test_a_pause_holds_even_for_the_only_one_and_ends():
    made = Ejections(SETTINGS)
    made.pause("a", 10.0, 0.0)
    made.pause("a", 5.0, 0.0)
    assert made.usable(["a"], 9.9) == []
    assert not made.take("a", ["a"], 9.9)
    assert made.usable(["a"], 10.0) == ["a"]


def test_endpoints_that_are_gone_are_forgotten():
    made = ejected()
    made.pause("b", 10.0, 0.0)
    made.keep_only({"c"})
    assert made.usable(POOL, 0.0) == POOL
    assert made.ejected(0.0) == ()


def test_an_endpoint_that_is_full_is_passed_over_until_something_ends():
    router = Router(RouterSettings(most_requests=2))
    arm = GatewayArm(
        deployment="a", identity="0", engine="vllm", endpoints=[GatewayEndpoint(address=name) for name in "ab"]
    )
    request = RoutingRequest((), 16, 10)
    running = []
    for _ in range(4):
        _, choice = router.route([arm], b"", request, 0.0, CHANCE)
        assert router.admits(choice.addresses[0], arm, 0.0)
        running.append(router.send(choice, 0.0))
    assert router.route([arm], b"", request, 0.0, CHANCE) is None
    assert not router.admits("a", arm, 0.0)
    running[0].end(0.0)
    _, choice = router.route([arm], b"", request, 0.0, CHANCE)
    assert len(choice.addresses) == 1
