"""Bad requests over HTTP/2 through real Envoy: what HTTP/1 would read otherwise is never asked of an engine."""

import json
import socket

import pytest
from hpack import Decoder, Encoder

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": "acme-chat", "messages": [{"role": "user", "content": "x"}]}).encode()
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def read_frame(file):
    head = file.read(9)
    if len(head) < 9:
        return None
    return head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, file.read(int.from_bytes(head[:3], "big"))


def ask(gateway, fields, body=BODY):
    """The status and the body of the answer; no status = the stream or the connection was ended instead."""
    port = int(gateway.settings["listen_port"])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, connection.makefile("rb") as file:
        block = Encoder().encode(fields)
        request = frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, body)
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + request)
        decoder, status, got = Decoder(), None, b""
        while (found := read_frame(file)) is not None:
            kind, flags, stream, payload = found
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
            elif kind == GOAWAY or (stream == 1 and kind == RST_STREAM):
                break
            elif stream == 1 and kind == HEADERS:
                status = int(dict(decoder.decode(payload))[":status"])
            elif stream == 1 and kind == DATA:
                got += payload
            if stream == 1 and kind in {HEADERS, DATA} and flags & END_STREAM:
                break
        return status, got


def fields(world, *more, path=CHAT, method="POST"):
    return [
        (":method", method),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", path),
        ("authorization", f"Bearer {world.acme_key}"),
        *more,
    ]


def test_a_plain_request_is_answered(gateway, world):
    assert ask(gateway, fields(world)) == (200, b"one")


BAD = {
    "a transfer encoding": [("transfer-encoding", "chunked")],
    "a connection": [("connection", "keep-alive, authorization")],
    "an upgrade": [("upgrade", "websocket")],
    "a wrong length": [("content-length", "3")],
    "two lengths": [("content-length", str(len(BODY))), ("content-length", "3")],
    "a line break in a value": [("x-a", "b\r\nx-gateway-tenant: globex")],
    "a line feed in a value": [("x-a", "b\nx-gateway-tenant: globex")],
    "a zero byte in a value": [("x-a", "b\x00c")],
    "a line break in a name": [("x-a\r\nx-b", "c")],
    "a colon in a name": [("x-a: b", "c")],
    "a capital in a name": [("X-Gateway-Tenant", "globex")],
    "a second path": [(":path", "/metrics")],
    "an unknown pseudo-header": [(":admin", "1")],
    "no path": [],
}


@pytest.mark.parametrize("name", BAD)
def test_what_must_not_be_in_a_request_ends_it(gateway, world, name):
    before = len(gateway.one.heads)
    asked = fields(world, *BAD[name])
    if name == "no path":
        asked = [field for field in asked if field[0] != ":path"]
    status, _ = ask(gateway, asked)
    assert status in {None, 400}
    assert len(gateway.one.heads) == before


PATHS = [
    "/metrics", "//metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/%6detrics", "/v1/chat/completions/../../../a",
    "/v1/chat%2fcompletions", "/v1/chat/completions HTTP/1.1\r\nx: y", "/v1/chat/completions\x00", "metrics", "*",
    "http://127.0.0.1/metrics", "/v1/load_lora_adapter", "/invocations",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_an_engines_own_paths_are_not_reached_over_http2_either(gateway, world, path):
    before = len(gateway.one.heads)
    status, body = ask(gateway, fields(world, path=path))
    assert status in {None, 400, 404}
    if status is not None:
        assert json.loads(body)["error"]["code"] in {"malformed_request", "unknown_path"}
    assert len(gateway.one.heads) == before


@pytest.mark.parametrize("name", ["x-gateway-destination-endpoint", "x-gateway-tenant", "x-envoy-original-path"])
def test_headers_of_the_gateways_own_have_no_effect(gateway, world, name):
    before = len(gateway.two.heads)
    assert ask(gateway, fields(world, (name, gateway.two.address))) == (200, b"one")
    assert len(gateway.two.heads) == before
    assert name not in gateway.one.heads[-1].lower()


def test_too_many_headers_end_the_request(gateway, world):
    before = len(gateway.one.heads)
    status, _ = ask(gateway, fields(world, *((f"x-{number}", "1") for number in range(101))))
    assert status in {None, 431}
    assert len(gateway.one.heads) == before
