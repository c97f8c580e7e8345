"""Models, arms and fallbacks through real Envoy."""

import json

import httpx2
import pytest

from fleet.snapshot import GatewayRoute, GatewayShadow

CHAT = "/v1/chat/completions"


def chat(model, **members):
    return {"model": model, "messages": [{"role": "user", "content": "the-secret-prompt"}], "max_tokens": 5, **members}


class Client:
    """A tenant's client of a gateway whose routes a test sets."""

    def __init__(self, gateway, world, until):
        self.gateway, self.world, self.until = gateway, world, until
        headers = {"authorization": f"Bearer {world.acme_key}"}
        self.http = httpx2.Client(base_url=gateway.url, timeout=10, headers=headers)

    def arm(self, name, *addresses, **more):
        made = self.world.arm(*addresses, name=name)
        return made.model_copy(update={"endpoints": made.endpoints if addresses else (), **more})

    def use(self, marker, *routes, **key):
        """Publish routes, and wait until the newest snapshot is in use: a model of this name tells."""
        good = self.world.snapshot(self.gateway.one.address)
        keys = tuple(one.model_copy(update=key) for one in good.keys)
        there = GatewayRoute(model=marker, tenants=("acme",), arms=good.routes[0].arms)
        self.gateway.publish(good.model_copy(update={"routes": (*routes, there), "keys": keys}))
        self.until(lambda: self.http.get(f"/v1/models/{marker}").status_code == 200, f"the routes of {marker}")

    def ask(self, model, pin=None, **members):
        headers = {} if pin is None else {"x-arm": pin}
        return self.http.post(CHAT, json=chat(model, **members), headers=headers)


@pytest.fixture
def client(gateway, world, until):
    made = Client(gateway, world, until)
    with made.http:
        yield made


def route(model, *arms, **more):
    return GatewayRoute(model=model, tenants=("acme",), arms=arms, **more)


def test_an_alias_reaches_the_engine_by_the_name_that_it_serves(gateway, client):
    client.use("alias", route("large", client.arm("a", gateway.one.address), aliases=("latest",)))
    answer = client.ask("latest")
    assert (answer.status_code, answer.content, answer.headers["x-served-model"]) == (200, b"one", "large")
    assert json.loads(gateway.one.bodies[-1]) == chat("large")
    assert "latest" in {card["id"] for card in client.http.get("/v1/models").json()["data"]}


def test_a_pin_reaches_an_arm_without_weight_and_no_engine_sees_the_header(gateway, client):
    arms = (client.arm("stable", gateway.one.address), client.arm("canary", gateway.two.address, weight=0.0))
    client.use("pin", route("large", *arms), pins_arms=True)
    assert {client.ask("large").content for _ in range(5)} == {b"one"}
    answer = client.ask("large", "canary")
    assert (answer.status_code, answer.content) == (200, b"two")
    assert client.ask("large", f"canary/{arms[1].identity}").content == b"two"
    assert "x-arm" not in gateway.two.heads[-1].lower()
    wrong = client.ask("large", "nothing")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (403, "arm_not_allowed")
    client.use("no-pin", route("large", *arms))
    assert client.ask("large", "canary").status_code == 403


def test_a_model_whose_engines_are_away_is_served_by_the_next_of_its_chain(gateway, client, until):
    other = route("small", client.arm("b", gateway.two.address))
    client.use("dead", route("large", client.arm("a", "127.0.0.1:1"), fallbacks=("small",)), other)
    answer = client.ask("large")
    assert (answer.status_code, answer.content, answer.headers["x-served-model"]) == (200, b"two", "small")
    assert json.loads(gateway.two.bodies[-1]) == chat("small")
    logged = ("large", "small", gateway.two.address)
    places = ("model", "served_model", "endpoint")
    until(lambda: logged in [tuple(line[place] for place in places) for line in gateway.access_log], "its line")
    client.use("none", route("large", client.arm("a"), fallbacks=("small",)), other)
    assert client.ask("large").headers["x-served-model"] == "small"
    counted = 'enginehouse_gateway_fallbacks_total{model="large",served_model="small",tenant="acme"}'
    until(lambda: gateway.metric(counted) == 2, "both are counted")


def test_a_stream_falls_back_before_its_first_byte(gateway, client):
    other = route("small", client.arm("b", gateway.two.address))
    client.use("stream", route("large", client.arm("a", "127.0.0.1:1"), fallbacks=("small",)), other)
    gateway.two.go_on.set()
    try:
        with client.http.stream("POST", CHAT, json=chat("large", stream=True)) as answer:
            assert answer.headers["x-served-model"] == "small"
            assert answer.read().endswith(b"data: [DONE]\n\n")
    finally:
        gateway.two.go_on.clear()


def test_a_late_engine_is_given_up_in_the_routes_own_time(gateway, client):
    stuck = route("large", client.arm("a", gateway.one.address), idle_seconds=0.2)
    client.use("late", stuck)
    gateway.one.go_on.clear()
    with client.http.stream("POST", CHAT, json=chat("large", stream=True)) as answer:
        assert b"engine_timeout" in answer.read()


@pytest.mark.parametrize("stream", [False, True])
def test_a_shadow_gets_a_copy_that_nobody_waits_for(gateway, client, until, stream):
    """The shadow's stream never ends by itself: whoever waited for it would wait for ever."""
    shadow = GatewayShadow(arm=client.arm("canary", gateway.two.address), share=1.0)
    client.use(f"shadow-{stream}".lower(), route("large", client.arm("a", gateway.one.address), shadow=shadow))
    counted = 'enginehouse_gateway_shadow_requests_total{deployment="canary",model="large",outcome="answered"}'
    before, bodies = gateway.metric(counted), len(gateway.two.bodies)
    gateway.one.go_on.set()
    gateway.two.go_on.clear()
    try:
        answer = client.ask("large", stream=stream)
        assert answer.content == (gateway.one.first + gateway.one.last if stream else b"one")
        until(lambda: len(gateway.two.bodies) == bodies + 1, "the copy")
        assert json.loads(gateway.two.bodies[-1]) == json.loads(gateway.one.bodies[-1])
        gateway.two.go_on.set()
        until(lambda: gateway.metric(counted) == before + 1, "the copy is over")
    finally:
        gateway.one.go_on.clear()
        gateway.two.go_on.clear()


def test_an_engine_that_flaps_is_left_alone_and_nobody_notices(gateway, client, until):
    client.use("flap", route("large", client.arm("a", "127.0.0.1:1", gateway.one.address)))
    answers = [client.ask("large", messages=[{"role": "user", "content": f"talk {n}"}]) for n in range(30)]
    assert {answer.status_code for answer in answers} == {200}
    until(lambda: gateway.metric("enginehouse_gateway_endpoints_ejected") == 1, "the dead one is ejected")
    assert "relay.engine_ejected" in gateway.gateway_log
    client.use("whole", route("large", client.arm("a", gateway.one.address)))
    until(lambda: gateway.metric("enginehouse_gateway_endpoints_ejected") == 0, "what is gone is forgotten")
