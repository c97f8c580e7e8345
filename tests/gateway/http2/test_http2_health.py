"""The health service: what is asked by name, what changes while somebody watches."""

import asyncio

import pytest

from gateway.grpc_health import LIVENESS, READINESS, health_methods
from gateway.http2.grpc_calls import CallRefused
from gateway.http2.message_types import message_types

REQUEST = message_types("test.health", "message Request\n string service 1")["Request"]


class Call:
    def __init__(self):
        self.sent, self.metadata, self.is_blocked = [], (), False

    def send(self, message):
        self.sent.append(message[1] if message else 0)

    def finish(self, status=0, message=""):
        self.sent.append("finished")


class Health:
    def __init__(self):
        self.is_ready, self.looks = False, 0
        methods = health_methods({LIVENESS: lambda: True, READINESS: self.look})
        self.check_method, self.watch_method = methods.values()
        assert list(methods) == ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"]

    def look(self):
        self.looks += 1
        return self.is_ready

    def check(self, name):
        call = Call()
        handler = self.check_method(call)
        handler.message(REQUEST(service=name).SerializeToString())
        handler.half_closed()
        return call.sent


def test_each_service_is_told_by_its_name_and_all_of_them_by_none():
    health = Health()
    assert health.check(LIVENESS) == [1, "finished"]
    assert health.check(READINESS) == health.check("") == [2, "finished"]
    health.is_ready = True
    assert health.check(READINESS) == health.check("") == [1, "finished"]


def test_an_unknown_service_is_not_found():
    with pytest.raises(CallRefused) as refused:
        Health().check("other")
    assert refused.value.status == 5


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x01\xff"])
def test_a_question_that_can_not_be_read_is_refused(data):
    handler = Health().check_method(Call())
    handler.message(data)
    with pytest.raises(CallRefused):
        handler.half_closed()


async def looked(health, times):
    """Until the watch has looked as often again."""
    goal = health.looks + times
    async with asyncio.timeout(10):
        while health.looks < goal:  # noqa: ASYNC110 - counted by the loop's own timer
            await asyncio.sleep(0.001)


async def test_who_watches_hears_every_change_once(monkeypatch):
    monkeypatch.setattr("gateway.grpc_health.POLL_SECONDS", 0.001)
    health, call = Health(), Call()
    handler = health.watch_method(call)
    handler.message(REQUEST(service=READINESS).SerializeToString())
    await looked(health, 3)
    assert call.sent == [2]
    health.is_ready = True
    await looked(health, 3)
    handler.closed()
    assert call.sent == [2, 1]


async def test_an_unknown_service_is_watched_as_unknown():
    call = Call()
    handler = Health().watch_method(call)
    handler.message(REQUEST(service="other").SerializeToString())
    handler.closed()
    assert call.sent == [3]
