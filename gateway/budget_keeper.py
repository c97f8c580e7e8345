"""Keeps the standing of budgets on disk while they change."""

import asyncio
from collections.abc import Callable

import structlog
from prometheus_client import CollectorRegistry, Counter

from gateway.budget_file import BudgetFile
from gateway.budget_state import KeptAccount
from gateway.errors import GatewayError

EVERY_SECONDS = 1.0
_log = structlog.get_logger("gateway.budgets")


class BudgetKeeper:
    """The loop."""

    def __init__(self, file: BudgetFile, registry: CollectorRegistry) -> None:
        self._file = file
        self._kept: Callable[[], tuple[KeptAccount, ...]] = tuple
        self._saved: frozenset[tuple[object, ...]] = frozenset()
        self._problem: str | None = None
        self._failures = Counter(
            "enginehouse_gateway_budget_save_failures",
            "Attempts to keep the standing of budgets on disk that failed; a restart would forget what was used since.",
            registry=registry,
        )

    def open(self, kept: Callable[[], tuple[KeptAccount, ...]]) -> tuple[KeptAccount, ...]:
        """What an earlier gateway kept; nothing where it can't be read, which is said. `kept` asks the budgets."""
        self._kept = kept
        try:
            return self._file.load()
        except GatewayError as error:
            self._failures.inc()
            _log.error("budgets.not_loaded", error=str(error))
            return ()

    async def run(self) -> None:
        """Save what changed, again and again until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.save()

    async def save(self) -> None:
        """Save once, if something changed but time."""
        kept = self._kept()
        state = frozenset((item.tenant, item.model, item.unit, item.amount) for item in kept)
        if state == self._saved:
            return
        try:
            await asyncio.to_thread(self._file.save, kept)
        except OSError as error:
            self._failures.inc()
            if error.strerror != self._problem:
                _log.error("budgets.not_kept", error=error.strerror)
            self._problem = error.strerror
            return
        self._saved, self._problem = state, None
