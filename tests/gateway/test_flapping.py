"""An engine that comes and goes: the real core and the real guard together let nobody notice, and ask it ever less."""

import json

from gateway.asked import Request
from gateway.decision import DecisionCore
from gateway.ejection import EjectionSettings
from gateway.index import index_of
from tests.gateway.guarded import STREAM_HEAD, FakeEngine, ask, guarding, piece, whole_answer

CHAT = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"


async def stream(_, writer):
    writer.write(STREAM_HEAD + piece(DONE) + b"0\r\n\r\n")
    await writer.drain()


class Flapping:
    """Fails until it is said to be well."""

    def __init__(self):
        self.is_well = False

    async def __call__(self, reader, writer):
        if self.is_well:
            await stream(reader, writer)
        else:
            writer.transport.abort()
            raise ConnectionResetError


async def test_while_an_engine_flaps_every_request_is_served(world):
    now, flapping = [world.now], Flapping()
    core = DecisionCore(clock=lambda: now[0])
    async with FakeEngine(flapping) as bad, FakeEngine(stream) as good:
        snapshot = world.snapshot(bad.address, good.address)
        core.replace(index_of(snapshot), world.now)

        async def served(count):
            """So many requests one after the other; how many of them reached the bad engine."""
            before = len(bad.requests)
            for _ in range(count):
                text = f"talk {now[0]} {len(good.requests)}"
                body = json.dumps({"model": "acme-chat", "messages": [{"role": "user", "content": text}]}).encode()
                headers = {"authorization": f"Bearer {world.acme_key}"}
                allowed = core.decide(Request("POST", CHAT, headers, body), now[0])
                async with guarding(allowed.admitted) as (_, reader, writer):
                    ask(writer, body=body)
                    assert await whole_answer(reader) == (200, DONE, True)
            return len(bad.requests) - before

        settings = EjectionSettings()
        assert await served(40) == settings.failures
        assert core.router.ejections.ejected(now[0]) == (bad.address,)
        now[0] += settings.first_seconds
        assert await served(10) == 1  # the probe
        now[0] += settings.first_seconds
        assert await served(10) == 0  # twice as long
        now[0] += settings.first_seconds
        flapping.is_well = True
        assert await served(20) > 1
        assert core.router.ejections.ejected(now[0]) == ()
    assert core.running == 0
