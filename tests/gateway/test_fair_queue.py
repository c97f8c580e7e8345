"""Laws of the fair queues: nothing is lost or served twice, nobody gets ahead of its share, nothing idles."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gateway.fair_queue import FairQueue, Waiting

NEVER = 1e9
TENANTS = ("a", "b", "c", "d")
COSTS = st.floats(1, 1_000)
PRIORITY = {"a": 0, "b": 0, "c": 1, "d": -1}


def waiting(tenant, cost=1.0, deadline=NEVER, **more):
    return Waiting(tenant, cost, deadline, **more)


def served(queue, now=0.0):
    """Everything in the order of its turns."""
    found = []
    while (item := queue.take(now)) is not None:
        found.append(item)
    return found


@dataclass(frozen=True)
class Step:
    """Something that happens to a queue."""

    kind: str
    tenant: str
    cost: float
    which: int
    flow: str


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["join", "join", "join", "take", "leave", "correct", "expire"]),
        st.sampled_from(TENANTS),
        COSTS,
        st.integers(0, 50),
        st.sampled_from(["m", "n"]),
    ),
    max_size=80,
)


class Ledger:
    """A queue beside plain lists of what must be in it."""

    def __init__(self, most):
        self.queue, self.most = FairQueue(), most
        self.inside, self.over = [], []

    def step(self, step, now):
        getattr(self, step.kind)(step, now)
        assert set(self.queue) == set(self.inside)
        assert len(self.queue) == len(self.inside)
        for flow in ("m", "n"):
            assert self.queue.in_flow(flow) == sum(item.flow == flow for item in self.inside) <= self.most

    def join(self, step, now):
        item = Waiting(step.tenant, step.cost, now + 20.0, PRIORITY[step.tenant], 1.0, step.flow)
        self.inside.append(item)
        self._out(self.queue.join(item, self.most))

    def take(self, step, now):
        self._out(self.queue.take(now))

    def leave(self, step, now):
        if self.inside:
            item = self.inside[step.which % len(self.inside)]
            assert self.queue.leave(item)
            self._out(item)

    def correct(self, step, now):
        if self.over:
            self.queue.correct(self.over[step.which % len(self.over)], step.cost)

    def expire(self, step, now):
        late = self.queue.expire(now)
        assert set(late) == {item for item in self.inside if item.deadline < now}
        for item in late:
            self._out(item)

    def _out(self, item):
        if item is not None:
            self.inside.remove(item)
            self.over.append(item)


@given(steps=STEPS, most=st.integers(1, 6))
def test_nothing_is_lost_and_nothing_is_served_twice_and_in_the_end_nothing_is_left(steps, most):
    ledger = Ledger(most)
    for now, step in enumerate(steps):
        ledger.step(step, float(now))
    left = served(ledger.queue)
    assert sorted(map(id, left)) == sorted(map(id, ledger.inside))
    assert len(ledger.queue) == 0
    assert not any(ledger.queue.leave(item) for item in [*ledger.over, *left])


@given(steps=STEPS)
def test_while_somebody_waits_that_is_not_late_there_is_always_a_next(steps):
    queue = FairQueue()
    for now, step in enumerate(steps):
        if step.kind == "join":
            queue.join(Waiting(step.tenant, step.cost, now + 10.0, PRIORITY[step.tenant]), 1_000)
        elif step.kind == "take":
            in_time = [item for item in queue if item.deadline >= now]
            item = queue.take(float(now))
            assert (item is None) == (not in_time)
            if item is not None:
                assert item.priority == max(other.priority for other in in_time)


@given(
    costs=st.lists(st.tuples(st.sampled_from("ab"), COSTS), min_size=1, max_size=60),
    weights=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
    before=st.lists(COSTS, max_size=5),
)
def test_of_two_that_wait_all_the_time_neither_gets_more_than_two_requests_ahead(costs, weights, before):
    """The bound of virtual token counters: twice the largest request over its weight, for any interval."""
    weight = dict(zip("ab", weights, strict=True))
    queue = FairQueue()
    for cost in before:  # one of them alone first: it counts for nothing once both wait
        queue.join(waiting("a", cost, weight=weight["a"]), 1_000)
        queue.take(0.0)
    for name, cost in costs:
        queue.join(waiting(name, cost, weight=weight[name]), 1_000)
    both = {name for name, _ in costs} == {"a", "b"}
    left = {name: sum(owner == name for owner, _ in costs) for name in "ab"}
    got, difference = {"a": 0.0, "b": 0.0}, [0.0]
    while both and all(left.values()):
        item = queue.take(0.0)
        got[item.tenant] += item.cost / weight[item.tenant]
        left[item.tenant] -= 1
        difference.append(got["a"] - got["b"])
    largest = max(cost / weight[name] for name, cost in costs)
    assert max(difference) - min(difference) <= 2 * largest * (1 + 1e-9)


@given(flood=st.integers(1, 200), share=st.integers(1, 20))
def test_who_comes_during_a_flood_is_served_at_once_and_who_was_away_has_saved_up_nothing(flood, share):
    queue = FairQueue()
    for _ in range(flood):
        queue.join(waiting("flood"), 1_000)
    for _ in range(flood // 2):
        queue.take(0.0)
    for _ in range(share):
        queue.join(waiting("late"), 1_000)
    order = [item.tenant for item in served(queue)]
    last = max(place for place, name in enumerate(order) if name == "late")
    assert last <= 2 * share + 1
    waits_behind = order[: order.index("flood") + 1] if "flood" in order else []
    assert len(waits_behind) <= 2  # one of the others at most before the flood goes on


def test_with_weights_of_one_and_three_turns_come_one_to_three():
    queue = FairQueue()
    for _ in range(40):
        queue.join(waiting("one", weight=1.0), 1_000)
        queue.join(waiting("three", weight=3.0), 1_000)
    first = [item.tenant for item in served(queue)[:40]]
    assert 9 <= first.count("one") <= 11


def test_what_a_request_came_to_counts_for_the_next_turn():
    queue = FairQueue()
    for name in "abab":
        queue.join(waiting(name), 10)
    first, second = queue.take(0.0), queue.take(0.0)
    queue.correct(first, 100.0)
    assert queue.take(0.0).tenant == second.tenant


def test_a_higher_priority_goes_first_and_a_flow_that_may_not_go_holds_up_nobody():
    queue = FairQueue()
    for item in (
        waiting("low", flow="m"),
        waiting("high", priority=1, flow="full"),
        waiting("high", priority=1, flow="m"),
    ):
        queue.join(item, 10)
    may_go = lambda item: item.flow != "full"  # noqa: E731
    assert [queue.take(0.0, may_go).tenant for _ in range(2)] == ["high", "low"]
    assert queue.take(0.0, may_go) is None
    assert len(queue) == 1


@given(flood=st.integers(3, 30), most=st.integers(3, 30))
def test_a_flood_that_fills_the_queue_pushes_out_itself(flood, most):
    queue = FairQueue()
    outs = [queue.join(waiting("flood"), most) for _ in range(flood + most)]
    assert sum(out is not None for out in outs) == flood
    gone = queue.join(waiting("other"), most)
    assert gone.tenant == "flood"
    assert len(queue) == most
    kept = next(item for item in queue if item.tenant == "other")
    urgent = waiting("urgent", priority=1)
    assert queue.join(urgent, most) not in {urgent, kept}
    beneath = waiting("beneath", priority=-1)
    assert queue.join(beneath, most) is beneath


def test_who_could_not_have_a_turn_in_time_is_told_at_once():
    queue = FairQueue()
    for _ in range(50):
        queue.join(waiting("slow"), 1_000)
    for second in range(10):
        queue.take(float(second))
    late = waiting("slow", deadline=9.0 + 10.0)  # 40 are ahead, a turn comes each second
    assert queue.is_hopeless(late, 9.0)
    assert not queue.is_hopeless(waiting("slow", deadline=9.0 + 30.0), 9.0)
    assert not queue.is_hopeless(waiting("new", deadline=9.0 + 1.0), 9.0)


def test_counters_of_tenants_that_are_gone_are_forgotten():
    queue = FairQueue()
    queue.join(waiting("gone", 100.0), 10)
    queue.take(0.0)
    queue.join(waiting("stays"), 10)
    queue.keep_only({"stays"})
    assert [len(group.tenants) for group in queue._classes.values()] == [1]


def test_what_goes_at_once_is_charged_and_whoever_comes_next_starts_beside_it():
    queue = FairQueue()
    queue.serve_at_once(waiting("early", 100.0))
    for name in ("later", "later", "early", "early"):
        queue.join(waiting(name), 10)
    assert [item.tenant for item in served(queue)] == ["later", "early", "later", "early"]
