"""What follows from the end of each admitted request: metrics, a usage record, and budgets that outlive a restart."""

import asyncio
from collections.abc import Callable

import httpx2
from prometheus_client import CollectorRegistry

from gateway.admitted import Ended
from gateway.arm_metrics import ArmMetrics
from gateway.budget_file import BudgetFile
from gateway.budget_keeper import BudgetKeeper
from gateway.budget_state import KeptAccount
from gateway.charge_metrics import ChargeMetrics
from gateway.index import SnapshotIndex
from gateway.request_metrics import RequestMetrics
from gateway.settings import GatewaySettings
from gateway.usage_delivery import UsageDelivery
from gateway.usage_metrics import UsageMetrics
from gateway.usage_spool import UsageSpool
from gateway.usage_writer import UsageWriter


class Accounting:
    """Everything that is told of an end; `ended` is all that the path of a request pays."""

    def __init__(self, settings: GatewaySettings, registry: CollectorRegistry) -> None:
        self._settings = settings
        self._charges = ChargeMetrics(registry)
        self.arms = ArmMetrics(registry)
        self._requests = RequestMetrics(registry)
        self._usage_metrics = UsageMetrics(registry)
        self._spool = UsageSpool(settings.usage_path, settings.usage.max_spool_bytes)
        self._writer = UsageWriter(self._spool, self._usage_metrics, settings.usage)
        self._keeper = BudgetKeeper(BudgetFile(settings.budgets_path), registry)
        self._delivery: UsageDelivery | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def ended(self, ended: Ended) -> None:
        """An admitted request is over."""
        self._charges.ended(ended)
        self.arms.ended(ended)
        self._requests.ended(ended)
        if self._settings.usage.is_recorded:
            self._writer.ended(ended)

    def open(self, kept: Callable[[], tuple[KeptAccount, ...]]) -> tuple[KeptAccount, ...]:
        """Take over what an earlier gateway left, and give what it charged; raises OSError."""
        self._spool.open()
        self._usage_metrics.watch_spool(lambda: self._spool.size_bytes, self._spool.age_seconds)
        self._writer.start()
        return self._keeper.open(kept)

    def start(self, client: httpx2.AsyncClient, on_death: Callable[[], object]) -> None:
        """Work beside the requests, once it is open; `on_death` is told if that stops before `close`."""
        self._delivery = UsageDelivery(client, self._settings.token_file, self._spool, self._usage_metrics)
        for loop in (self._delivery.run(), self._keeper.run()):
            task = asyncio.create_task(loop)
            task.add_done_callback(lambda _: on_death())
            self._tasks.append(task)

    def look(self, index: SnapshotIndex | None) -> None:
        """Once a second: names that left the snapshot leave the metrics."""
        self._requests.look(index)

    async def close(self) -> None:
        """After the last request: what is left goes to disk, and from there to the control plane if it is there."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._keeper.save()
        await asyncio.to_thread(self._writer.stop)
        if self._delivery is not None:
            await self._delivery.finish(self._settings.usage.stop_seconds)
