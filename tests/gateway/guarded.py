"""A guard between a client of raw bytes and engines that do what a test says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from gateway.engine_connections import EngineConnections
from gateway.exchange import HttpResponse
from gateway.ext_authz import TICKET_HEADER
from gateway.guard import Guard, GuardSettings
from gateway.http_protocol import HttpProtocol
from gateway.passage import Ending, Patience
from gateway.shadows import Shadows
from gateway.targets import Target, engine_at

CHAT = "/v1/chat/completions"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_PIECE = b"0\r\n\r\n"


def piece(data: bytes) -> bytes:
    """One chunk of a body in pieces."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(text: str = "a", **more: object) -> bytes:
    """One chunk of a chat."""
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}], **more}).encode() + b"\n\n"


@dataclass
class FakePassage:
    """An admitted request."""

    engines: tuple[str, ...]
    is_usage_injected: bool = False
    output_filter: object = None
    is_stream: bool = True
    idle_seconds: float = 5.0
    first_byte_seconds: float = 5.0
    refused: object = None
    gate: asyncio.Event | None = None
    sent: list[str] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)

    model: str = "served"
    mirror: object = None
    fallbacks: list[tuple[str, ...]] = field(default_factory=list)
    """The engines of the turns after the first."""
    targets: dict[str, Target] = field(default_factory=dict)
    failures: list[tuple[str, float]] = field(default_factory=list)
    well: list[str] = field(default_factory=list)

    @property
    def patience(self) -> Patience:
        return Patience(self.first_byte_seconds, self.idle_seconds)

    @property
    def may_fall_back(self) -> bool:
        return bool(self.fallbacks)

    def fall_back(self) -> bool:
        if not self.fallbacks:
            return False
        self.engines = self.fallbacks.pop(0)
        return True

    def may_ask(self, address: str) -> bool:
        return True

    def target(self, address: str) -> Target:
        return self.targets.get(address) or engine_at(address)

    def went_well(self, address: str) -> None:
        self.well.append(address)

    def failed(self, address: str, pause_seconds: float = 0.0) -> bool:
        self.failures.append((address, pause_seconds))
        return False

    async def turn(self):
        if self.gate is not None:
            await self.gate.wait()
        return self.refused or self.engines

    def edited(self, body: bytes) -> bytes:
        return body

    def sent_to(self, address: str) -> None:
        self.sent.append(address)

    def began(self) -> None:
        self.sent.append("began")

    def end(self, ending: Ending) -> None:
        self.endings.append(ending)


@dataclass
class OneTicket:
    """The passage that waits."""

    passage: FakePassage | None
    given_up: list[str] = field(default_factory=list)

    def give_up(self, ticket: str) -> None:
        self.given_up.append(ticket)

    def take(self, ticket: str):
        if ticket != "t":
            return None
        taken, self.passage = self.passage, None
        return taken


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], "asyncio.Future[None]"]


class FakeEngine:
    """Reads one request after the other and answers by a script; it knows who left."""

    def __init__(self, script) -> None:
        self._script = script
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()
        self.address = ""
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "FakeEngine":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                (length,) = (
                    int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length")
                )
                self.requests.append(head + await reader.readexactly(length))
                await self._script(reader, writer)
        self.gone.set()


async def wait_for_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A script that says nothing until its client leaves."""
    assert await reader.read(1) == b""
    raise ConnectionResetError


@contextlib.asynccontextmanager
async def guarding(
    passage: FakePassage,
    keep_alive_seconds: float = 60.0,
    engines: EngineConnections | None = None,
    shadows: Shadows | None = None,
) -> AsyncIterator[tuple[Guard, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client of a guard, whose request has ended for the gateway as soon as the client may have its last byte."""
    engines = engines or EngineConnections()
    tickets = OneTicket(passage)
    guard = Guard(tickets, engines, GuardSettings(keep_alive_seconds), shadows)
    server = guard.server(lambda _: HttpResponse(500))
    listener = await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
    early: list[str] = []

    def note() -> None:
        if tickets.passage is None and not passage.endings:
            early.append("the client had its answer before the request had ended for the gateway")

    try:
        with _told_of_answers(note):
            yield guard, reader, writer
    finally:
        writer.close()
        listener.close()
        await server.drain(1)
        engines.close()
    assert early == []


@contextlib.contextmanager
def _told_of_answers(note: Callable[[], None]) -> Iterator[None]:
    """Called in the first turn of the loop after each answer's last byte."""
    answered = HttpProtocol._answered

    def told(self: HttpProtocol, goes_on: bool) -> None:
        answered(self, goes_on)
        asyncio.get_running_loop().call_soon(note)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpProtocol, "_answered", told)
        yield


def ask(writer: asyncio.StreamWriter, ticket: str = "t", path: str = CHAT, body: bytes = b"{}") -> None:
    """Send one request."""
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\n{TICKET_HEADER}: {ticket}\r\nx-request-id: r\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)


async def whole_answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """The status, the body, and whether it came to its end."""
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split()[1])
        if b"content-length" in head:
            (length,) = (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
            return status, await reader.readexactly(length), True
        pieces: list[bytes] = []
        while line := await reader.readline():
            pieces.append((await reader.readexactly(int(line, 16) + 2))[:-2])
            if int(line, 16) == 0:
                return status, b"".join(pieces), True
        return status, b"".join(pieces), False


async def until(is_so: Callable[[], object]) -> None:
    """Returns once something is so."""
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.001)
