"""Engines of one deployment seem to differ in speed, by chance: a quiet fleet uses all of them, and all its caches."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayEndpoint
from gateway.load import LoadBook
from gateway.router import Router, RoutingRequest

PROMPT_TOKENS, BLOCK_TOKENS, TURNS = 2_560, 128, 3
PER_ENGINE = 3
"""Sessions that one engine's cache holds, and no more."""
SPEEDS = st.lists(st.floats(1_000, 1_450), min_size=2, max_size=4)


def take_turn(router, endpoints, session, turn, now, speeds):
    """One request that is alone in the fleet; where it went, and the second at which it ended."""
    blocks = tuple(range(1000 * session, 1000 * session + PROMPT_TOKENS // BLOCK_TOKENS + turn))
    request = RoutingRequest(blocks, BLOCK_TOKENS, BLOCK_TOKENS * len(blocks) + 1)
    choice = router.choose(request, endpoints, now, Random(session))  # noqa: S311
    best = choice.candidates[0]
    sent = router.send(choice, now)
    now += best.uncached_tokens / speeds[best.address]
    sent.first_token(now)
    sent.end(now + 0.1)
    return best.address, now + 0.5


@given(SPEEDS)
def test_sessions_that_fit_into_all_caches_are_spread_over_them_whatever_engine_seems_the_fastest(measured):
    endpoints = [GatewayEndpoint(address=f"e:{number}") for number in range(len(measured))]
    speeds = {endpoint.address: speed for endpoint, speed in zip(endpoints, measured, strict=True)}
    router, now, rounds = Router(), 0.0, 5
    for number in range(rounds):
        first, homes = 100 * number, Counter()
        for turn in range(TURNS):
            for session in range(first, first + PER_ENGINE * len(endpoints)):
                address, now = take_turn(router, endpoints, session, turn, now, speeds)
                homes[address] += 1
        assert set(homes.values()) == {PER_ENGINE * TURNS}


@pytest.mark.parametrize(("speed", "taken_for"), [(9_500, 10_000), (7_000, 10_000), (6_000, 6_000), (1_000, 1_000)])
def test_an_engine_that_is_much_slower_is_known_to_be(speed, taken_for):
    book, now = LoadBook(), 0.0
    for address, rate in (("slow:1", speed), ("fast:1", 10_000)):
        for _ in range(5):
            request = book.start(address, 8_000, now)
            now += 8_000 / rate
            request.first_token(now)
            request.end(now)
    assert [load.tokens_per_second for load in book.loads(["slow:1", "fast:1"], now)] == pytest.approx(
        [taken_for, 10_000]
    )
