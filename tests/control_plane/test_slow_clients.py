"""Clients that never finish: heads and bodies are bounded in time and size, and others are served meanwhile."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn

from control_plane import connections
from control_plane.api import requests as around
from control_plane.connections import LimitedProtocol

GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def short_times(monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.1)
    monkeypatch.setattr(connections, "FLUSH_SECONDS", 0.5)
    monkeypatch.setattr(around, "BODY_SECONDS", 0.3)


@asynccontextmanager
async def serving(app):
    config = uvicorn.Config(app, http=LimitedProtocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        task = asyncio.create_task(server._serve([listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await task


async def opened(port):
    return await asyncio.open_connection("127.0.0.1", port)


async def all_of(reader):
    """What comes until the end, or until the reset that answers whoever goes on sending after it."""
    came = b""
    async with asyncio.timeout(10):
        try:
            while piece := await reader.read(65536):
                came += piece
        except ConnectionResetError:
            pass
    return came


async def trickle(writer, piece=b"x"):
    """Send for ever, more often than any limit."""
    try:
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
    except OSError:
        return


@asynccontextmanager
async def trickling(writer, piece=b"x"):
    task = asyncio.create_task(trickle(writer, piece))
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    writer.close()


def problem_in(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    return json.loads(body)


async def test_a_head_that_never_ends_is_408_and_others_are_served_meanwhile(world):
    async with serving(world.client.app) as port:
        slow = [await opened(port) for _ in range(50)]
        for _, writer in slow:
            writer.write(b"GET /livez HTTP/1.1\r\nX: ")
        reader, writer = await opened(port)
        writer.write(GET)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        async with trickling(slow[0][1]):
            assert problem_in(await all_of(slow[0][0]))["status"] == 408
        for late, writer in slow[1:]:
            assert problem_in(await all_of(late))["type"] == "urn:enginehouse:problem:too-slow"
            writer.close()


async def test_a_connection_that_says_nothing_is_closed(world):
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        assert await all_of(reader) == b""
        writer.close()


async def test_empty_lines_after_an_answer_keep_no_connection_open(world):
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        writer.write(GET)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        async with trickling(writer, b"\r\n"):
            await all_of(reader)


async def test_a_body_that_never_ends_is_408(world):
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        token = world.as_("operator")["Authorization"]
        head = (
            f"PUT /v1/tenants/acme HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: application/json\r\n"
        )
        writer.write(head.encode() + b"Content-Length: 100000\r\n\r\n{")
        async with trickling(writer):
            assert problem_in(await all_of(reader))["title"] == "The request came too slowly"


async def test_a_body_that_goes_on_after_its_answer_keeps_no_connection_open(world):
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        writer.write(b"PUT /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{")
        async with trickling(writer):
            assert (await all_of(reader)).startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /livez HTTP/1.1\r\nX: " + b"y" * 500_000 + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nX: " + b"y" * 500_000,
        b"GET /" + b"y" * 500_000,
        b"GET /livez HTTP/1.1\r\n" + b"a: b\r\n" * 30_000 + b"\r\n",
    ],
    ids=["one header", "no end", "address", "many headers"],
)
async def test_a_head_without_bounds_is_431(world, head):
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        writer.write(head)
        assert problem_in(await all_of(reader))["status"] == 431
        writer.close()


@pytest.mark.parametrize("sent", [b"\x00\xff" * 40, b"GET /\xff HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
async def test_what_is_no_http_is_a_problem_too(world, sent):
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        writer.write(sent)
        assert problem_in(await all_of(reader))["status"] == 400
        writer.close()


async def test_a_large_upload_reads_its_413_and_the_connection_goes_on(world, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 10.0)
    async with serving(world.client.app) as port:
        reader, writer = await opened(port)
        writer.write(b"PUT /v1/tenants/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n")
        for _ in range(20):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 413")
        (length,) = (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(length)
        writer.write(GET)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
