"""The laws of budgets under any interleaving: nothing beyond the limits, nothing lost, nothing free."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.budget import ModelLimits, ModelPrice, TokenWeights
from fleet.snapshot import GatewayTenant
from gateway.budget_lines import Unit
from gateway.budgets import Budgets
from gateway.exhausted import Exhausted
from gateway.reservations import Basis, Demand, Reservation
from gateway.token_usage import TokenUsage

START = 1_900_000_000.0
LIFETIME = 100.0
MODELS = ("chat", "code")
PRICES = (
    ModelPrice(model="chat", usd_per_million_input_tokens=0.15, usd_per_million_output_tokens=0.6),
    ModelPrice(model="code", usd_per_million_input_tokens=2.5, usd_per_million_output_tokens=10),
)
NUMBER = st.integers(0, 400)
LIMIT = st.integers(200, 1500) | st.integers(0, 2000)
GAP = st.just(0.0) | st.floats(0, 40)


class Op(NamedTuple):
    """One thing that happens, after a gap of time."""

    gap: float
    what: str
    model: str
    which: int
    input_tokens: int
    output_tokens: int
    is_stated: bool


OPS = st.lists(
    st.builds(
        Op,
        GAP,
        st.sampled_from(["reserve", "reserve", "reserve", "settle", "count", "fail", "cancel", "expire", "renew"]),
        st.sampled_from(MODELS),
        NUMBER,
        NUMBER,
        NUMBER,
        st.booleans(),
    ),
    max_size=60,
)
POSSIBLE = {
    "tokens_per_minute": LIMIT,
    "tokens_per_day": LIMIT,
    "requests_per_minute": st.integers(0, 8),
    "concurrent_requests": st.integers(0, 4),
    "usd_per_month": st.sampled_from([0.0, 0.001, 0.01]),
}
LIMITS = st.lists(st.sampled_from(list(POSSIBLE)), max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: POSSIBLE[name] for name in names})
)
"""Few at once: where many limits hold, one refuses before the others are tried."""


@dataclass
class Admitted:
    """A request that went through, and what it was charged."""

    at: float
    reservation: Reservation
    charged: TokenUsage | None = None
    basis: Basis | None = None

    def tokens(self, weights):
        """As the budget must count it: what is held until the end, then the charge, as far as it was held."""
        tariff, held = weights.tariff(), self.reservation
        whole = tariff.at_most(held.input_tokens, held.output_tokens)
        if self.charged is None or self.basis is Basis.RESERVED:
            return whole
        used = self.charged
        return min(whole, tariff.charge(used.input_tokens, used.cached_tokens, used.output_tokens))


@dataclass
class World:
    """Budgets and all that happened to them."""

    tenant: GatewayTenant
    now: float = START
    admitted: list[Admitted] = field(default_factory=list)
    budgets: Budgets = field(default_factory=lambda: Budgets(LIFETIME))

    def __post_init__(self):
        self.budgets.replace({self.tenant.name: self.tenant}, PRICES, self.now)

    @property
    def running(self):
        return [item for item in self.admitted if item.basis is None]

    def seen(self):
        """All that can be seen of the budgets."""
        headers = [self.budgets.headers("acme", model, self.now) for model in MODELS]
        return headers, self.budgets.kept(self.now), len(self.budgets)

    def run(self, ops):
        for op in ops:
            self.now += op.gap
            self.step(op)
        return self

    def step(self, op):
        if op.what == "reserve":
            demand = Demand(op.input_tokens, op.output_tokens, op.is_stated)
            answer = self.budgets.reserve("acme", op.model, demand, self.now)
            if isinstance(answer, Reservation):
                self.admitted.append(Admitted(self.now, answer))
        elif op.what == "expire":
            for settled in self.budgets.expire(self.now):
                self.note(settled)
        elif self.admitted:
            self.end(op, self.admitted[op.which % len(self.admitted)])

    def end(self, op, item):
        number, usage = item.reservation.number, TokenUsage(op.input_tokens, op.which // 2, op.output_tokens)
        usage = TokenUsage(usage.input_tokens, min(usage.cached_tokens, usage.input_tokens), usage.output_tokens)
        was_over = item.basis is not None
        if op.what == "renew":
            assert self.budgets.renew(number, self.now) is not was_over
            return
        before = self.budgets.kept(self.now)
        settled = {
            "settle": lambda: self.budgets.settle(number, usage, self.now),
            "count": lambda: self.budgets.settle_counted(number, op.output_tokens, self.now),
            "fail": lambda: self.budgets.fail(number, self.now),
            "cancel": lambda: self.budgets.cancel(number, self.now),
        }[op.what]()
        assert (settled is None) is was_over
        if settled is None:
            assert self.budgets.kept(self.now) == before
        else:
            self.note(settled)

    def note(self, settled):
        item = next(a for a in self.admitted if a.reservation.number == settled.number)
        item.charged, item.basis = settled.usage, settled.basis


def tenant(limits, **more):
    return GatewayTenant(name="acme", **limits, **more)


def scopes(of):
    """The limits, and which of a world's requests count in them."""
    yield of, of.weights, lambda item: True
    for limits in of.models:
        yield limits, limits.weights or of.weights, lambda item, m=limits.model: item.reservation.model == m


TENANTS = st.builds(
    lambda own, model, weights: tenant(own, weights=weights, models=(ModelLimits(model="code", **model),)),
    LIMITS,
    LIMITS,
    st.sampled_from([TokenWeights(), TokenWeights(output_token=4), TokenWeights(input_token=0.5)]),
)


@given(tenant=TENANTS, ops=OPS)
def test_no_span_is_charged_more_than_a_bucket_holds_and_refills(tenant, ops):
    world = World(tenant).run(ops)
    for limits, weights, counts in scopes(tenant):
        items = [item for item in world.admitted if counts(item)]
        for limit, amount in (
            (limits.tokens_per_minute, lambda item, w=weights: item.tokens(w)),
            (limits.requests_per_minute, lambda item: 0 if item.basis is Basis.CANCELLED else 1),
        ):
            if limit is not None:
                assert_no_burst([(item.at, amount(item)) for item in items], limit)


def assert_no_burst(charges, limit):
    for first, (start, _) in enumerate(charges):
        total = 0
        for at, amount in charges[first:]:
            total += amount
            assert total <= limit * (1 + (at - start) / 60) + 1e-3


@given(tenant=TENANTS, ops=OPS)
def test_no_day_is_charged_more_than_its_budget(tenant, ops):
    world = World(tenant).run(ops)
    for limits, weights, counts in scopes(tenant):
        if limits.tokens_per_day is None:
            continue
        by_day = defaultdict(int)
        for item in world.admitted:
            by_day[item.at // 86400] += item.tokens(weights) if counts(item) else 0
        assert all(used <= limits.tokens_per_day for used in by_day.values())


@given(tenant=TENANTS, ops=OPS)
def test_no_more_requests_run_at_once_than_allowed(tenant, ops):
    world = World(tenant)
    for op in ops:
        world.run([op])
        for limits, _, counts in scopes(tenant):
            if limits.concurrent_requests is not None:
                assert sum(map(counts, world.running)) <= limits.concurrent_requests


@given(tenant=TENANTS, ops=OPS, demand=st.builds(Demand, NUMBER, NUMBER, st.booleans()))
def test_a_refused_request_changes_nothing_and_who_waits_as_told_is_admitted(tenant, ops, demand):
    world = World(tenant).run(ops)
    before = world.seen()
    answer = world.budgets.reserve("acme", "code", demand, world.now)
    if not isinstance(answer, Exhausted):
        return
    assert world.seen() == before
    assert answer.wait_seconds > 0
    if answer.wait_seconds == float("inf"):
        assert "retry-after" not in dict(answer.headers)
        return
    later = world.now + answer.wait_seconds + 1e-3
    if not world.running:
        assert isinstance(world.budgets.reserve("acme", "code", demand, later), Reservation)


@given(tenant=TENANTS, ops=OPS)
def test_once_all_have_ended_nothing_is_held_and_every_charge_is_found(tenant, ops):
    world = World(tenant).run(ops)
    world.now += LIFETIME + 1
    for settled in world.budgets.expire(world.now):
        world.note(settled)
    assert len(world.budgets) == 0
    assert not world.running
    for line in world.budgets.lines("acme", "code", world.now):
        if line.unit is Unit.CONCURRENT_REQUESTS:
            assert line.account.standing(world.now).remaining == line.account.limit
    kept = {(item.model, item.unit.name): item for item in world.budgets.kept(world.now)}
    for limits, weights, counts in scopes(tenant):
        scope = getattr(limits, "model", None)
        account = kept.get((scope, "TOKENS_PER_DAY"))
        if account is None or account.unix_seconds > START:
            continue  # another day began meanwhile
        tariff = weights.tariff()
        charged = sum(
            item.tokens(weights)
            if item.basis is Basis.RESERVED
            else tariff.charge(item.charged.input_tokens, item.charged.cached_tokens, item.charged.output_tokens)
            for item in world.admitted
            if counts(item)
        )
        assert account.amount == charged


@given(tenant=TENANTS, ops=OPS)
def test_what_had_no_known_end_is_charged_whole(tenant, ops):
    world = World(tenant).run(ops)
    waiting = [item.reservation for item in world.running]
    expired = world.budgets.expire(world.now + LIFETIME + 1)
    assert {settled.number for settled in expired} == {held.number for held in waiting}
    for settled in expired:
        held = next(r for r in waiting if r.number == settled.number)
        assert settled.basis is Basis.RESERVED
        assert settled.usage == TokenUsage(held.input_tokens, 0, held.output_tokens)


@settings(max_examples=50)
@given(tenant=TENANTS, ops=OPS)
def test_what_was_kept_over_a_restart_is_what_there_was(tenant, ops):
    world = World(tenant).run(ops)
    world.now += LIFETIME + 1
    world.budgets.expire(world.now)
    kept = world.budgets.kept(world.now)
    restarted = World(tenant, now=world.now)
    restarted.budgets.restore(kept, world.now)
    assert restarted.budgets.kept(world.now) == kept
