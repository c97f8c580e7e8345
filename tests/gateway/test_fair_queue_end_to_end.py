"""Waiting for engines through real Envoy and the guard: who is next, who is refused, and who leaves."""

import json
import threading

import httpx2
import pytest

from fleet.snapshot import QueueLimits

CHAT = "/v1/chat/completions"
WAITING = 'enginehouse_gateway_requests_waiting{model="both-chat"}'


class Busy:
    """A model whose one engine takes one request at a time, and clients that ask without waiting for each other."""

    def __init__(self, gateway, world, until):
        self.gateway, self.world, self.until = gateway, world, until
        self.threads = []
        self.answers = {}

    def limit(self, **queue):
        snapshot = self.world.snapshot(self.gateway.one.address)
        limits = {"concurrent_requests": 1, "queue": QueueLimits(**queue)}
        routes = [route.model_copy(update=limits) for route in snapshot.routes]
        self.gateway.publish(snapshot.model_copy(update={"routes": tuple(routes)}))
        self.until(self.in_use, "the limits are in use")

    def ask(self, name, key, **members):
        with httpx2.Client(base_url=self.gateway.url, timeout=10) as client:
            body = {"model": "both-chat", "messages": [{"role": "user", "content": name}], **members}
            answer = client.post(CHAT, json=body, headers={"authorization": f"Bearer {key}"})
            self.answers[name] = answer
            return answer

    def ask_meanwhile(self, name, key, **members):
        self.threads.append(threading.Thread(target=self.ask, args=(name, key), kwargs=members))
        self.threads[-1].start()

    def waits(self, count):
        self.until(lambda: self.gateway.metric(WAITING) == count, f"{count} requests wait")

    def served(self):
        return [json.loads(body)["messages"][0]["content"] for body in self.gateway.one.bodies]

    def finish(self):
        self.gateway.one.go_on.set()
        for thread in self.threads:
            thread.join(10)

    def in_use(self):
        """Whether the gateway has kept what was published, which it does once it decides by it."""
        kept = self.gateway.folder / "state" / "snapshot.json"
        return json.loads(kept.read_text()) == json.loads(self.gateway.control_plane.snapshot.model_dump_json())


@pytest.fixture
def busy(gateway, world, until):
    gateway.one.go_on.clear()
    gateway.one.bodies.clear()
    made = Busy(gateway, world, until)
    yield made
    made.finish()
    made.waits(0)


def occupy(busy):
    """One stream that the engine holds until it is let go on."""
    busy.ask_meanwhile("first", busy.world.acme_key, stream=True)
    busy.until(lambda: busy.served() == ["first"], "the engine has the first")


def test_a_flood_of_one_tenant_does_not_hold_up_another_one(busy, world):
    busy.limit()
    occupy(busy)
    for number in range(3):
        busy.ask_meanwhile(f"flood-{number}", world.acme_key)
        busy.waits(number + 1)
    busy.ask_meanwhile("other", world.globex_key)
    busy.waits(4)
    assert busy.served() == ["first"]
    busy.finish()
    assert [answer.status_code for answer in busy.answers.values()] == [200] * 5
    assert busy.served() == ["first", "flood-0", "other", "flood-1", "flood-2"]
    assert busy.gateway.metric("enginehouse_gateway_queue_wait_seconds_count") >= 5


def test_more_than_may_wait_is_429_and_the_newest_of_the_flood_goes(busy, world):
    busy.limit(max_waiting=2)
    occupy(busy)
    for number in range(2):
        busy.ask_meanwhile(f"flood-{number}", world.acme_key)
        busy.waits(number + 1)
    refused = busy.ask("flood-2", world.acme_key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert int(refused.headers["retry-after"]) >= 1
    busy.ask_meanwhile("other", world.globex_key)
    busy.until(lambda: "flood-1" in busy.answers, "the newest of the flood is refused")
    assert busy.answers["flood-1"].json()["error"]["code"] == "queue_full"
    busy.finish()
    assert busy.served() == ["first", "flood-0", "other"]


def test_who_has_waited_as_long_as_it_may_is_refused_and_never_sent_on(busy, world):
    busy.limit(max_wait_seconds=0.2)
    occupy(busy)
    refused = busy.ask("late", world.globex_key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "queue_timeout")
    assert "retry-after" in refused.headers
    busy.finish()
    assert busy.served() == ["first"]
    name = 'enginehouse_gateway_queue_refusals_total{model="both-chat",outcome="queue_timeout",tenant="globex"}'
    assert busy.gateway.metric(name) == 1


def test_where_nobody_may_wait_there_is_room_or_a_refusal(busy, world):
    busy.limit(max_waiting=0)
    occupy(busy)
    assert busy.ask("second", world.globex_key).status_code == 429
    busy.finish()
    busy.until(lambda: busy.ask("third", world.globex_key).status_code == 200, "room")


def test_a_client_that_leaves_while_it_waits_is_forgotten(busy, world):
    busy.limit()
    occupy(busy)
    leaver = httpx2.Client(base_url=busy.gateway.url, timeout=0.5)
    body = {"model": "both-chat", "messages": [{"role": "user", "content": "leaver"}]}
    with pytest.raises(httpx2.ReadTimeout):
        leaver.post(CHAT, json=body, headers={"authorization": f"Bearer {world.globex_key}"})
    leaver.close()
    busy.waits(0)
    busy.ask_meanwhile("stays", world.globex_key)
    busy.waits(1)
    busy.finish()
    assert busy.served() == ["first", "stays"]


def test_a_request_wakes_a_model_that_sleeps_and_is_served_when_its_engine_is_there(busy, world):
    awake = world.snapshot(busy.gateway.one.address)
    queue = {"queue": QueueLimits(waits_without_engine=True)}
    routes = [
        route.model_copy(
            update={**queue, "arms": tuple(arm.model_copy(update={"endpoints": ()}) for arm in route.arms)}
        )
        for route in awake.routes
    ]
    busy.gateway.publish(awake.model_copy(update={"routes": tuple(routes)}))
    busy.until(busy.in_use, "the sleep")
    busy.ask_meanwhile("waker", world.acme_key)
    busy.waits(1)
    busy.gateway.publish(awake)
    busy.until(lambda: "waker" in busy.answers, "it is served")
    assert busy.answers["waker"].status_code == 200
