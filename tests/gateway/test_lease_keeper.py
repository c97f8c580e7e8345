"""Questions to the store that gateways share: whoever finds too little gets one that holds what it misses."""

import asyncio
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from gateway.budget_lines import BudgetLine, Unit
from gateway.budget_store import MemoryBudgets
from gateway.exhausted import exhausted
from gateway.lease_keeper import LeaseKeeper
from gateway.lease_store import Joined
from gateway.leases import Leases
from gateway.refusals import Refused
from gateway.second_look import SecondLook
from gateway.token_lease import THE_WHOLE

NOW = 1_900_000_000.0


class SlowStore:
    """A store in memory; each answer takes some turns of the event loop."""

    def __init__(self, turns) -> None:
        self._budgets = MemoryBudgets()
        self._turns = turns
        self.questions = 0

    async def join(self) -> Joined:
        return Joined("epoch", math.inf, THE_WHOLE)

    async def take(self, wishes, _epoch):
        self.questions += 1
        answers = [self._budgets.take(wish, NOW) for wish in wishes]
        for _ in range(next(self._turns)):
            await asyncio.sleep(0)
        return answers

    async def leave(self) -> None:
        """Nothing is open."""


class Fleet:
    """One gateway whose requests run at once under a limit."""

    def __init__(self, limit, turns) -> None:
        self.leases = Leases("own", THE_WHOLE)
        self.account = self.leases.account(("acme", None, Unit.CONCURRENT_REQUESTS), limit, NOW)
        self.store = SlowStore(turns)
        self.keeper = LeaseKeeper(self.leases, self.store, lambda: NOW, CollectorRegistry())
        self.look = SecondLook(self.keeper)
        self.running = self.most = self.number = 0

    def decide(self):
        """A number, or a refusal."""
        wait = self.account.wait(1, NOW)
        if wait:
            line = BudgetLine(Unit.CONCURRENT_REQUESTS, None, self.account, None)
            return exhausted(line, 1, wait, ()).refused("acme", "m")
        self.number += 1
        self.account.hold(self.number, 1, NOW)
        self.running += 1
        self.most = max(self.most, self.running)
        return self.number

    async def request(self, starts_after, lasts):
        for _ in range(starts_after):
            await asyncio.sleep(0)
        decision = self.decide()
        waited = self.look.wanted(decision)
        if waited is not None:
            decision = await self.look.decided(waited, self.decide)
        if isinstance(decision, Refused):
            return False
        for _ in range(lasts):
            await asyncio.sleep(0)
        self.account.settle(decision, 1, 1, NOW)
        self.running -= 1
        return True


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), min_size=1, max_size=30),
    st.integers(0, 2**32),
)
def test_a_burst_far_from_the_limit_is_admitted_whole_however_its_requests_come(requests, seed):
    chance = Random(seed)  # noqa: S311

    async def burst():
        fleet = Fleet(1000, iter(lambda: chance.randrange(8), -1))
        await fleet.keeper.round()
        return await asyncio.gather(*(fleet.request(after, lasts) for after, lasts in requests))

    assert all(asyncio.run(burst()))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), min_size=1, max_size=30), st.integers(1, 5))
def test_a_full_limit_refuses_and_never_more_run_than_it_says(requests, limit):
    async def burst():
        fleet = Fleet(limit, iter(lambda: 3, -1))
        await fleet.keeper.round()
        admitted = await asyncio.gather(*(fleet.request(after, lasts) for after, lasts in requests))
        return fleet, admitted

    fleet, admitted = asyncio.run(burst())
    assert 1 <= fleet.most <= limit
    assert fleet.running == 0
    assert any(admitted)


@pytest.mark.asyncio
async def test_who_comes_while_a_question_is_on_its_way_waits_for_the_next_one():
    fleet = Fleet(10, iter(lambda: 5, -1))
    await fleet.keeper.round()
    assert isinstance(fleet.decide(), Refused)
    first = fleet.keeper.refill("acme")
    await asyncio.sleep(0)
    assert isinstance(fleet.decide(), Refused)
    second = fleet.keeper.refill("acme")
    assert second is not first
    assert fleet.keeper.refill("acme") is second
    await second
    assert first.done()
    assert fleet.store.questions == 2
    assert (fleet.decide(), fleet.decide()) == (1, 2)
