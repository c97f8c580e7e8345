"""The server on real sockets, with grpcio's client as the other side: the one that others wrote."""

import asyncio
import contextlib
import gc
import threading

import pytest
from structlog.testing import capture_logs

from gateway.http2 import frames
from gateway.http2.grpc_calls import unary
from gateway.http2.grpc_server import grpc_server
from gateway.http2.limits import Limits

grpc = pytest.importorskip("grpc", reason="grpcio is not installed: its client is the other side here")
asyncio_loops = pytest.importorskip("uvloop", reason="uvloop is not installed")


class Echo:
    def __init__(self, call):
        self.call = call

    def message(self, data):
        self.call.send(data)

    def half_closed(self):
        self.call.finish()

    def writable(self):
        pass

    def closed(self):
        pass


class Running:
    """A server on a loop of its own, in a thread."""

    def __init__(self, path, limits=None):
        self.path, self.limits = path, limits
        self.loop = asyncio_loops.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.calls, self.server, self.listener = [], None, None
        self.call(self.start())

    def call(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(10)

    async def start(self):
        methods = {"/test.Echo/Both": self.made, "/test.Echo/One": unary(bytes.upper)}
        self.server = grpc_server(methods, clock=self.loop.time, on_failure=lambda: None, limits=self.limits)
        self.listener = await self.loop.create_unix_server(self.server.connection, self.path)

    def made(self, call):
        self.calls.append(call)
        return Echo(call)

    def stop(self):
        self.listener.close()
        self.call(self.server.drain(5))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def running(tmp_path):
    made = Running(str(tmp_path / "s"))
    yield made
    made.stop()


@pytest.fixture
def channel(running):
    with grpc.insecure_channel(f"unix:{running.path}") as channel:
        yield channel


def test_unary_calls_of_another_client(channel):
    one = channel.unary_unary("/test.Echo/One")
    assert [one(b"abc", timeout=10) for _ in range(3)] == [b"ABC"] * 3
    assert one(b"x" * 300_000, timeout=10) == b"X" * 300_000
    with pytest.raises(grpc.RpcError) as error:
        channel.unary_unary("/test.Echo/Other")(b"", timeout=10)
    assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_streams_of_another_client_larger_than_every_window(channel):
    both = channel.stream_stream("/test.Echo/Both")
    messages = [bytes([number]) * 40_000 for number in range(100)]
    assert list(both(iter(messages), timeout=20)) == messages


def test_many_calls_of_another_client_at_once(channel):
    both = channel.stream_stream("/test.Echo/Both")
    calls = [both(iter([b"%d" % number]), timeout=20) for number in range(200)]
    assert [list(call) for call in calls] == [[b"%d" % number] for number in range(200)]


def test_a_deadline_of_another_client(running, channel):
    never = threading.Event()
    call = channel.stream_stream("/test.Echo/Both")((b"%d" % never.wait(5) for _ in range(1)), timeout=0.2)
    with pytest.raises(grpc.RpcError) as error:
        list(call)
    assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    never.set()


def test_draining_lets_a_call_finish(running, channel):
    go_on = threading.Event()

    def messages():
        yield b"first"
        go_on.wait(10)
        yield b"last"

    call = channel.stream_stream("/test.Echo/Both")(messages(), timeout=20)
    assert next(call) == b"first"
    drained = asyncio.run_coroutine_threadsafe(running.server.drain(10), running.loop)
    go_on.set()
    assert list(call) == [b"last"]
    drained.result(10)
    assert not running.server.connections


async def test_a_client_that_never_reads_is_not_read_any_more(tmp_path, make_client):
    loop = asyncio.get_running_loop()
    server = grpc_server(
        {"/test.Echo/Both": Echo}, clock=loop.time, on_failure=lambda: None, limits=Limits(control_frames=10**9)
    )
    listener = await loop.create_unix_server(server.connection, str(tmp_path / "s"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write(make_client().start())
    pings = frames.frame(frames.PING, 0, 0, bytes(8)) * 4096
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 64 * 2**20:
            writer.write(pings)
            await asyncio.wait_for(writer.drain(), 0.5)
            sent += len(pings)
    assert sent < 16 * 2**20
    writer.transport.abort()
    listener.close()
    await server.drain(5)
    del reader
    gc.collect()


async def test_a_client_that_says_nothing_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.http2.protocol.PREFACE_SECONDS", 0.05)
    loop = asyncio.get_running_loop()
    server = grpc_server({}, clock=loop.time, on_failure=lambda: None)
    listener = await loop.create_unix_server(server.connection, str(tmp_path / "s"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    said = b""
    with contextlib.suppress(ConnectionError):
        said = await asyncio.wait_for(reader.read(), 10)
    assert b"PRI" not in said
    writer.close()
    listener.close()
    assert not server.connections


async def test_why_the_calls_of_a_peer_were_cut_is_said_and_of_strangers_nothing(tmp_path, make_client):
    loop = asyncio.get_running_loop()
    server = grpc_server({}, clock=loop.time, on_failure=lambda: None)
    listener = await loop.create_unix_server(server.connection, str(tmp_path / "s"))
    with capture_logs() as logged:
        for first in (b"GET / HTTP/1.1\r\n\r\n" + bytes(64), make_client().start() + make_client().data(1, b"early")):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
            writer.write(first)
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), 10)
            writer.close()
    listener.close()
    await server.drain(5)
    assert [(entry["event"], entry["code"]) for entry in logged] == [("http2.connection_ended", "PROTOCOL_ERROR")]
