"""Two whole gateways with one server between them: a limit is one limit, and losing the server stops nobody."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.gateway.shared_servers import SharedServer

pytestmark = pytest.mark.valkey
BODY = {"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
LIMIT = 60


def ask(gateway, world):
    key = {"authorization": f"Bearer {world.acme_key}"}
    return httpx2.post(f"{gateway.url}/v1/chat/completions", json=BODY, headers=key, timeout=20).status_code


def admitted(gateways, world, count):
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda number: ask(gateways[number % 2], world), range(count)))
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def test_two_gateways_share_a_limit_and_go_on_without_the_server(gateway_maker, world, until, tmp_path):
    server = SharedServer(tmp_path)
    server.start()
    gateways = [gateway_maker() for _ in range(2)]
    try:
        for gateway in gateways:
            gateway.settings["shared_state"] = {"url": server.url, "gateways": 2}
            gateway.publish(world.snapshot(gateway.one.address, requests_per_minute=LIMIT))
            gateway.start_decision()
            gateway.start_envoy()
        for gateway in gateways:
            until(lambda one=gateway: one.metric("enginehouse_gateway_shared_state_up") == 1, "the server")
        started = time.monotonic()
        before = admitted(gateways, world, 200)
        most = LIMIT * (1 + (time.monotonic() - started) / 60)
        assert LIMIT - 10 <= before <= most + 1
        until(lambda: gateways[1].metric('enginehouse_gateway_routing_notes_total{way="heard"}') > 0, "notes")
        server.kill()
        for gateway in gateways:
            until(lambda one=gateway: one.metric("enginehouse_gateway_shared_state_up") == 0, "the loss")
            until(lambda one=gateway: ask(one, world) == 200, "an answer within its part", 20)
        server.start()
        for gateway in gateways:
            until(lambda one=gateway: one.metric("enginehouse_gateway_shared_state_up") == 1, "the server again")
            until(lambda one=gateway: ask(one, world) == 200, "an answer", 30)
            assert world.acme_key not in gateway.gateway_log
        total = time.monotonic() - started
        ended = sum(gateway.metric("enginehouse_gateway_requests_ended_total") for gateway in gateways)
        assert ended <= LIMIT * (1 + total / 60) + 2
    finally:
        server.kill()
