"""What a gateway shares with others, put together from its settings; nothing of it where it shares nothing."""

import asyncio
import secrets
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry

from gateway.budget_lines import NewAccount
from gateway.hub import HubNotes, HubStore
from gateway.lease_keeper import LeaseKeeper
from gateway.lease_store import SharedStore
from gateway.leases import Leases
from gateway.router import RouterSettings
from gateway.routing_news import NoteChannel, RoutingNews, TellingRouter
from gateway.second_look import SecondLook
from gateway.settings import GatewaySettings
from gateway.token_lease import Share
from gateway.worker import Worker


class Sharing:
    """The leases of this process and the store behind them."""

    def __init__(
        self, name: str, store: SharedStore, channel: NoteChannel, settings: RouterSettings, registry: CollectorRegistry
    ) -> None:
        leases = Leases(name, Share(settings.gateways, settings.gateways - 1))
        self._keeper = LeaseKeeper(leases, store, time.time, registry, settings.gateways)
        self.router = TellingRouter(settings, name)
        """One that the others hear of, and that hears of them."""
        self._news = RoutingNews(self.router, channel, time.time, registry)
        self._tasks: list[asyncio.Task[None]] = []
        self.new_account: NewAccount = leases.account
        """Makes what budgets are kept in."""
        self.second_look = SecondLook(self._keeper)
        """For requests whose lease is short."""

    def start(self, on_death: Callable[[], object]) -> None:
        """Work beside the requests; `on_death` is told if that stops before `close`."""
        for loop in (self._keeper.run(), self._news.run()):
            task = asyncio.get_running_loop().create_task(loop)
            task.add_done_callback(lambda _: on_death())
            self._tasks.append(task)

    async def close(self) -> None:
        """After the last request; the loops first, since the last word closes what they listen on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._news.close()
        await self._keeper.close()


def sharing_of(settings: GatewaySettings, registry: CollectorRegistry, worker: Worker | None) -> Sharing | None:
    """What the settings ask for; the client's library is loaded only where it is used."""
    name, shared = secrets.token_hex(8), settings.shared_state
    if shared is None:
        if worker is None:
            return None
        hub = worker.whole.hub_path
        return Sharing(name, HubStore(hub, worker.share), HubNotes(hub), router_settings(settings), registry)
    from gateway.valkey_store import ValkeyNotes, ValkeyStore, connect

    store, notes = ValkeyStore(connect(shared), shared, name), ValkeyNotes(connect(shared), shared)
    return Sharing(name, store, notes, router_settings(settings), registry)


def router_settings(settings: GatewaySettings) -> RouterSettings:
    """Of one process, which is not the only one that decides."""
    gateways = settings.workers * (settings.shared_state.gateways if settings.shared_state else 1)
    most = max(1, settings.max_requests_per_endpoint // settings.workers)
    return RouterSettings(most_requests=most, gateways=gateways)
