"""Budgets on a real server: what the scripts do, what two gateways may admit, and what a killed server changes."""

import asyncio
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from gateway.budget_lines import Unit
from gateway.budget_scripts import _CLOCK, TAKE
from gateway.budget_store import Kind, MemoryBudgets, Wish
from gateway.lease_keeper import LeaseKeeper
from gateway.lease_store import StoreLostError
from gateway.leases import Leases
from gateway.token_lease import Share
from gateway.valkey_settings import SharedStateSettings
from gateway.valkey_store import ValkeyNotes, ValkeyStore, connect
from tests.gateway.shared_servers import SharedServer

pytestmark = pytest.mark.valkey
START = 1_900_065_600.0
AMOUNT = st.integers(0, 400)
WISHES = st.lists(
    st.tuples(
        st.floats(0, 40), st.sampled_from("abc"), st.sampled_from(list(Kind)), AMOUNT, AMOUNT, AMOUNT, AMOUNT, AMOUNT
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = SharedServer(tmp_path_factory.mktemp("shared"))
    made.start()
    yield made
    made.kill()


def shared(server, prefix, gateways=1):
    return SharedStateSettings(url=server.url, prefix=prefix, gateways=gateways, timeout_seconds=5)


class TimedStore(ValkeyStore):
    """The script with a moment of the test's instead of the server's."""

    def __init__(self, client, options, name):
        script = TAKE.replace(_CLOCK, "local now = tonumber(ARGV[11])")
        super().__init__(client, options, name, script)
        self.now = START

    async def take(self, wishes, epoch):
        return await super().take(wishes, f"{epoch}")

    async def _round(self, wishes, epoch):
        if self._digest is None:
            self._digest = await self._client.script_load(self._take_script)
        return [
            await self._client.execute_command(
                "EVALSHA",
                self._digest,
                2,
                self._key(f"budget/{wish.key}"),
                self._key("state"),
                wish.kind.value,
                *(wish.limit, wish.gateway, wish.serial, wish.take, wish.least, wish.give_back, wish.owed, wish.held),
                epoch,
                repr(self.now),
            )
            for wish in wishes
        ]


@given(limit=st.integers(0, 500), steps=WISHES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_script_grants_what_the_program_in_memory_grants(server, limit, steps):
    async def run(client):
        options = shared(server, "law")
        await client.flushdb()
        store, memory, serials = TimedStore(client, options, "a"), MemoryBudgets(), {}
        epoch = (await store.join()).epoch
        for gap, name, kind, take, least, back, owed, held in steps:
            store.now += gap
            serial = serials[name, kind] = serials.get((name, kind), 0) + 1
            slots = kind is Kind.SLOTS
            wish = Wish(
                f"t/{kind}", kind, limit, name, serial, take, min(take, least), back, owed, held if slots else 0
            )
            expected = memory.take(wish, store.now)
            assert await store.take([wish], epoch) == [expected]
            assert await store.take([wish], epoch) == [expected], "asked again"

    async def run_and_close():
        async with connect(shared(server, "law")) as client:
            await run(client)

    asyncio.run(run_and_close())


async def test_money_is_counted_in_nanodollars_and_nobody_gains_by_rounding(server):
    options = shared(server, "money")
    store = ValkeyStore(connect(options), options, "a")
    epoch = (await store.join()).epoch
    key = "acme/usd_per_month//1900000000"
    taken = await store.take([Wish(key, Kind.STOCK, 10_000_500, "a", 1, 1_500)], epoch)
    assert taken == [2_000]
    rest = await store.take([Wish(key, Kind.STOCK, 10_000_500, "b", 1, 50_000_000)], epoch)
    assert rest == [9_998_000]
    await store.leave()


async def test_another_memory_serves_no_wish_that_was_made_for_the_one_before(server):
    options = shared(server, "memory")
    store = ValkeyStore(connect(options), options, "a")
    await store.join()
    assert await store.take([Wish("k", Kind.STOCK, 10, "a", 1, 5)], "other") == [None]
    await store.leave()


async def test_gateways_know_each_other_and_forget_who_left(server):
    options = shared(server, "who")
    stores = [ValkeyStore(connect(options), options, name) for name in ("a", "b", "c")]
    for store in stores:
        await store.join()
    assert [(await store.join()).share for store in stores] == [Share(3, 0), Share(3, 1), Share(3, 2)]
    await stores[0].leave()
    assert [(await store.join()).share for store in stores[1:]] == [Share(2, 0), Share(2, 1)]
    for store in stores[1:]:
        await store.leave()


class Gateway:
    """The leases of one gateway with one tenant's day, as many requests as there is room for."""

    def __init__(self, server, prefix, gateways, limit, unit=Unit.TOKENS_PER_DAY):
        options = shared(server, prefix, gateways)
        self.name = f"g{id(self)}"
        self.leases = Leases(self.name, Share(gateways, gateways - 1))
        self.keeper = LeaseKeeper(
            self.leases, ValkeyStore(connect(options), options, self.name), time.time, CollectorRegistry(), gateways
        )
        self.account = self.leases.account(("acme", None, unit), limit, time.time())
        self.admitted = self.alone = self.number = 0

    async def ask(self, amount=7, rounds=3):
        for _ in range(rounds):
            if self.account.wait(amount, time.time()) == 0:
                self.number += 1
                self.account.hold(self.number, amount, time.time())
                self.admitted += amount
                self.alone += amount if self.account.is_alone else 0
                return True
            waited = self.keeper.refill("acme")
            if waited is None:
                return False
            await waited
        return False

    async def until(self, is_up):
        end = time.monotonic() + 10
        while self.keeper.is_up is not is_up:
            assert time.monotonic() < end
            await self.keeper.round()
            await asyncio.sleep(0.02)


async def test_gateways_together_admit_a_day_and_no_more_while_the_server_is_there(server):
    gateways = [Gateway(server, "day", 3, 1000) for _ in range(3)]
    for gateway in gateways:
        await gateway.until(True)
    for _ in range(120):
        await asyncio.gather(*(gateway.ask() for gateway in gateways))
    total = sum(gateway.admitted for gateway in gateways)
    assert total <= 1000
    assert total >= 1000 - 3 * 10, "what lies unspent in leases is little"
    for gateway in gateways:
        await gateway.keeper.close()


async def test_gateways_together_run_as_many_requests_at_once_as_the_limit_says(server):
    gateways = [Gateway(server, "slots", 2, 5, Unit.CONCURRENT_REQUESTS) for _ in range(2)]
    for gateway in gateways:
        await gateway.until(True)
    for _ in range(10):
        await asyncio.gather(*(gateway.ask(1) for gateway in gateways))
    assert sum(gateway.admitted for gateway in gateways) == 5
    for gateway in gateways:
        await gateway.keeper.close()


@pytest.mark.parametrize("keeps", [True, False], ids=["with its memory", "without its memory"])
async def test_a_server_killed_in_the_middle_neither_stops_gateways_nor_lets_them_beyond_the_day(tmp_path, keeps):
    server = SharedServer(tmp_path, keeps=keeps)
    server.start()
    limit, gateways = 3000, [Gateway(server, "killed", 2, 3000) for _ in range(2)]
    try:
        for gateway in gateways:
            await gateway.until(True)
        for _ in range(40):
            await asyncio.gather(*(gateway.ask() for gateway in gateways))
        before = sum(gateway.admitted for gateway in gateways)
        assert before == 2 * 40 * 7
        server.kill()
        for _ in range(20):
            assert all(await asyncio.gather(*(gateway.ask() for gateway in gateways))), "it goes on alone"
        assert all(gateway.alone for gateway in gateways)
        server.start()
        for gateway in gateways:
            await gateway.keeper.round()
        await asyncio.gather(*(gateway.until(True) for gateway in gateways))
        for gateway in gateways:
            await gateway.keeper.round()
        for _ in range(300):
            await asyncio.gather(*(gateway.ask() for gateway in gateways))
        total = sum(gateway.admitted for gateway in gateways)
        assert limit - 2 * 30 <= total <= limit
        assert all(not gateway.account.is_alone for gateway in gateways)
    finally:
        for gateway in gateways:
            await gateway.keeper.close()
        server.kill()


async def test_while_the_server_is_lost_no_gateway_spends_more_than_its_part(tmp_path):
    server = SharedServer(tmp_path)  # never started
    gateways = [Gateway(server, "lost", 2, 1000) for _ in range(2)]
    for gateway in gateways:
        await gateway.keeper.round()
        for _ in range(200):
            await gateway.ask()
        assert 490 <= gateway.admitted <= 500
        await gateway.keeper.close()


async def test_messages_reach_the_others_and_a_lost_server_is_noticed(tmp_path):
    server = SharedServer(tmp_path)
    server.start()
    try:
        one, other = (ValkeyNotes(connect(shared(server, "notes")), shared(server, "notes")) for _ in range(2))
        stream = other.messages()
        heard = asyncio.create_task(anext(stream))
        async with asyncio.timeout(10):
            while not heard.done():
                await one.send(b"note")
                await asyncio.sleep(0.01)
        assert heard.result() == b"note"
        server.kill()
        with pytest.raises(StoreLostError):
            async for _ in stream:
                pass
        with pytest.raises(StoreLostError):
            await one.send(b"note")
        await one.close()
        await other.close()
    finally:
        server.kill()


async def test_slots_of_a_killed_gateway_end(server):
    options = shared(server, "dead")
    store = TimedStore(connect(options), options, "a")
    epoch = (await store.join()).epoch
    taken = Wish("k", Kind.SLOTS, 5, "a", 1, 5)
    assert await store.take([taken], epoch) == [5]
    store.now += 29
    assert await store.take([Wish("k", Kind.SLOTS, 5, "b", 1, 5)], epoch) == [0]
    store.now += 2
    assert await store.take([Wish("k", Kind.SLOTS, 5, "b", 2, 5)], epoch) == [5]
    await store.leave()


async def test_a_server_that_does_not_answer_counts_as_lost(tmp_path):
    options = shared(SharedServer(tmp_path), "none")
    store = ValkeyStore(connect(options), options, "a")
    with pytest.raises(StoreLostError, match="lost"):
        await store.join()
    await store.leave()
