"""Keeps leases filled from the store that gateways share, and goes on without it while it is lost."""

import asyncio
from collections.abc import Callable, Sequence

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.budget_scripts import SETTLE_SECONDS
from gateway.lease_store import Joined, SharedStore, StoreLostError
from gateway.leases import Asked, Leases
from gateway.token_lease import Share

EVERY_SECONDS = 0.25
DRY_SECONDS = 0.05
"""A tenant whose budget is used up asks no more often than this, however many of its requests come."""
_log = structlog.get_logger("gateway.shared")


class LeaseKeeper:
    """One timer for all leases, and one question at a time for each tenant whose lease is short."""

    def __init__(
        self,
        leases: Leases,
        store: SharedStore,
        clock: Callable[[], float],
        registry: CollectorRegistry,
        least_gateways: int = 1,
    ) -> None:
        self._leases = leases
        self._store = store
        self._clock = clock
        self._least_gateways = least_gateways
        self._share = Share(least_gateways, least_gateways - 1)
        leases.share_with(self._share)
        self._epoch = ""
        """Of the memory that knows what is leased here; empty = none does."""
        self._is_up = False
        self._problem: str | None = None
        self._next: dict[str, asyncio.Task[bool]] = {}
        """A tenant's question that is not put yet: it will hold whatever is missing by then."""
        self._asking: dict[str, asyncio.Task[bool]] = {}
        """The one that is on its way: what is missing since then is not in it."""
        self._dry_until: dict[str, float] = {}
        up = Gauge(
            "enginehouse_gateway_shared_state_up",
            "1 = budgets are shared with other gateways; 0 = the store is lost and this one spends its part of each.",
            registry=registry,
        )
        up.set_function(lambda: float(self._is_up))
        self._failures = Counter(
            "enginehouse_gateway_shared_state_failures",
            "Rounds with the store that gateways share that failed.",
            registry=registry,
        )

    @property
    def is_up(self) -> bool:
        """Whether the store answers."""
        return self._is_up

    async def run(self) -> None:
        """Round after round until cancelled."""
        while True:
            await self.round()
            await asyncio.sleep(EVERY_SECONDS)

    async def round(self) -> None:
        """Say that we are here, and serve every wish."""
        try:
            joined = await self._store.join()
            if await self._is_known_to(joined):
                self._found()
            else:
                self._is_up = False
        except StoreLostError as error:
            self._lost(error)
        await self._serve(self._leases.wishes(self._clock()))
        now = self._clock()
        self._dry_until = {tenant: end for tenant, end in self._dry_until.items() if end > now}

    def refill(self, tenant: str) -> "asyncio.Future[bool] | None":
        """Ask for one tenant whose lease is short; ``None`` = there is nothing to wait for.

        While the store is lost the leases are told so at once, and fall back on their shares.
        """
        if self._is_up and self._dry_until.get(tenant, 0.0) > self._clock():
            return None
        if not self._is_up and all(one.lease.is_alone for one in self._leases.wishes(self._clock(), tenant)):
            return None
        task = self._next.get(tenant)
        if task is None:
            task = self._next[tenant] = asyncio.get_running_loop().create_task(self._refill(tenant))
        return task

    async def close(self) -> None:
        """This gateway ends: what it did not spend goes back, and it is no longer counted."""
        await self._store.leave()

    async def _refill(self, tenant: str) -> bool:
        """Whether something came of it; one question of a tenant after the other."""
        before, this = self._asking.get(tenant), self._next[tenant]
        try:
            if before is not None:
                await asyncio.wait((before,))
        finally:
            del self._next[tenant]
        self._asking[tenant] = this
        try:
            asked = self._leases.wishes(self._clock(), tenant)
            granted = not asked or await self._serve(asked)  # without one the timer was faster
        finally:
            del self._asking[tenant]
        if not granted and self._is_up:
            self._dry_until[tenant] = self._clock() + DRY_SECONDS
        return granted

    async def _serve(self, asked: Sequence[Asked]) -> bool:
        if not asked:
            return False
        answers: Sequence[int | None] = [None] * len(asked)
        if self._is_up:
            try:
                answers = await self._store.take([one.wish for one in asked], self._epoch)
            except StoreLostError as error:
                self._lost(error)
        now = self._clock()
        for one, granted in zip(asked, answers, strict=True):
            self._leases.answer(one, granted, now)
        return any(answer is None or answer > 0 for answer in answers)

    async def _is_known_to(self, joined: Joined) -> bool:
        """Whether the store may be drawn on; one without memory is first told what was taken from it."""
        is_settled = joined.age_seconds >= SETTLE_SECONDS
        if joined.epoch != self._epoch:
            debts = self._leases.debts(joined.epoch, self._clock()) if self._epoch else ()
            if debts:
                _log.warning("shared_state.forgot", budgets=len(debts))
                if None in await self._store.take(debts, joined.epoch):
                    return False
            self._epoch = joined.epoch
        gateways = max(joined.share.gateways, self._least_gateways)
        if is_settled or gateways >= self._share.gateways:  # before, not all may have come back
            self._share = Share(gateways, joined.share.position)
            self._leases.share_with(self._share)
        return is_settled

    def _found(self) -> None:
        if not self._is_up:
            _log.info("shared_state.found")
        self._is_up, self._problem = True, None

    def _lost(self, error: StoreLostError) -> None:
        self._is_up = False
        self._failures.inc()
        if str(error) != self._problem:
            _log.warning("shared_state.lost", error=str(error))
        self._problem = str(error)
