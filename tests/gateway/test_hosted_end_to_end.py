"""A hosted engine as an arm, through real Envoy and the gateway's process."""

import json
import ssl
from dataclasses import dataclass

import httpx2
import pytest

from fleet.snapshot import GatewayArm, GatewayRoute, HostedEndpoint
from tests.gateway.certificates import certificate
from tests.gateway.conftest import FakeEngine, answer, end_gateway, make_gateway, read_request

CHAT = "/v1/chat/completions"
KEY = "gsk-the-hosts-key"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


@dataclass
class FakeHost(FakeEngine):
    """Answers like OpenAI's API, or that it is too much."""

    tls: ssl.SSLContext | None = None
    status: int = 200

    async def serve(self, reader, writer):
        self.first = b'data: {"model":"llama-9","choices":[]}\n\n'
        while (request := await read_request(reader)) is not None:
            self.heads.append(request[0])
            self.bodies.append(request[1])
            if json.loads(request[1]).get("stream"):
                return await self._stream(reader, writer)
            await self._whole(writer)

    async def _whole(self, writer):
        body = json.dumps({"model": "llama-9", "usage": USAGE}).encode()
        more = "content-type: application/json\r\nset-cookie: a=b\r\nretry-after: 60\r\n"
        await answer(writer, self.status, body, more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, world):
    folder = tmp_path_factory.mktemp("hosted")
    pem = certificate(folder, "localhost")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    made, host = make_gateway(folder, world), FakeHost("host", tls=tls)
    keys = folder / "keys"
    keys.mkdir()
    (keys / "groq-key").write_text(KEY)
    made.settings["hosted_keys_dir"] = str(keys)
    try:
        made.servers.start(host)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", str(pem))
            made.start_decision()
        made.start_envoy()
        yield made, host
    finally:
        end_gateway(made)


@pytest.fixture
def client(whole, world, until):
    gateway, host = whole
    endpoint = HostedEndpoint(url=f"https://localhost:{host.port}/openai/v1", model="llama-9", api_key_ref="groq-key")
    arm = GatewayArm(deployment="groq-chat", identity="0" * 32, engine="groq", hosted=endpoint)
    good = world.snapshot(gateway.one.address)
    routes = (
        GatewayRoute(model="large", tenants=("acme",), arms=(arm,), fallbacks=("acme-chat",)),
        *good.routes,
    )
    gateway.publish(good.model_copy(update={"routes": routes}))
    headers = {"authorization": f"Bearer {world.acme_key}", "x-secret": "the-secret"}
    with httpx2.Client(base_url=gateway.url, timeout=10, headers=headers) as made:
        until(lambda: made.get("/v1/models/large").status_code == 200, "the route")
        yield made


def chat(**members):
    return {"model": "large", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, **members}


def test_a_hosted_engine_serves_a_route_with_our_key(whole, client, world, until):
    gateway, host = whole
    answered = client.post(CHAT, json=chat())
    assert (answered.status_code, answered.json()["model"]) == (200, "llama-9")
    assert answered.headers["x-served-model"] == "large"
    assert "set-cookie" not in answered.headers
    head = host.heads[-1].lower()
    assert head.startswith("post /openai/v1/chat/completions http/1.1")
    assert f"authorization: bearer {KEY}" in head
    assert not any(word in head for word in (world.acme_key, "x-secret", "x-request-id", "x-gateway", "x-envoy"))
    assert json.loads(host.bodies[-1]) == chat(model="llama-9")
    tokens = 'enginehouse_gateway_tokens_total{basis="usage",kind="input",model="large",tenant="acme"}'
    until(lambda: gateway.metric(tokens) >= 7, "the host's usage is charged")


def test_a_stream_of_a_hosted_engine_passes(whole, client):
    _, host = whole
    host.go_on.set()
    with client.stream("POST", CHAT, json=chat(stream=True)) as stream:
        body = stream.read()
    assert stream.status_code == 200
    assert body.startswith(b'data: {"model":"llama-9"')
    assert body.endswith(b"data: [DONE]\n\n")


def test_a_host_that_has_enough_is_left_alone_and_its_key_is_nowhere(whole, client):
    gateway, host = whole
    host.status = 429
    try:
        before = len(host.heads)
        for _ in range(3):
            answered = client.post(CHAT, json=chat())
            assert (answered.content, answered.headers["x-served-model"]) == (b"one", "acme-chat")
        assert len(host.heads) == before + 1
    finally:
        host.status = 200
    logs = json.dumps(gateway.access_log) + gateway.gateway_log + (gateway.folder / "envoy.log").read_text()
    assert KEY not in logs
