"""The tenants, keys and models of the gateway's tests, and a whole gateway with real Envoy and fake engines."""

import asyncio
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayKey, GatewayRoute, GatewaySnapshot, GatewayTenant
from tests.free_ports import free_port

DEADLINE_SECONDS = 10.0
START_SECONDS = 60.0
"""A process that starts imports for seconds where many start at once."""
ENVOY = Path(sys.executable).with_name("envoy")


def without_preload() -> dict[str, str]:
    """The environment for Envoy, which hangs with a library loaded before its own allocator (libfaketime)."""
    return {name: word for name, word in os.environ.items() if name != "LD_PRELOAD"}


@dataclass(frozen=True)
class World:
    """Two tenants with a model each and one that both may use."""

    now: float = 1_900_000_000.0
    acme_key: str = "eh-acme-0123456789"
    globex_key: str = "eh-globex-0123456789"
    expired_key: str = "eh-old-0123456789"

    def snapshot(
        self, *endpoints: str, draining: tuple[str, ...] = (), requests_per_minute: int | None = None, **route: object
    ) -> GatewaySnapshot:
        arm = self.arm(*endpoints, draining=draining)
        return GatewaySnapshot(
            tenants=(
                GatewayTenant(name="acme", requests_per_minute=requests_per_minute),
                GatewayTenant(name="globex"),
            ),
            keys=(
                self.key("k1", self.acme_key, "acme"),
                self.key("k2", self.globex_key, "globex"),
                self.key("k3", self.expired_key, "acme", expires=int(self.now)),
            ),
            routes=(
                GatewayRoute(model="acme-chat", tenants=("acme",), arms=(arm,), **route),
                GatewayRoute(model="globex-chat", tenants=("globex",), arms=(arm,)),
                GatewayRoute(model="both-chat", tenants=("acme", "globex"), arms=(arm,)),
            ),
        )

    def arm(self, *endpoints: str, draining: tuple[str, ...] = (), name: str = "chat", weight: float = 1) -> GatewayArm:
        stated = [GatewayEndpoint(address=a) for a in endpoints or ("127.0.0.1:9001", "127.0.0.1:9002")]
        stated += [GatewayEndpoint(address=a, is_draining=True) for a in draining]
        identity = hashlib.sha256(name.encode()).hexdigest()[:32]
        return GatewayArm(deployment=name, identity=identity, engine="vllm", weight=weight, endpoints=tuple(stated))

    @staticmethod
    def key(name: str, key: str, tenant: str, expires: int | None = None) -> GatewayKey:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return GatewayKey(id=name, sha256=digest, tenant=tenant, expires_unix_seconds=expires)


@pytest.fixture(scope="session")
def world() -> World:
    return World()


def wait_for(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Poll a real condition until it holds; an error names what never came."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        threading.Event().wait(0.01)


@pytest.fixture(scope="session")
def until() -> Callable[..., None]:
    return wait_for


@dataclass
class FakeEngine:
    """Answers each request with its name, or with a stream that the test lets go on."""

    name: str
    port: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    aborted: int = 0
    finished: int = 0
    go_on: threading.Event = field(default_factory=threading.Event)
    breaks_off: bool = False
    first: bytes = b'data: {"delta":"\xc3\xa9"}\n\n: keep-alive\n\n'
    last: bytes = b'data: {"delta":"x"}\r\n\r\ndata: [DONE]\n\n'

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            head, body = request
            if head.startswith("GET "):  # it has no metrics
                await answer(writer, 404, b"")
                continue
            self.heads.append(head)
            self.bodies.append(body)
            if json.loads(body).get("stream"):
                await self._stream(reader, writer)
                return
            await answer(writer, 200, self.name.encode())

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + chunk(self.first))
        await writer.drain()
        gone = asyncio.ensure_future(reader.read(1))
        while not self.go_on.is_set() and not gone.done():  # noqa: ASYNC110 - the event is of another thread
            await asyncio.sleep(0.005)
        if gone.done():
            self.aborted += 1
            return
        gone.cancel()
        if self.breaks_off:
            writer.transport.abort()
            return
        writer.write(chunk(self.last) + b"0\r\n\r\n")
        await writer.drain()
        self.finished += 1


@dataclass
class FakeControlPlane:
    """Serves one snapshot with ETag and long-poll, and takes usage records."""

    snapshot: GatewaySnapshot
    port: int = 0
    heads: list[str] = field(default_factory=list)
    usage: list[dict[str, object]] = field(default_factory=list)
    """Records in the order in which they came, again and again where they did."""
    usage_status: int = 200

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            self.heads.append(request[0])
            if request[0].startswith("POST /v1/gateway/usage "):
                await self._take_usage(writer, json.loads(request[1])["records"])
                continue
            known = next((x[15:] for x in request[0].split("\r\n") if x.lower().startswith("if-none-match: ")), None)
            end = time.monotonic() + 5
            while self.snapshot.etag == known and time.monotonic() < end:  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)
            if self.snapshot.etag == known:
                await answer(writer, 304, b"")
            else:
                await answer(writer, 200, self.snapshot.model_dump_json().encode(), f"etag: {self.snapshot.etag}\r\n")

    async def _take_usage(self, writer: asyncio.StreamWriter, records: list[dict[str, object]]) -> None:
        if self.usage_status != 200:
            await answer(writer, self.usage_status, b"")
            return
        known = {record["id"] for record in self.usage}
        new = sum(record["id"] not in known for record in records)
        self.usage += records
        receipt = {"stored": new, "duplicates": len(records) - new, "too_old": 0, "too_new": 0}
        await answer(writer, 200, json.dumps(receipt).encode())


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        sizes = [int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length:")]
        return head, await reader.readexactly(sizes[0] if sizes else 0)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def answer(writer: asyncio.StreamWriter, status: int, body: bytes, more: str = "") -> None:
    writer.write(f"HTTP/1.1 {status} X\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class FakeServers:
    """Fake engines and a fake control plane on an event loop of their own, in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread.start()

    def start(self, server: FakeEngine | FakeControlPlane) -> None:
        server.port = self._call(self._listen(server))

    def stop(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_SECONDS)
        self._loop.close()

    def _call(self, what: Awaitable[int]) -> int:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(DEADLINE_SECONDS)

    async def _listen(self, server: FakeEngine | FakeControlPlane) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            self._tasks.add(task)
            try:
                await server.serve(reader, writer)
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                self._tasks.discard(task)
                writer.close()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=getattr(server, "tls", None))
        self._servers.append(listener)
        return listener.sockets[0].getsockname()[1]

    async def _end(self) -> int:
        for listener in self._servers:
            listener.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await asyncio.sleep(0)
        return 0


@dataclass
class WholeGateway:
    """The decision service and Envoy as processes, between a fake control plane and two fake engines."""

    folder: Path
    servers: FakeServers
    control_plane: FakeControlPlane
    one: FakeEngine
    two: FakeEngine
    settings: dict[str, object]
    decision: subprocess.Popen[bytes] | None = None
    envoy: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings['listen_port']}"

    @property
    def ready(self) -> dict[str, object]:
        return json.loads(Path(str(self.settings["ready_file"])).read_text())

    @property
    def gateway_log(self) -> str:
        return (self.folder / "gateway.log").read_text()

    @property
    def access_log(self) -> list[dict[str, object]]:
        lines = (self.folder / "access.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def start_decision(self, seconds: float = START_SECONDS) -> None:
        file = self.folder / "settings.json"
        file.write_text(json.dumps(self.settings))
        with (self.folder / "gateway.log").open("ab") as log:
            command = [sys.executable, "-m", "gateway", "--settings", str(file)]
            self.decision = subprocess.Popen(command, stderr=log, stdout=log)
        wait_for(Path(str(self.settings["ready_file"])).exists, "the ready file", seconds)

    def start_envoy(self) -> None:
        configuration = str(self.ready["envoy_config"])
        with (self.folder / "access.log").open("ab") as log, (self.folder / "envoy.log").open("ab") as err:
            command = [str(ENVOY), "-c", configuration, "--concurrency", "1", "--disable-hot-restart", "-l", "warn"]
            command += ["--file-flush-interval-msec", "50"]
            self.envoy = subprocess.Popen(command, stdout=log, stderr=err, env=without_preload())
        wait_for(self._serves, "a model list through Envoy", START_SECONDS)

    def publish(self, snapshot: GatewaySnapshot) -> None:
        self.control_plane.snapshot = snapshot

    def uses(self, snapshot: GatewaySnapshot) -> bool:
        """Whether it is the last one that came into use."""
        taken = [line for line in self.gateway_log.splitlines() if "snapshot.in_use" in line]
        return bool(taken) and json.dumps(snapshot.etag) in taken[-1]

    def metrics_page(self) -> list[str]:
        return httpx2.get(str(self.ready["metrics_url"])).text.splitlines()

    def metric(self, name: str) -> float:
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.metrics_page() if line.startswith(name))

    def _serves(self) -> bool:
        key = {"authorization": f"Bearer {World().acme_key}"}
        try:
            return httpx2.get(f"{self.url}/v1/models", headers=key).status_code == 200
        except httpx2.TransportError:
            return False

    def end(self, process: subprocess.Popen[bytes] | None, number: int = signal.SIGTERM) -> int:
        if process is None:
            return 0
        if process.poll() is None:
            os.kill(process.pid, number)
        return process.wait(DEADLINE_SECONDS)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, world: World) -> Iterator[WholeGateway]:
    """One whole gateway for the tests of a module that leave it running."""
    made = make_gateway(tmp_path_factory.mktemp("gateway"), world)
    try:
        made.start_decision()
        made.start_envoy()
        yield made
    finally:
        end_gateway(made)


@pytest.fixture
def gateway_maker(tmp_path: Path, world: World) -> Iterator[Callable[[], WholeGateway]]:
    """Whole gateways that a test starts by itself, changes and kills."""
    made: list[WholeGateway] = []

    def make() -> WholeGateway:
        folder = tmp_path / f"g{len(made)}"
        folder.mkdir()
        made.append(make_gateway(folder, world))
        return made[-1]

    yield make
    for gateway in made:
        end_gateway(gateway)


def make_gateway(folder: Path, world: World) -> WholeGateway:
    servers, one, two = FakeServers(), FakeEngine("one"), FakeEngine("two")
    for engine in (one, two):
        servers.start(engine)
    control_plane = FakeControlPlane(world.snapshot(one.address))
    servers.start(control_plane)
    (folder / "token").write_text("reader-token\n")
    settings: dict[str, object] = {
        "control_plane_url": f"http://127.0.0.1:{control_plane.port}",
        "token_file": str(folder / "token"),
        "socket_path": str(folder / "d.sock"),
        "state_dir": str(folder / "state"),
        "listen_host": "127.0.0.1",
        "listen_port": free_port(),
        "admin_port": free_port(),
        "metrics_port": 0,
        "ready_file": str(folder / "ready.json"),
    }
    return WholeGateway(folder, servers, control_plane, one, two, settings)


def end_gateway(gateway: WholeGateway) -> None:
    gateway.end(gateway.envoy)
    gateway.end(gateway.decision)
    gateway.servers.stop()


@pytest.fixture
def left_by_cycles() -> Iterator[Callable[[], set[str]]]:
    """The names of the types that only the collector of cycles would free."""

    def found() -> set[str]:
        gc.collect()
        names = {type(one).__name__ for one in gc.garbage}
        gc.garbage.clear()
        return names

    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield found
    gc.set_debug(0)
    gc.garbage.clear()
