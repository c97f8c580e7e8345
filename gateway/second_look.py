"""Decides again about a request that found its tenant's lease short, once the shared store was asked."""

import asyncio
from collections.abc import Callable

from gateway.decision import Decision
from gateway.exchange import Exchange, HttpResponse
from gateway.http_protocol import Later
from gateway.lease_keeper import LeaseKeeper
from gateway.refusals import Reason, Refused

MOST_ROUNDS = 8
"""Somebody else may take what came."""
_BY_BUDGET = frozenset({Reason.TOO_MANY_REQUESTS, Reason.QUOTA})


class SecondLook:
    """Nothing for requests whose lease suffices, which are nearly all: they are decided about without waiting."""

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper
        self._running: set[asyncio.Task[None]] = set()

    def wanted(self, decision: Decision) -> "asyncio.Future[bool] | None":
        """What to wait for before a refusal is meant; ``None`` = it stands."""
        if not isinstance(decision, Refused) or decision.reason not in _BY_BUDGET or decision.tenant is None:
            return None
        return self._keeper.refill(decision.tenant)

    async def decided(
        self,
        waited: "asyncio.Future[bool]",
        again: Callable[[], Decision],
        is_over: Callable[[], bool] = lambda: False,
    ) -> Decision | None:
        """Asked again where somebody was faster; ``None`` = nobody waits for the answer any longer."""
        for _ in range(MOST_ROUNDS):
            has_come = await asyncio.shield(waited)
            if is_over():
                return None
            decision = again()
            following = self.wanted(decision) if has_come else None
            if following is None:
                return decision
            waited = following
        return decision

    def later(
        self,
        waited: "asyncio.Future[bool]",
        again: Callable[[], Decision],
        verdict: Callable[[Decision], HttpResponse],
        fail: Callable[[], HttpResponse],
    ) -> Later:
        """The answer that comes when the store was asked; `fail` gives the one for when that raises."""

        async def look(exchange: Exchange) -> None:
            try:
                decision = await self.decided(waited, again, lambda: exchange.is_over)
                answer = None if decision is None else verdict(decision)
            except Exception:
                answer = fail()
            if answer is not None:
                exchange.answer(answer)

        def begin(exchange: Exchange) -> None:
            task = asyncio.get_running_loop().create_task(look(exchange))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

        return begin
