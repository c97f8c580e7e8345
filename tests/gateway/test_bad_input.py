"""Bad requests through real Envoy: an error in OpenAI's form with the right status, and engines see none of it."""

import contextlib
import http.client
import json
import socket

import httpx2
import pytest

from gateway.ext_authz import MAX_BODY_BYTES

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": "acme-chat", "messages": [{"role": "user", "content": "x"}]})
SIZE = len(BODY)
PLAIN = f"content-length: {SIZE}\r\n\r\n{BODY}"
PIECES = f"transfer-encoding: chunked\r\n\r\n{SIZE:x}\r\n{BODY}\r\n0\r\n\r\n"
SMUGGLED = f"POST {CHAT} HTTP/1.1\r\nhost: y\r\n{PLAIN}"


@pytest.fixture
def client(gateway, world):
    headers = {"authorization": f"Bearer {world.acme_key}"}
    with httpx2.Client(base_url=gateway.url, timeout=20, headers=headers) as client:
        yield client


def head(world, line=f"POST {CHAT} HTTP/1.1"):
    return f"{line}\r\nhost: x\r\nauthorization: Bearer {world.acme_key}\r\nconnection: close\r\n"


def raw(gateway, request):
    """Bytes on the wire, and what comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", int(gateway.settings["listen_port"])), timeout=10) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request.encode("latin-1"))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        status, body = answer.status, answer.read()
        connection.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            assert connection.recv(1) == b"", "a second answer came"
        return status, body


def error_of(status, body):
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    assert error["type"] == kind
    assert error["message"]
    return error


MALFORMED = {
    "length and pieces": f"content-length: {SIZE}\r\n{PIECES}",
    "pieces and length": f"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n{SIZE:x}\r\n{BODY}\r\n0\r\n\r\n",
    "two lengths": f"content-length: 3\r\n{PLAIN}",
    "the same length twice": f"content-length: {SIZE}\r\n{PLAIN}",
    "a list of lengths": f"content-length: {SIZE}, {SIZE}\r\n\r\n{BODY}",
    "a negative length": f"content-length: -{SIZE}\r\n\r\n{BODY}",
    "a length with a sign": f"content-length: +{SIZE}\r\n\r\n{BODY}",
    "a length in hexadecimal": f"content-length: 0x{SIZE:x}\r\n\r\n{BODY}",
    "a space before the colon": PIECES.replace("encoding:", "encoding :"),
    "a vertical tab": PIECES.replace(": chunked", ": \x0bchunked"),
    "a size that is no number": PIECES.replace(f"{SIZE:x}\r\n", "zz\r\n"),
    "a size with a prefix": PIECES.replace(f"{SIZE:x}\r\n", f"0x{SIZE:x}\r\n"),
    "a size beyond all bounds": PIECES.replace(f"{SIZE:x}\r\n", "fffffffffffffffff\r\n"),
    "a size that is too short": PIECES.replace(f"{SIZE:x}\r\n", f"{SIZE - 3:x}\r\n"),
    "pieces with bare line feeds": PIECES.replace(f"{SIZE:x}\r\n", f"{SIZE:x}\n").replace(f"{BODY}\r\n", f"{BODY}\n"),
    "a zero byte in a header": f"x-a: b\x00c\r\n{PLAIN}",
    "a space in a name": f"x a: b\r\n{PLAIN}",
    "no name": f": b\r\n{PLAIN}",
    "another encoding": PIECES.replace("chunked", "xchunked"),
    "pieces that are no pieces": PIECES.replace("chunked", "chunked, identity"),
    "pieces twice": PIECES.replace("chunked", "chunked\r\ntransfer-encoding: chunked"),
    "pieces in pieces": PIECES.replace("chunked", "chunked, chunked"),
    "compressed pieces": PIECES.replace("chunked", "gzip, chunked"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_message_that_can_be_read_in_two_ways_is_400_and_reaches_no_engine(gateway, world, name):
    before = len(gateway.one.heads)
    status, body = raw(gateway, head(world) + MALFORMED[name])
    assert status == 400
    assert error_of(status, body)["code"] in {"malformed_request", "unsupported_transfer_encoding", "invalid_json"}
    assert len(gateway.one.heads) == before


CLEANED = {
    "folded": f"x-a: b\r\n c\r\n{PLAIN}",
    "a bare line feed before a header": f"x-a: b\nx-gateway-tenant: globex\r\n{PLAIN}",
    "a bare carriage return": f"x-a: b\rx-gateway-tenant: globex\r\n{PLAIN}",
    "a trailer": PIECES.replace("0\r\n\r\n", "0\r\nx-gateway-tenant: globex\r\nauthorization: Bearer y\r\n\r\n"),
    "an extension of a piece": PIECES.replace(f"{SIZE:x}\r\n", f"{SIZE:x};a=b\r\n"),
    "underscores": f"content_length: 3\r\ntransfer_encoding: chunked\r\nx_gateway_tenant: globex\r\n{PLAIN}",
    "a second host": f"host: y\r\n{PLAIN}",
    "another method in a header": f"x-http-method-override: GET\r\nx-original-url: /metrics\r\n{PLAIN}",
    "an upgrade to HTTP/2": f"upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n{PLAIN}",
}


@pytest.mark.parametrize("name", CLEANED)
def test_what_envoy_forgives_reaches_the_engine_as_one_clean_request(gateway, world, name):
    before = len(gateway.one.heads)
    status, body = raw(gateway, head(world) + CLEANED[name])
    assert (status, body) == (200, b"one")
    assert len(gateway.one.heads) == before + 1
    seen = gateway.one.heads[-1].lower().removesuffix("\r\n\r\n").split("\r\n")
    names = [line.partition(":")[0] for line in seen[1:]]
    assert seen[0] == f"post {CHAT} http/1.1"
    assert names.count("content-length") == 1
    assert len(names) == len(set(names))
    assert not {"transfer-encoding", "x-gateway-tenant", "upgrade", "authorization"} & set(names)
    assert all("\r" not in line and "\n" not in line for line in seen)
    assert gateway.one.bodies[-1] == BODY.encode()


def test_a_request_behind_the_end_of_another_is_judged_by_itself(gateway, world):
    """It has no key of its own, and that of the first does not count for it."""
    before = len(gateway.one.heads)
    first = head(world).replace("connection: close\r\n", "")
    with socket.create_connection(("127.0.0.1", int(gateway.settings["listen_port"])), timeout=10) as connection:
        connection.sendall((first + PLAIN + SMUGGLED.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")).encode())
        came = b""
        while piece := connection.recv(65536):
            came += piece
    assert came.count(b"HTTP/1.1 200") == came.count(b"HTTP/1.1 401") == 1
    assert len(gateway.one.heads) == before + 1


LINES = {
    "POST /v1/chat/completions HTTP/1.0": (426, "unsupported_http_version"),
    "POST /v1/chat/completions HTTP/3.7": (426, "unsupported_http_version"),
    "post /v1/chat/completions HTTP/1.1": (400, "malformed_request"),
    "POST /v1/chat/completions#x HTTP/1.1": (400, "malformed_request"),
    "POST /v1/chat/completions x HTTP/1.1": (400, "malformed_request"),
    "POST /v1/../v1/chat/completions/../../../metrics HTTP/1.1": (404, "unknown_path"),
    "POST /v1/chat%2Fcompletions HTTP/1.1": (400, "malformed_request"),
    "POST /v1/chat/completions/%2e%2e/%2e%2e/metrics HTTP/1.1": (404, "unknown_path"),
    "POST /v1/messages/%2e%2e/load_lora_adapter HTTP/1.1": (404, "unknown_path"),
    "POST /v1/responses/../update_weights HTTP/1.1": (404, "unknown_path"),
    "POST /tokenize;x=/../../metrics HTTP/1.1": (404, "unknown_path"),
    "POST /tokenize/../invocations HTTP/1.1": (404, "unknown_path"),
    "POST //invocations HTTP/1.1": (404, "unknown_path"),
    "POST /v1/audio/transcriptions/../speech HTTP/1.1": (404, "unknown_path"),
    "POST /v1/chat/completions/render HTTP/1.1": (404, "unknown_path"),
    "POST http://127.0.0.1:9/metrics HTTP/1.1": (404, "unknown_path"),
    "CONNECT 127.0.0.1:9 HTTP/1.1": (400, "malformed_request"),
    "TRACE /v1/chat/completions HTTP/1.1": (405, "method_not_allowed"),
    "PUT /v1/chat/completions HTTP/1.1": (405, "method_not_allowed"),
    f"POST /v1/{'a' * 70_000} HTTP/1.1": (431, "headers_too_large"),
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:60])
def test_another_line_is_refused_and_reaches_no_engine(gateway, world, line):
    before = len(gateway.one.heads)
    status, body = raw(gateway, head(world, line) + PLAIN)
    assert (status, error_of(status, body)["code"]) == LINES[line]
    assert len(gateway.one.heads) == before


ADMIN = [
    "/metrics", "/update_weights", "/invocations", "/v1/load_lora_adapter", "/render", "/v1/chat/completions/render",
    "/sleep", "/reset_prefix_cache", "/flush_cache", "/server_info", "/detokenize", "/v1/responses/r/cancel",
]  # fmt: skip
SPELLINGS = [
    str,
    lambda path: "/" + path,
    lambda path: "/v1/.." + path,
    lambda path: "/v1/%2e%2e" + path,
    lambda path: "/v1/.%2E" + path,
    lambda path: "/v1/models/.." + path,
    lambda path: "/v1/chat/completions/../../.." + path,
    lambda path: "/v1/chat/completions/..;/..;/.." + path,
    lambda path: "/v1/chat/completions" + path,
    lambda path: path + "/",
    lambda path: path + "?x=/v1/chat/completions",
    lambda path: path + ";x=/v1/chat/completions",
    lambda path: path.replace("e", "%65"),
    lambda path: path.replace("e", "%2565"),
    lambda path: path.replace("/", "%2f"),
    lambda path: path.replace("/", "\\"),
    lambda path: path.replace("/", "/./"),
    lambda path: path.upper(),
    lambda path: "http://127.0.0.1" + path,
    lambda path: "/tokenize%00/.." + path,
    lambda path: "/tokenize%0d%0a" + path,
    lambda path: "/%ef%bc%8f.." + path,
]


@pytest.mark.parametrize("path", ADMIN)
def test_an_engines_own_paths_are_reached_by_no_spelling_and_no_method(gateway, world, path):
    before = len(gateway.one.heads)
    targets = [spell(path) for spell in SPELLINGS]
    for method, target in [*(("POST", target) for target in targets), ("GET", path), ("DELETE", path), ("PUT", path)]:
        status, body = raw(gateway, head(world, f"{method} {target} HTTP/1.1") + PLAIN)
        assert status in {400, 404, 405}, (method, target)
        error_of(status, body)
    assert len(gateway.one.heads) == before


@pytest.mark.parametrize("headers", [10_000, 101])
def test_too_many_headers_are_431(gateway, world, headers):
    more = "".join(f"x-{number}: 1\r\n" for number in range(headers))
    status, body = raw(gateway, head(world) + more + PLAIN)
    assert (status, error_of(status, body)["code"]) == (431, "headers_too_large")


def test_a_connection_is_never_upgraded(gateway, world):
    opening = head(world).replace("connection: close", "connection: upgrade\r\nupgrade: websocket")
    status, body = raw(gateway, opening + PLAIN)
    assert (status, error_of(status, body)["code"]) == (403, "upgrade_refused")


DOCUMENTS = {
    "deep lists": (b"[" * 100_000, "invalid_json"),
    "deep objects": (b'{"a":' * 40_000, "invalid_json"),
    "deep inside": (b'{"model":"acme-chat","messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "invalid_json"),
    "the model twice": (b'{"model":"acme-chat","model":"globex-chat","messages":[]}', "invalid_json"),
    "the model twice, once escaped": (b'{"model":"acme-chat","m\\u006fdel":"globex-chat"}', "invalid_json"),
    "no UTF-8": (b'{"model":"acme-chat\xff"}', "invalid_json"),
    "UTF-16": ('{"model":"acme-chat"}'.encode("utf-16"), "invalid_json"),
    "a byte order mark": (b"\xef\xbb\xbf" + BODY.encode(), "invalid_json"),
    "two documents": (BODY.encode() * 2, "invalid_json"),
    "NaN": (b'{"model":"acme-chat","temperature":NaN}', "invalid_json"),
    "a comment": (b'{"model":"acme-chat"/**/}', "invalid_json"),
    "a list": (b"[]", "invalid_json"),
    "nothing": (b"", "invalid_json"),
    "a number without end": (b'{"model":"acme-chat","n":' + b"9" * 100_000 + b"}", "invalid_json"),
    "no model": (b"{}", "missing_model"),
    "a model that is a number": (b'{"model":7}', "missing_model"),
    "a model that is a list": (b'{"model":["acme-chat"]}', "missing_model"),
    "an empty model": (b'{"model":""}', "missing_model"),
    "an unknown model": (b'{"model":"nobody-chat"}', "model_not_found"),
    "a model with control characters": (b'{"model":"a\\r\\nx: y\\u0000"}', "model_not_found"),
    "a long model": (b'{"model":"' + b"a" * 100_000 + b'"}', "model_not_found"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_none_of_ours_is_refused_with_its_reason(gateway, client, name):
    content, code = DOCUMENTS[name]
    before = len(gateway.one.heads)
    answer = client.post(CHAT, content=content)
    assert answer.status_code == (404 if code == "model_not_found" else 400)
    assert error_of(answer.status_code, answer.content)["code"] == code
    assert len(answer.content) < 1000
    assert len(gateway.one.heads) == before


FIGURES = [
    ("max_tokens", -1), ("max_tokens", 2**31), ("max_tokens", 10**30), ("max_tokens", "7"), ("max_tokens", [7]),
    ("max_tokens", 1.5), ("max_tokens", True), ("max_completion_tokens", {}), ("n", 0), ("n", -1), ("n", 129),
    ("n", 1e300), ("n", "2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), FIGURES)
def test_a_figure_that_cannot_be_meant_is_400_with_the_name_of_its_field(gateway, client, name, value):
    before = len(gateway.one.heads)
    answer = client.post(CHAT, json={**json.loads(BODY), name: value})
    assert answer.status_code == 400
    assert error_of(400, answer.content)["param"] == name
    assert len(gateway.one.heads) == before


def test_a_body_beyond_the_bound_is_413_however_it_is_sent(gateway, client, world):
    answer = client.post(CHAT, content=b" " * (MAX_BODY_BYTES + 1))
    assert (answer.status_code, error_of(413, answer.content)["code"]) == (413, "body_too_large")
    piece = f"{1024 * 1024:x}\r\n{' ' * 1024 * 1024}\r\n"
    status, body = raw(gateway, head(world) + "transfer-encoding: chunked\r\n\r\n" + piece * 9 + "0\r\n\r\n")
    assert (status, error_of(status, body)["code"]) == (413, "body_too_large")


def test_a_compressed_body_is_415(client):
    answer = client.post(CHAT, content=BODY, headers={"content-encoding": "gzip"})
    assert (answer.status_code, error_of(415, answer.content)["code"]) == (415, "unsupported_content_encoding")


def test_a_form_where_json_is_read_is_refused(client):
    answer = client.post(CHAT, files={"file": b"x"}, data={"model": "acme-chat"})
    assert (answer.status_code, error_of(400, answer.content)["code"]) == (400, "invalid_json")


def test_it_still_serves(gateway, client):
    assert client.post(CHAT, content=BODY).content == b"one"
