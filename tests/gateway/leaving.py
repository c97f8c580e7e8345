"""Clients that leave in the middle, engines that hold on to what they were asked, and what a gateway holds then."""

import asyncio
import json
import re
import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

from fleet.output_policy import FilterPolicy, NamedFilter
from fleet.snapshot import GatewayTenant
from tests.gateway.conftest import WholeGateway, World, answer, chunk, read_request

CHAT = "/v1/chat/completions"
HELD = "enginehouse_gateway_requests_held"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FIRST = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
ROUTES: dict[str, dict[str, object]] = {
    "guarded": {},
    "unguarded": {"is_guarded": False},
    "filtered": {"output_filter": "pii"},
    "queued": {"concurrent_requests": 1},
}


@dataclass
class HoldingEngine:
    """Begins a stream, or says nothing at all, until it is let go on or its client leaves."""

    name: str = "holding"
    port: int = 0
    asked: int = 0
    left_at: list[float] = field(default_factory=list)
    """Monotonic seconds at which each client's leaving was seen."""
    finished: int = 0
    goes_on: bool = False
    flood_bytes: int = 0
    """Of a stream: sent as fast as they are read."""
    flooded_bytes: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            if request[0].startswith("GET "):
                await answer(writer, 404, b"")
                continue
            is_stream = json.loads(request[1]).get("stream")
            self.asked += 1
            if is_stream:
                writer.write(STREAM_HEAD + chunk(FIRST))
            gone = asyncio.ensure_future(reader.read(1))
            try:
                await self._flood(writer)
            except ConnectionError:
                self.left_at.append(time.monotonic())
                raise
            while not self.goes_on and not gone.done():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.005)
            if gone.done():
                gone.exception()
                self.left_at.append(time.monotonic())
                return
            gone.cancel()
            await asyncio.wait((gone,))
            self.finished += 1
            if is_stream:
                writer.write(chunk(DONE) + b"0\r\n\r\n")
            else:
                await answer(writer, 200, b'{"choices":[]}', "content-type: application/json\r\n")

    async def _flood(self, writer: asyncio.StreamWriter) -> None:
        event = chunk(FIRST.replace(b'"a"', b'"%b"' % (b"x" * 16_000)))
        while self.flooded_bytes < self.flood_bytes:
            writer.write(event)
            await writer.drain()
            self.flooded_bytes += len(event)


def publish(gateway: WholeGateway, world: World, *addresses: str, routes: object = None, **limits: object) -> None:
    """A model of each kind, for one tenant."""
    arm = world.arm(*addresses)
    snapshot = world.snapshot(*addresses)
    route = snapshot.routes[0]
    kinds = [
        route.model_copy(update={"model": name, "arms": (arm,), **more}) for name, more in (routes or ROUTES).items()
    ]
    filters = (NamedFilter(name="pii", policy=FilterPolicy(hold_seconds=0.1)),)
    acme = GatewayTenant(name="acme", **limits)
    gateway.publish(
        snapshot.model_copy(
            update={"tenants": (acme, *snapshot.tenants[1:]), "routes": tuple(kinds), "output_filters": filters}
        )
    )


def is_in_use(gateway: WholeGateway) -> bool:
    """Whether the gateway decides by what was published: it keeps it then."""
    kept = Path(str(gateway.settings["state_dir"])) / "snapshot.json"
    return kept.exists() and json.loads(kept.read_text()) == json.loads(
        gateway.control_plane.snapshot.model_dump_json()
    )


def request(key: str, model: str, *, is_stream: bool = True) -> bytes:
    """One chat as it stands on the wire."""
    body = json.dumps({"model": model, "stream": is_stream, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """A connection of bytes."""

    def __init__(self, gateway: WholeGateway, *, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", int(str(gateway.settings["listen_port"]))))
        self.got = b""

    def send(self, data: bytes) -> "Client":
        self.socket.sendall(data)
        return self

    def reads(self, wanted: bytes) -> bool:
        """Reads until something has come; false = the connection ended before."""
        while wanted not in self.got:
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                return False
            if not data:
                return False
            self.got += data
        return True

    def reads_to_the_end(self) -> bytes:
        """Everything until the connection ends, or a chunked body does."""
        while not self.got.endswith(b"\r\n0\r\n\r\n"):
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                break
            if not data:
                break
            self.got += data
        return self.got

    @property
    def status(self) -> int:
        self.reads(b"\r\n\r\n")
        return int(self.got.split(b" ", 2)[1]) if self.got else 0

    def error(self) -> dict[str, object]:
        """OpenAI's error of a whole answer."""
        assert self.reads(b"\r\n\r\n")
        head, _, body = self.got.partition(b"\r\n\r\n")
        (length,) = re.findall(rb"content-length: (\d+)", head.lower())
        while len(body) < int(length):
            body += self.socket.recv(65536)
        error = json.loads(body)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return error

    def leave(self, *, abruptly: bool = False) -> None:
        if abruptly:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def held(gateway: WholeGateway) -> float:
    """Requests that any part of the gateway still has something for."""
    return gateway.metric(HELD)


def ended(gateway: WholeGateway, end: str) -> float:
    """How many admitted requests ended so."""
    page = gateway.metrics_page()
    lines = [x for x in page if x.startswith("enginehouse_gateway_requests_ended_total") and f'end="{end}"' in x]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def files_of(pid: int) -> int:
    """Open file descriptors of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident_bytes(pid: int) -> int:
    """Memory of a process."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
