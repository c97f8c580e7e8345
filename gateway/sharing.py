"""What a gateway shares with others, put together from its settings; nothing of it where it shares nothing."""

import asyncio
import secrets
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry

from gateway.budget_lines import NewAccount
from gateway.lease_keeper import LeaseKeeper
from gateway.leases import Leases
from gateway.second_look import SecondLook
from gateway.settings import GatewaySettings
from gateway.shared_store import SharedStore
from gateway.token_lease import Share


class Sharing:
    """The leases of this process and the store behind them."""

    def __init__(self, name: str, store: SharedStore, registry: CollectorRegistry, least_gateways: int) -> None:
        leases = Leases(name, Share(least_gateways, least_gateways - 1))
        self._keeper = LeaseKeeper(leases, store, time.time, registry, least_gateways)
        self._task: asyncio.Task[None] | None = None
        self.new_account: NewAccount = leases.account
        """Makes what budgets are kept in."""
        self.second_look = SecondLook(self._keeper)
        """For requests whose lease is short."""

    def start(self, on_death: Callable[[], object]) -> None:
        """Work beside the requests; `on_death` is told if that stops before `close`."""
        self._task = asyncio.get_running_loop().create_task(self._keeper.run())
        self._task.add_done_callback(lambda _: on_death())

    async def close(self) -> None:
        """After the last request."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._keeper.close()


def sharing_of(settings: GatewaySettings, registry: CollectorRegistry) -> Sharing | None:
    """What the settings ask for; the client's library is loaded only where it is used."""
    shared = settings.shared_state
    if shared is None:
        return None
    from gateway.valkey_store import ValkeyStore, connect

    name = secrets.token_hex(8)
    return Sharing(name, ValkeyStore(connect(shared), shared, name), registry, shared.gateways)
