"""Shared budgets: no more than the limit while the store is there, no more than a share while it is lost."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayTenant
from gateway.budget_store import SLOT_SECONDS, Kind, MemoryBudgets, Wish
from gateway.budgets import Budgets
from gateway.calendar_account import Period
from gateway.exhausted import Exhausted
from gateway.leases import Leases
from gateway.reservations import Demand, Reservation
from gateway.slot_lease import SlotLease
from gateway.token_lease import Share, TokenLease
from gateway.token_usage import TokenUsage

START = 1_900_065_600.0
WHERE = st.integers(0, 2)
AMOUNT = st.integers(0, 120)
REACHED = ("draw", "draw", "draw", "ask", "hold", "settle")
STEPS = st.lists(st.tuples(st.floats(0, 4), WHERE, st.sampled_from(REACHED), AMOUNT, AMOUNT), max_size=80)
UNSURE = ("draw", "draw", "draw", "hold", "settle", "ask", "unanswered", "lose", "find")
UNSURE_STEPS = st.lists(
    st.tuples(st.floats(0, 4) | st.floats(0, 30), WHERE, st.sampled_from(UNSURE), AMOUNT, AMOUNT), max_size=80
)
"""Of an unanswered wish the store knows; while it is lost it hears none."""
LIMIT = st.integers(0, 300)


@dataclass
class Held:
    """One request of a gateway."""

    at: float
    where: int
    number: int
    amount: int
    was_alone: bool
    charged: int | None = None

    @property
    def counts(self):
        return self.amount if self.charged is None else min(self.amount, self.charged)


@dataclass
class World:
    """Gateways, their store, and what happened."""

    leases: list
    store: MemoryBudgets = field(default_factory=MemoryBudgets)
    now: float = START
    held: list[Held] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def run(self, steps, after=lambda _: None):
        for gap, where, what, amount, part in steps:
            self.now += gap
            where %= len(self.leases)
            if what == "hold":
                self.hold(where, amount)
            elif what == "draw":
                self.hold(where, amount) or self.ask(where, what) or self.hold(where, amount)
            elif what == "settle":
                self.settle(where, amount, part)
            elif what == "lose":
                self.lost.add(where)
            elif what == "find":
                self.lost.discard(where)
            else:
                self.ask(where, what)
            after(self)
        return self

    def hold(self, where, amount):
        lease = self.leases[where]
        if lease.wait(amount, self.now) > 0:
            return False
        was_alone = lease.is_alone
        lease.hold(len(self.held), amount, self.now)
        self.held.append(Held(self.now, where, len(self.held), amount, was_alone))
        return True

    def settle(self, where, charged, part):
        running = [item for item in self.held if item.where == where and item.charged is None]
        if running:
            item = running[part % len(running)]
            item.charged = min(item.amount, charged)
            self.leases[where].settle(item.number, item.amount, item.charged, self.now)

    def ask(self, where, what):
        lease = self.leases[where]
        wish = lease.wish(self.now)
        if wish is None:
            return
        granted = None if where in self.lost else self.store.take(wish, self.now)
        lease.answer(wish, None if what == "unanswered" else granted, self.now)

    def spent(self, where=None):
        return sum(item.counts for item in self.held if where in (None, item.where))


def token_leases(limit, gateways, period):
    shares = [Share(gateways, position) for position in range(gateways)]
    return [TokenLease("acme", limit, f"g{s.position}", s, period, START) for s in shares]


def slot_leases(limit, gateways):
    return [SlotLease("acme", limit, f"g{n}", Share(gateways, n)) for n in range(gateways)]


@given(limit=st.integers(0, 10**6), gateways=st.integers(1, 20))
def test_the_shares_of_all_gateways_are_the_limit(limit, gateways):
    assert sum(Share(gateways, position).of(limit) for position in range(gateways)) == limit


@given(limit=LIMIT, gateways=st.integers(1, 3), steps=STEPS)
def test_with_the_store_all_gateways_together_stay_within_a_day(limit, gateways, steps):
    def check(world):
        assert world.spent() <= limit

    World(token_leases(limit, gateways, Period.DAY)).run(steps, check)


@given(limit=LIMIT, gateways=st.integers(1, 3), steps=STEPS)
def test_with_the_store_no_gateway_spends_of_a_minute_what_was_not_granted(limit, gateways, steps):
    world = World(token_leases(limit, gateways, None))
    grants = []

    class Counting(MemoryBudgets):
        def take(self, wish, now):
            granted = super().take(wish, now)
            grants.append(granted - wish.give_back)
            return granted

    world.store = Counting()
    world.run(steps, lambda w: check_within(w, grants))


def check_within(world, grants):
    """What is given back is given back once: by then it counts in nothing."""
    unused = sum(lease._unused for lease in world.leases)
    at_hand = sum(lease._at_hand for lease in world.leases)
    assert world.spent() == sum(grants) - unused - at_hand
    assert at_hand >= 0


@given(limit=LIMIT, gateways=st.integers(1, 3), steps=UNSURE_STEPS)
def test_without_the_store_no_gateway_spends_more_of_a_day_than_its_share(limit, gateways, steps):
    def check(world):
        if world.held and world.held[-1].was_alone and world.held[-1].at == world.now:
            where = world.held[-1].where
            before = sum(item.amount for item in world.held if item.where == where and item.charged is None)
            assert before <= Share(gateways, where).of(limit)
            assert world.spent(where) <= Share(gateways, where).of(limit)
        assert world.spent() <= 2 * limit

    World(token_leases(limit, gateways, Period.DAY)).run(steps, check)


@given(limit=LIMIT, gateways=st.integers(1, 3), steps=UNSURE_STEPS)
def test_a_gateway_that_is_alone_spends_of_a_minute_its_share(limit, gateways, steps):
    alone_since = {}
    world = World(token_leases(limit, gateways, None))

    def check(world):
        for where, lease in enumerate(world.leases):
            if not lease.is_alone:
                alone_since.pop(where, None)
                continue
            since = alone_since.setdefault(where, world.now)
            spent = sum(i.counts for i in world.held if i.where == where and i.was_alone and i.at >= since)
            assert spent <= Share(gateways, where).of(limit) * (1 + (world.now - since) / 60) + 1e-3

    world.run(steps, check)


@given(
    limit=st.integers(20, 300),
    gateways=st.integers(1, 3),
    before=STEPS,
    after=st.lists(st.tuples(st.floats(0, 30), st.sampled_from(["hold", "settle"]), st.integers(1, 60), AMOUNT)),
    period=st.none() | st.just(Period.DAY),
)
def test_from_the_loss_on_a_gateway_spends_what_its_share_has_left(limit, gateways, before, after, period):
    lease = token_leases(limit, gateways, period)[0]
    world = World([lease]).run(before)
    while lease.wait(1, world.now) == 0:
        world.hold(0, 1)
    world.lost.add(0)
    world.ask(0, "ask")
    assert lease.is_alone
    lost_at, share = world.now, Share(gateways, 0).of(limit)
    for gap, what, amount, part in after:
        admitted = len(world.held)
        world.run([(gap, 0, what, amount, part)])
        if period is None:
            spent = sum(item.counts for item in world.held if item.was_alone)
            assert spent <= share * (world.now - lost_at) / 60 + 1e-3
        elif len(world.held) > admitted:
            assert world.spent() <= share


@given(limit=LIMIT, gateways=st.integers(1, 3), steps=UNSURE_STEPS)
def test_once_the_store_is_back_it_knows_all_that_was_spent_in_the_day(limit, gateways, steps):
    world = World(token_leases(limit, gateways, Period.DAY)).run(steps)
    world.lost.clear()
    for _ in range(4):
        for where in range(gateways):
            world.ask(where, "ask")
    known = sum(int(budget.amount) for budget in world.store._budgets.values())
    at_hand = sum(lease._at_hand for lease in world.leases)
    unused = sum(lease._unused for lease in world.leases)
    assert known == world.spent() + at_hand + unused


@given(limit=st.integers(0, 6), gateways=st.integers(1, 3), steps=UNSURE_STEPS, is_sure=st.booleans())
def test_requests_at_once_stay_within_the_limit_and_alone_within_the_share(limit, gateways, steps, is_sure):
    world = World(slot_leases(limit, gateways))

    def check(world):
        running = [item for item in world.held if item.charged is None]
        if is_sure:
            assert len(running) <= limit
        new = [item for item in running if item.at == world.now and item.was_alone]
        for item in new[-1:]:
            assert sum(r.where == item.where for r in running) <= Share(gateways, item.where).of(limit)

    # A gateway renews in time: all of them ask between any two steps.
    for gap, where, what, _, part in steps:
        reached = "ask" if is_sure and what in ("lose", "unanswered") else what
        world.run([(gap, where, reached, 1, part)], check)
        if is_sure:
            for other in range(gateways):
                world.ask(other, "ask")


@given(
    limit=LIMIT,
    steps=st.lists(st.tuples(st.floats(0, 40), st.booleans(), AMOUNT, AMOUNT), max_size=40),
)
def test_no_span_is_granted_more_than_a_minutes_bucket_and_its_refill(limit, steps):
    store, now, grants = MemoryBudgets(), START, {}
    for serial, (gap, is_return, amount, which) in enumerate(steps, 1):
        now += gap
        open_ones = [name for name, (_, _, is_open) in grants.items() if is_open]
        if is_return and open_ones:
            name = open_ones[which % len(open_ones)]
            at, granted, _ = grants[name]
            store.take(Wish("k", Kind.FLOW, limit, name, serial, 0, give_back=min(amount, granted)), now)
            grants[name] = (at, granted - min(amount, granted), False)
        else:
            granted = store.take(Wish("k", Kind.FLOW, limit, f"g{serial}", serial, amount), now)
            assert granted <= amount
            grants[f"g{serial}"] = (now, granted, True)
    charged = sorted((at, amount) for at, amount, _ in grants.values())
    for first, (start, _) in enumerate(charged):
        total = 0
        for at, amount in charged[first:]:
            total += amount
            assert total <= limit * (1 + (at - start) / 60) + 1e-3


@given(
    kind=st.sampled_from(list(Kind)),
    limit=LIMIT,
    wishes=st.lists(st.tuples(WHERE, AMOUNT, AMOUNT, AMOUNT), min_size=1, max_size=20),
)
def test_a_wish_that_is_said_again_changes_nothing(kind, limit, wishes):
    once, twice = MemoryBudgets(), MemoryBudgets()
    for serial, (where, take, back, owed) in enumerate(wishes, 1):
        wish = Wish("k", kind, limit, f"g{where}", serial, take, take // 2, back, owed)
        granted = once.take(wish, START + serial)
        assert twice.take(wish, START + serial) == granted
        assert twice.take(wish, START + serial + 0.5) == granted


def test_a_gateway_that_is_gone_keeps_its_slots_for_a_while_and_no_longer():
    store, (gone, here) = MemoryBudgets(), slot_leases(3, 2)
    world = World([gone, here], store)
    for _ in range(3):
        gone.wait(1, START)
        world.ask(0, "ask")
        world.hold(0, 1)
    assert here.wait(1, START) > 0
    world.ask(1, "ask")
    world.hold(1, 1)
    assert [item.where for item in world.held] == [0, 0, 0]
    world.now += SLOT_SECONDS + 1
    assert here.wait(1, world.now) > 0
    world.ask(1, "ask")
    world.hold(1, 1)
    assert world.held[-1].where == 1


def test_what_was_spent_alone_is_owed_and_a_short_absence_costs_no_more_than_it_spent():
    lease = TokenLease("acme", 1200, "g0", Share(2, 0), None, START)
    world = World([lease])
    world.ask(0, "ask")
    at_hand = lease.standing(START).remaining
    world.ask(0, "ask")
    lease.wait(200, START)
    world.lost.add(0)
    world.ask(0, "ask")
    assert lease.is_alone
    assert lease.standing(START).remaining == at_hand
    world.now += 30
    world.hold(0, 250)
    assert world.held[-1].was_alone
    world.lost.clear()
    world.ask(0, "ask")
    assert not lease.is_alone
    assert lease.wish(world.now).owed == 250 - at_hand


@given(burst=st.integers(1, 200), amount=st.integers(1, 3), period=st.sampled_from([None, Period.DAY]))
def test_one_answer_of_the_store_is_enough_for_a_whole_burst(burst, amount, period):
    limit = 1_000
    slots, tokens = SlotLease("t/slots", limit, "g0", Share(2, 0)), token_leases(limit, 2, period)[0]
    for lease in (slots, tokens):
        store = MemoryBudgets()
        assert all(lease.wait(amount, START) > 0 for _ in range(burst))
        wish = lease.wish(START)
        lease.answer(wish, store.take(wish, START), START)
        for number in range(burst):
            assert lease.wait(amount, START) == 0
            lease.hold(number, amount, START)


def test_a_lease_that_nobody_draws_on_goes_back():
    one, other = token_leases(1000, 2, Period.DAY)
    world = World([one, other])
    one.wait(1000, START)
    world.ask(0, "ask")
    assert other.wait(10, START) > 0
    world.ask(1, "ask")
    assert other.wait(10, START) > 0
    world.now += 10
    world.ask(0, "ask")
    other.wait(1000, world.now)
    world.ask(1, "ask")
    assert other.wait(1000, world.now) == 0


def test_two_gateways_that_each_have_half_do_not_keep_each_other_waiting():
    leases = token_leases(1000, 2, None)
    world = World(leases)
    for where in (0, 1):
        leases[where].wait(500, START)
        world.ask(where, "ask")
    served = set()
    for second in range(20):
        world.now += 1
        for where in (second % 2, 1 - second % 2):
            if world.hold(where, 700) or world.ask(where, "ask") or world.hold(where, 700):
                served.add(where)
                world.settle(where, 1, 0)
                world.ask(where, "ask")
    assert served == {0, 1}


@dataclass
class Gateway:
    """Budgets whose accounts are leases."""

    position: int
    store: MemoryBudgets
    is_reached: bool = True

    def __post_init__(self):
        self.leases = Leases(f"g{self.position}", Share(2, self.position))
        self.budgets = Budgets(new_account=self.leases.account)
        limits = {"tokens_per_minute": 1000, "tokens_per_day": 5000, "concurrent_requests": 4}
        self.budgets.replace({"acme": GatewayTenant(name="acme", **limits)}, (), START)

    def trade(self, now):
        for asked in self.leases.wishes(now, "acme"):
            self.leases.answer(asked, self.store.take(asked.wish, now) if self.is_reached else None, now)

    def reserve(self, tokens, now=START):
        demand = Demand(tokens, 0)
        answer = self.budgets.reserve("acme", "chat", demand, now)
        if isinstance(answer, Exhausted):
            self.trade(now)
            answer = self.budgets.reserve("acme", "chat", demand, now)
        return answer


def test_two_gateways_share_a_budget_and_each_has_its_share_when_the_store_is_lost():
    store = MemoryBudgets()
    one, other = Gateway(0, store), Gateway(1, store)
    first = one.reserve(700)
    assert isinstance(first, Reservation)
    refused = other.reserve(400)
    assert isinstance(refused, Exhausted)
    assert refused.limit == 1000
    assert refused.wait_seconds > 0
    one.budgets.settle(first.number, TokenUsage(100, 0, 1), START)
    one.trade(START)
    assert isinstance(other.reserve(400), Reservation)
    one.is_reached = other.is_reached = False
    later = START + 600
    for gateway in (one, other):
        assert isinstance(gateway.reserve(800, later), Exhausted)
        gateway.trade(later + 30)
        admitted = [gateway.reserve(100, later + 90) for _ in range(20)]
        assert sum(100 for answer in admitted if isinstance(answer, Reservation)) <= 500
        assert isinstance(admitted[0], Reservation)


def test_an_account_that_has_no_limit_any_longer_is_not_asked_for():
    gateway = Gateway(0, MemoryBudgets())
    held = gateway.reserve(10)
    gateway.budgets.cancel(held.number, START)
    gateway.budgets.replace({"acme": GatewayTenant(name="acme")}, (), START)
    del held
    assert gateway.leases.wishes(START + 60) == ()


@pytest.mark.parametrize("gateways", [1, 2, 7])
def test_other_shares_hold_from_the_next_loss(gateways):
    gateway = Gateway(0, MemoryBudgets(), is_reached=False)
    gateway.leases.share_with(Share(gateways, 0))
    gateway.reserve(10)
    admitted = [gateway.reserve(1, START + 3600) for _ in range(5)]
    assert sum(isinstance(answer, Reservation) for answer in admitted) == min(4, -(-4 // gateways))
