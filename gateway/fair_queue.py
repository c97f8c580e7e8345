"""Who is next of those that wait for one pool: a queue per tenant, served by virtual counters of tokens. Pure.

Each tenant has a counter of the service that it got, divided by its weight; of those that wait with the highest
priority, the tenant with the smallest counter is next. A tenant that comes back starts where those that wait are, so
that nobody saves up turns by staying away. Whoever waits is known by its flow as well (the model that it asks for): a
flow that may not go on now holds up none of the others.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

_GAP_MEMORY = 0.2
_SURE = 2.0
"""Turns may come twice as fast as they did: nobody is refused who might still be in time."""


@dataclass(slots=True, eq=False)
class Waiting:
    """One request that waits for its turn."""

    tenant: str
    cost: float
    """The service that it is expected to take; it may be corrected when it is known."""
    deadline: float
    """After this moment it must not get its turn. Within a flow of a tenant deadlines come in order."""
    priority: int = 0
    """The higher goes first."""
    weight: float = 1.0
    flow: str = ""


@dataclass(slots=True, eq=False)
class _Tenant:
    name: str
    counter: float = 0.0
    flows: dict[str, OrderedDict[Waiting, None]] = field(default_factory=dict)
    waiting: int = 0
    turn_at: float | None = None
    """When it had its last turn, if it has waited ever since."""
    gap_seconds: float = 0.0
    """About the time from one of its turns to the next, while it waits."""

    def first(self, now: float, may_go: Callable[[Waiting], bool]) -> Waiting | None:
        """The next of one of its flows that is not late and may go."""
        for queue in self.flows.values():
            item = next((item for item in queue if item.deadline >= now), None)
            if item is not None and may_go(item):
                return item
        return None

    def remove(self, item: Waiting) -> bool:
        queue = self.flows.get(item.flow)
        if queue is None or item not in queue:
            return False
        del queue[item]
        if not queue:
            del self.flows[item.flow]
        self.waiting -= 1
        if not self.waiting:
            self.turn_at = None
        return True


class _Class:
    """The tenants of one priority."""

    def __init__(self) -> None:
        self.tenants: dict[str, _Tenant] = {}
        self.active: dict[str, _Tenant] = {}
        self._last: _Tenant | None = None
        """Whoever was the last to leave when nobody waited any more."""

    def join(self, item: Waiting) -> None:
        tenant = self._raised(item.tenant)
        self.active[item.tenant] = tenant
        tenant.flows.setdefault(item.flow, OrderedDict())[item] = None
        tenant.waiting += 1

    def remove(self, item: Waiting) -> bool:
        tenant = self.active.get(item.tenant)
        if tenant is None or not tenant.remove(item):
            return False
        if not tenant.waiting:
            del self.active[tenant.name]
            self._last = tenant
        return True

    def pass_through(self, item: Waiting) -> None:
        """It has its turn at once, when nobody waits."""
        tenant = self._last = self._raised(item.tenant)
        tenant.counter += item.cost / item.weight

    def _raised(self, name: str) -> _Tenant:
        """The tenant, whose counter starts where the others are if it does not wait."""
        tenant = self.tenants.get(name)
        if tenant is None:
            tenant = self.tenants[name] = _Tenant(name)
        if not tenant.waiting:
            tenant.counter = max(tenant.counter, self._floor())
        return tenant

    def _floor(self) -> float:
        if self.active:
            return min(tenant.counter for tenant in self.active.values())
        return 0.0 if self._last is None else self._last.counter


class FairQueue:
    """Those that wait for one pool."""

    def __init__(self) -> None:
        self._classes: dict[int, _Class] = {}
        self._of_flow: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Waiting]:
        for group in self._classes.values():
            for tenant in group.active.values():
                for queue in tenant.flows.values():
                    yield from queue

    def in_flow(self, flow: str) -> int:
        """How many of a flow wait."""
        return self._of_flow.get(flow, 0)

    def join(self, item: Waiting, most: int) -> Waiting | None:
        """Let it wait. Where ``most`` of its flow wait already, one must go: what is returned, perhaps itself.

        Of the lowest priority the tenant that has most waiting for its weight loses its newest, if it has more than the
        newcomer would have: a flood pushes out itself.
        """
        out = self._surplus(item) if self.in_flow(item.flow) >= most else None
        if out is item:
            return item
        if out is not None:
            self.leave(out)
        self._class(item.priority).join(item)
        self._count += 1
        self._of_flow[item.flow] = self.in_flow(item.flow) + 1
        return out

    def serve_at_once(self, item: Waiting) -> None:
        """It has its turn without waiting, since nobody waits; its tenant is charged all the same."""
        self._class(item.priority).pass_through(item)

    def leave(self, item: Waiting) -> bool:
        """It waits no longer, without a turn; ``False`` = it did not wait."""
        group = self._classes.get(item.priority)
        if group is None or not group.remove(item):
            return False
        self._count -= 1
        self._of_flow[item.flow] -= 1
        if not self._of_flow[item.flow]:
            del self._of_flow[item.flow]
        return True

    def top_priority(self, now: float, may_go: Callable[[Waiting], bool]) -> int | None:
        """The highest priority of those that may go; ``None`` = nobody may."""
        for priority in sorted(self._classes, reverse=True):
            if any(tenant.first(now, may_go) is not None for tenant in self._classes[priority].active.values()):
                return priority
        return None

    def take(self, now: float, may_go: Callable[[Waiting], bool] = lambda _: True) -> Waiting | None:
        """Whose turn it is, of those that may go; its tenant is charged what it is expected to cost."""
        for priority in sorted(self._classes, reverse=True):
            group = self._classes[priority]
            best: tuple[float, int, Waiting] | None = None
            for tenant in group.active.values():
                if best is not None and (tenant.counter, tenant.waiting) >= best[:2]:
                    continue
                if (first := tenant.first(now, may_go)) is not None:
                    best = tenant.counter, tenant.waiting, first
            if best is not None:
                return self._serve(group, best[2], now)
        return None

    def expire(self, now: float) -> list[Waiting]:
        """Those whose deadline is over; they wait no longer."""
        late: list[Waiting] = []
        for group in self._classes.values():
            for tenant in tuple(group.active.values()):
                for queue in tuple(tenant.flows.values()):
                    late += _late_heads(queue, now)
        for item in late:
            self.leave(item)
        return late

    def is_hopeless(self, item: Waiting, now: float) -> bool:
        """Whether it would wait beyond its deadline even if its tenant's turns came twice as fast as they do."""
        group = self._classes.get(item.priority)
        tenant = None if group is None else group.active.get(item.tenant)
        if tenant is None or tenant.turn_at is None:
            return False
        ahead = len(tenant.flows.get(item.flow, ()))
        return now + ahead * tenant.gap_seconds / _SURE > item.deadline

    def correct(self, item: Waiting, cost: float) -> None:
        """What had its turn came to another cost than was expected."""
        group = self._classes.get(item.priority)
        tenant = None if group is None else group.tenants.get(item.tenant)
        if tenant is not None:
            tenant.counter += (cost - item.cost) / item.weight
            item.cost = cost

    def keep_only(self, tenants: Collection[str]) -> None:
        """Forget the counters of other tenants, unless they wait."""
        for priority, group in tuple(self._classes.items()):
            group.tenants = {
                name: tenant for name, tenant in group.tenants.items() if name in tenants or tenant.waiting
            }
            if not group.tenants:
                del self._classes[priority]

    def _class(self, priority: int) -> _Class:
        group = self._classes.get(priority)
        if group is None:
            group = self._classes[priority] = _Class()
        return group

    def _serve(self, group: _Class, item: Waiting, now: float) -> Waiting:
        tenant = group.tenants[item.tenant]
        tenant.counter += item.cost / item.weight
        if tenant.turn_at is not None:
            gap = now - tenant.turn_at
            tenant.gap_seconds += (gap - tenant.gap_seconds) * (_GAP_MEMORY if tenant.gap_seconds else 1.0)
        tenant.turn_at = now
        self.leave(item)
        return item

    def _surplus(self, item: Waiting) -> Waiting:
        """Who has to go for one more of a flow."""
        classes = {
            priority: found
            for priority, group in self._classes.items()
            if (found := [tenant for tenant in group.active.values() if item.flow in tenant.flows])
        }
        lowest = min(classes, default=item.priority)
        if item.priority < lowest or not classes:
            return item
        longest = max(classes[lowest], key=lambda tenant: _load(tenant, item.flow))
        if item.priority == lowest:
            own = self._classes[lowest].active.get(item.tenant)
            own_waiting = 0 if own is None else len(own.flows.get(item.flow, ()))
            if own is longest or _load(longest, item.flow, 1) < (own_waiting + 1) / item.weight:
                return item
        return next(reversed(longest.flows[item.flow]))


def _load(tenant: _Tenant, flow: str, without: int = 0) -> float:
    queue = tenant.flows[flow]
    return (len(queue) - without) / next(iter(queue)).weight


def _late_heads(queue: OrderedDict[Waiting, None], now: float) -> Iterator[Waiting]:
    for item in queue:
        if item.deadline >= now:
            return
        yield item
