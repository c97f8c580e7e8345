"""Hosted engines: over TLS, with our key, without anything of the client's, and their troubles stay ours."""

import asyncio
import json
import os
import ssl

import pytest

from fleet.snapshot import HostedEndpoint
from gateway.engine_connections import EngineConnections
from gateway.engine_message import message_for
from gateway.hosted_keys import HostedKeyError, HostedKeys
from gateway.http_protocol import HttpRequest
from gateway.passage import End
from gateway.targets import hosted_at, pause_of
from tests.gateway.certificates import certificate
from tests.gateway.guarded import STREAM_HEAD, FakeEngine, FakePassage, ask, guarding, piece, whole_answer

DONE = b"data: [DONE]\n\n"
KEY = "gsk-the-hosts-key"
NAME = "groq-chat/0"


def status(number, body=b"{}", more=""):
    async def script(_, writer):
        writer.write(f"HTTP/1.1 {number} X\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return script


async def stream(_, writer):
    writer.write(STREAM_HEAD + piece(DONE) + b"0\r\n\r\n")
    await writer.drain()


class Host(FakeEngine):
    """A fake engine behind TLS that knows by which name it was called."""

    def __init__(self, script, pem):
        super().__init__(script)
        self.names: list[str | None] = []
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(pem)
        self._tls.sni_callback = lambda _, name, __: self.names.append(name)

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.address = str(self._server.sockets[0].getsockname()[1])
        return self


@pytest.fixture
def keys(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "groq-key").write_text(f"{KEY}\n")
    return HostedKeys(folder)


def hosted(port, path="/openai/v1"):
    url = f"https://localhost:{port}{path}"
    return hosted_at(NAME, HostedEndpoint(url=url, model="llama-9", api_key_ref="groq-key"))


def engines(keys, pem):
    return EngineConnections(keys, ssl.create_default_context(cafile=pem))


async def asked(host, keys, pem, **passage):
    """What a client gets of a host, and the passage."""
    made = FakePassage((NAME,), targets={NAME: hosted(host.address)}, **passage)
    async with guarding(made, engines=engines(keys, pem)) as (_, reader, writer):
        ask(writer, body=b'{"model":"llama-9"}')
        return await whole_answer(reader), made


async def test_a_host_gets_our_key_its_own_name_and_nothing_of_the_clients(tmp_path, keys):
    pem = certificate(tmp_path, "localhost")
    async with Host(stream, pem) as host:
        (code, body, is_whole), passage = await asked(host, keys, pem)
    assert (code, body, is_whole) == (200, DONE, True)
    head, _, sent = host.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /openai/v1/chat/completions HTTP/1.1"
    assert sorted(lines[1:]) == [
        f"authorization: Bearer {KEY}",
        "content-length: 19",
        f"host: localhost:{host.address}",
        "user-agent: enginehouse",
    ]
    assert sent == b'{"model":"llama-9"}'
    assert host.names == ["localhost"]
    assert passage.well == [NAME]


def test_of_a_clients_headers_only_two_are_told():
    headers = {
        "accept": "*/*",
        "content-type": "application/json",
        "authorization": "Bearer eh-client",
        "x-request-id": "r",
        "user-agent": "client",
        "traceparent": "t",
        "openai-organization": "o",
        "x-forwarded-for": "1.2.3.4",
        "accept-encoding": "br",
        "x-gateway-ticket": "t",
    }
    message = message_for(hosted(443), HttpRequest("POST", "/v1/embeddings", headers, b""), b"{}", KEY).decode()
    names = {line.split(":")[0] for line in message.split("\r\n")[1:] if ":" in line}
    assert names == {"host", "content-length", "accept", "content-type", "user-agent", "authorization"}
    assert "eh-client" not in message


async def test_a_host_that_is_not_whom_its_certificate_names_gets_nothing(tmp_path, keys):
    pem = certificate(tmp_path, "somebody.else")
    async with Host(stream, pem) as host:
        (code, body, _), passage = await asked(host, keys, pem)
    assert (code, json.loads(body)["error"]["code"]) == (503, "no_endpoint")
    assert host.requests == []
    assert passage.failures == [(NAME, 0.0)]


@pytest.mark.parametrize("code", [401, 402, 403, 404, 429, 500, 503])
async def test_a_hosts_trouble_with_our_account_is_another_models_turn_and_never_shown(tmp_path, keys, code):
    pem = certificate(tmp_path, "localhost")
    secret = b'{"error":{"message":"organization org-of-ours is over its limit"}}'
    async with Host(status(code, secret), pem) as host, FakeEngine(stream) as other:
        answer, passage = await asked(host, keys, pem, fallbacks=[(other.address,)])
        assert answer == (200, DONE, True)
        (last, body, _), _ = await asked(host, keys, pem)
    assert last in {502, 503}
    assert b"org-of-ours" not in body
    assert [name for name, _ in passage.failures] == [NAME]


async def test_the_pause_that_a_host_asks_for_is_passed_on(tmp_path, keys):
    pem = certificate(tmp_path, "localhost")
    async with Host(status(429, more="retry-after: 17\r\n"), pem) as host:
        _, passage = await asked(host, keys, pem)
    assert passage.failures == [(NAME, 17.0)]
    assert [ending.end for ending in passage.endings] == [End.ENGINE_LOST]


@pytest.mark.parametrize(
    ("code", "headers", "seconds"),
    [
        (429, (("retry-after", "3"),), 3.0),
        (429, (), 5.0),
        (429, (("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),), 5.0),
        (429, (("retry-after", "9" * 30),), 3600.0),
        (429, (("retry-after", "-5"),), 5.0),
        (503, (("retry-after", "2"),), 2.0),
        (503, (), 0.0),
        (500, (("retry-after", "2"),), 0.0),
    ],
)
def test_how_long_a_pause_is(code, headers, seconds):
    assert pause_of(code, headers) == seconds


async def test_what_is_the_clients_own_mistake_is_the_answer_without_the_hosts_headers(tmp_path, keys):
    pem = certificate(tmp_path, "localhost")
    told = "content-type: application/json\r\nset-cookie: a=b\r\nx-groq-id: 1\r\nx-ratelimit-limit-requests: 9\r\n"
    async with Host(status(400, b'{"error":{"message":"no"}}', told), pem) as host:
        made = FakePassage((NAME,), targets={NAME: hosted(host.address)})
        async with guarding(made, engines=engines(keys, pem)) as (_, reader, writer):
            ask(writer)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 400")
    names = {line.split(":")[0] for line in head.split("\r\n")[1:] if line}
    assert names == {"content-type", "content-length", "x-gateway-endpoint", "x-served-model"}


async def test_without_its_key_a_host_is_not_asked(tmp_path, keys):
    pem = certificate(tmp_path, "localhost")
    async with Host(stream, pem) as host:
        (code, _, _), passage = await asked(host, HostedKeys(tmp_path / "nowhere"), pem)
    assert code == 503
    assert host.requests == []
    assert passage.failures == [(NAME, 5.0)]


@pytest.mark.parametrize(
    ("path", "target", "sent"),
    [
        ("/openai/v1", "/v1/chat/completions", "/openai/v1/chat/completions"),
        ("/v1/", "/v1/models?x=1", "/v1/models?x=1"),
        ("", "/v1/chat/completions", "/v1/chat/completions"),
        ("/api/inference", "/v1/embeddings", "/api/inference/v1/embeddings"),
    ],
)
def test_the_path_of_the_url_goes_before_and_no_version_is_said_twice(path, target, sent):
    assert hosted(443, path).path(target) == sent


# --- Keys ---


def test_a_key_is_read_again_when_its_file_changes(tmp_path):
    file = tmp_path / "k"
    file.write_text("one\n")
    keys = HostedKeys(tmp_path)
    assert keys.key("k") == "one"
    file.write_text("second\n")
    assert keys.key("k") == "second"
    kept = tmp_path / "other"
    kept.write_text("third!\n")
    os.replace(kept, file)
    assert keys.key("k") == "third!"


@pytest.mark.parametrize("content", [b"", b"\n", b"two lines\nof it", b"\xff\xfe", b"a" * 5000, b"a\x00b", b"a b"])
def test_what_holds_no_key_is_said_without_its_content(tmp_path, content):
    (tmp_path / "k").write_bytes(content)
    with pytest.raises(HostedKeyError, match="holds no key") as raised:
        HostedKeys(tmp_path).key("k")
    assert str(content[:5]) not in str(raised.value)


def test_without_a_folder_or_a_file_it_is_said_what_to_set(tmp_path):
    with pytest.raises(HostedKeyError, match="hosted_keys_dir"):
        HostedKeys(None).key("k")
    with pytest.raises(HostedKeyError, match="No such file"):
        HostedKeys(tmp_path).key("k")


def test_a_targets_repr_shows_no_reference():
    assert "groq-key" not in repr(hosted(443))
