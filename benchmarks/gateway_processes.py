"""What the gateway's benchmark runs: the engines beside the load on one core, and each contender on another."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fleet.api_keys import sha256_of
from fleet.output_policy import NO_FILTER
from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayKey, GatewayRoute, GatewaySnapshot, GatewayTenant
from gateway.envoy_types import Json, socket_address, typed
from gateway.store import SnapshotStore

HERE = Path(__file__).parent
ENVOY = Path(sys.executable).with_name("envoy")
START_SECONDS = 90.0
KEY = "eh-benchmark-0123456789"
GUARDED, UNGUARDED, FILTERED = "chat", "chat-direct", "chat-filtered"
_PLENTY = 1_000_000_000


class Contender:
    """Something that passes requests on to the engines; its processes share one core."""

    def __init__(self, port: int, processes: Sequence["subprocess.Popen[bytes]"]) -> None:
        self.port = port
        self._processes = processes

    @property
    def parts(self) -> "list[Contender]":
        """Each of its processes with its children, in the order in which they were started."""
        return [Contender(self.port, [process]) for process in self._processes]

    def cpu_seconds(self) -> float:
        """Of all its threads and children so far."""
        return sum(_cpu_seconds(pid) for pid in self._pids())

    def memory_mib(self) -> float:
        """The proportional set size of all its processes."""
        return sum(_pss_kib(pid) for pid in self._pids()) / 1024

    def _pids(self) -> set[int]:
        found = {process.pid for process in self._processes}
        parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found


class Cores:
    """Which core the load has and which the contenders; with one core alone they share it."""

    def __init__(self) -> None:
        self._all = sorted(os.sched_getaffinity(0))

    @property
    def load(self) -> str:
        """The first."""
        return str(self._all[0])

    @property
    def contender(self) -> str:
        """The last."""
        return str(self._all[-1])

    @property
    def both(self) -> str:
        """The two together."""
        return f"{self.load},{self.contender}"


@contextmanager
def started(core: str, *commands: Sequence[str], log: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes on one core, ended at the end, each with its children."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("ab") as out:
            for command in commands:
                pinned = ("taskset", "-c", core, *command)
                processes.append(subprocess.Popen(pinned, stdout=out, stderr=out, start_new_session=True))  # noqa: S603
        yield processes
    finally:
        for process in processes:
            _end(process)


@contextmanager
def engines(core: str, folder: Path, script: str = "gateway_engine.py") -> Iterator[tuple[int, int]]:
    """Two engines of one process."""
    first = free_port(and_next=True)
    command = (sys.executable, str(HERE / script), str(first))
    with started(core, command, log=folder / "engine.log"):
        await_port(first)
        yield first, first + 1


@contextmanager
def plain_envoy(core: str, folder: Path, ports: Sequence[int]) -> Iterator[Contender]:
    """Envoy that passes everything on."""
    port = free_port()
    file = folder / "plain.json"
    file.write_text(json.dumps(_plain(port, ports)))
    with started(core, envoy_command(file), log=folder / "plain.log") as processes:
        await_port(port)
        yield Contender(port, processes)


@contextmanager
def our_gateway(
    core: str, folder: Path, ports: Sequence[int], *, output_filter: str = NO_FILTER, workers: int = 1
) -> Iterator[Contender]:
    """The product with everything on, from a snapshot on its disk: one route with the guard, one without.

    ``output_filter``: of a third route, which has the guard too.
    """
    state = folder / "state"
    state.mkdir(parents=True)
    SnapshotStore(state / "snapshot.json").save(_snapshot(ports, output_filter))
    (folder / "token").write_text("none\n")
    port = free_port()
    settings = {
        "control_plane_url": f"http://127.0.0.1:{free_port()}",
        "token_file": str(folder / "token"),
        "socket_path": str(folder / "d.sock"),
        "state_dir": str(state),
        "listen_port": port,
        "admin_port": free_port(),
        "ready_file": str(folder / "ready.json"),
        "workers": workers,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    command = (sys.executable, "-m", "gateway", "--settings", str(folder / "settings.json"))
    with started(core, command, log=folder / "gateway.log") as decision:
        _await(lambda: (folder / "ready.json").exists(), "the gateway")
        with started(core, envoy_command(state / "envoy.json"), log=folder / "envoy.log") as envoy:
            await_port(port)
            yield Contender(port, [*decision, *envoy])


@contextmanager
def constant_decision(core: str, folder: Path, ports: Sequence[int]) -> Iterator[Contender]:
    """The product's Envoy with an answer that costs next to nothing in the place of its decision."""
    state = folder / "state"
    state.mkdir(parents=True)
    port = free_port()
    told = (str(folder), str(port), str(free_port()), *(f"127.0.0.1:{one}" for one in ports))
    command = (sys.executable, str(HERE / "gateway_constant.py"), *told)
    with started(core, command, log=folder / "constant.log") as decision:
        _await((state / "envoy.json").exists, "the constant decision")
        with started(core, envoy_command(state / "envoy.json"), log=folder / "envoy.log") as envoy:
            await_port(port)
            yield Contender(port, [*decision, *envoy])


def envoy_command(file: Path) -> Sequence[str]:
    """One Envoy of one thread."""
    return (str(ENVOY), "-c", str(file), "--concurrency", "1", "--disable-hot-restart", "-l", "error")


def free_port(*, and_next: bool = False) -> int:
    """A port of the loopback that nobody has."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            if not and_next:
                return port
            with suppress(OSError):
                two.bind(("127.0.0.1", port + 1))
                return port


def await_port(port: int) -> None:
    """Wait until something listens."""

    def listens() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    _await(listens, f"port {port}")


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not start within {START_SECONDS:g} s")
        time.sleep(0.05)


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _snapshot(ports: Sequence[int], output_filter: str) -> GatewaySnapshot:
    addresses = tuple(GatewayEndpoint(address=f"127.0.0.1:{port}") for port in ports)
    arm = GatewayArm(deployment="chat", identity="0" * 32, engine="vllm", endpoints=addresses)
    limits = {"tokens_per_minute": _PLENTY, "tokens_per_day": _PLENTY, "requests_per_minute": _PLENTY}
    tenant = GatewayTenant(name="acme", default_output_tokens=100, concurrent_requests=100_000, **limits)
    third = GatewayRoute(model=FILTERED, tenants=("acme",), arms=(arm,), output_filter=output_filter)
    filtered = () if output_filter == NO_FILTER else (third,)
    return GatewaySnapshot(
        tenants=(tenant,),
        keys=(GatewayKey(id="k", sha256=sha256_of(KEY), tenant="acme"),),
        routes=(
            GatewayRoute(model=GUARDED, tenants=("acme",), arms=(arm,)),
            GatewayRoute(model=UNGUARDED, tenants=("acme",), arms=(arm,), is_guarded=False),
            *filtered,
        ),
    )


def _plain(port: int, ports: Sequence[int]) -> Mapping[str, object]:
    hosts = [{"endpoint": {"address": socket_address("127.0.0.1", one)}} for one in ports]
    cluster = {"name": "e", "load_assignment": {"cluster_name": "e", "endpoints": [{"lb_endpoints": hosts}]}}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "e", "timeout": "0s"}}
    router = typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router")
    manager: Json = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="plain",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=[router],
    )
    chains = [{"filters": [manager]}]
    listener = {"name": "plain", "address": socket_address("127.0.0.1", port), "filter_chains": chains}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _cpu_seconds(pid: int) -> float:
    nanoseconds = 0
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def _pss_kib(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _parent(path: Path) -> int:
    with suppress(OSError):
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    return 0
