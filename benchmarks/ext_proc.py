"""What external processing costs: CPU of Envoy and the service for a request and for a chunk, beside plain Envoy.

Everything of the gateway runs on one core, the engine and the clients on another if there is one. The rows are run in
turns, several times, and the least CPU of each is taken: what else runs on the machine only adds.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.envoy_types import Json, message, socket_address, typed

ROUNDS = 3
SECONDS = 4.0
CONNECTIONS = 32
STREAMS = 64
TRIAL = {"picker": (2.97, None), "picker, all of GAIE": (3.66, 2.03), "filter": (None, 2.03)}
"""CPU for a request and for a chunk over plain Envoy's, in the trial that chose own framing, on a quiet machine: 389,
479 and 75 us where plain Envoy took 131 and 37."""

_HERE = Path(__file__).parent
_SERVICES = ("picking", "filtering", "deciding")
_EXT_PROC = "envoy.extensions.filters.http.ext_proc.v3"
_SKIP = dict.fromkeys(
    ("request_header_mode", "response_header_mode", "request_trailer_mode", "response_trailer_mode"), "SKIP"
)
_ASK = {"request_header_mode": "SEND", "request_trailer_mode": "SEND", "request_body_mode": "FULL_DUPLEX_STREAMED"}
_TELL = {"response_header_mode": "SEND", "response_trailer_mode": "SEND", "response_body_mode": "FULL_DUPLEX_STREAMED"}
ROWS = {
    "plain Envoy": None,
    "picker": ("picking", _SKIP | _ASK),
    "picker, all of GAIE": ("picking", _ASK | _TELL),
    "the gateway's decisions, all of GAIE": ("deciding", _ASK | _TELL),
    "filter": ("filtering", _SKIP | _TELL),
}


def main() -> int:
    """Print the table as JSON lines."""
    with tempfile.TemporaryDirectory() as folder, _gateway(Path(folder)) as (ports, pids):
        least: dict[tuple[str, str], list[float]] = {}
        for _ in range(ROUNDS):
            for row, port in zip(ROWS, ports, strict=True):
                for kind in ("requests", "streams"):
                    cost = _measured(kind, port, pids)
                    least[row, kind] = min(cost, least.get((row, kind), cost), key=sum)
    for row in ROWS:
        print(json.dumps(_figures(row, least)))
    return 0


def _figures(row: str, least: Mapping[tuple[str, str], Sequence[float]]) -> Mapping[str, object]:
    request, chunk = least[row, "requests"], least[row, "streams"]
    plain_request, plain_chunk = sum(least["plain Envoy", "requests"]), sum(least["plain Envoy", "streams"])
    request_trial, chunk_trial = TRIAL.get(row, (None, None))
    return {
        "row": row,
        "cpu_us_per_request": round(sum(request), 1),
        "of_it_service": round(request[1], 1),
        "request_over_plain": round(sum(request) / plain_request, 2),
        "request_over_plain_in_trial": request_trial,
        "cpu_us_per_chunk": round(sum(chunk), 1),
        "of_it_service_per_chunk": round(chunk[1], 1),
        "chunk_over_plain": round(sum(chunk) / plain_chunk, 2),
        "chunk_over_plain_in_trial": chunk_trial,
        "added_us_per_chunk": round(sum(chunk) - plain_chunk, 1),
    }


def _measured(kind: str, port: int, pids: Sequence[int]) -> list[float]:
    """CPU us for one request or one chunk, of each process."""
    connections = CONNECTIONS if kind == "requests" else STREAMS
    before = [_cpu_seconds(pid) for pid in pids]
    command = (sys.executable, str(_HERE / "ext_proc_load.py"), kind, str(port), str(connections), str(SECONDS))
    done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
    spent = [_cpu_seconds(pid) - then for pid, then in zip(pids, before, strict=True)]
    if done["failed"] or not done["requests"]:
        raise SystemExit(f"{done['failed']} of {done['requests']} requests failed")
    count = done["requests" if kind == "requests" else "chunks"]
    return [seconds * 1e6 / count for seconds in spent]


def _cpu_seconds(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


@contextmanager
def _gateway(folder: Path) -> Iterator[tuple[list[int], list[int]]]:
    """The ports of the rows, and the processes that are measured."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    started: list[subprocess.Popen[str]] = []
    try:
        engine = _started(started, sys.executable, str(_HERE / "ext_proc_load.py"), "engine")
        engine_port = int(_line(engine))
        os.sched_setaffinity(0, cores[-1:])
        endpoint = f"127.0.0.1:{engine_port}"
        service = _started(started, sys.executable, str(_HERE / "ext_proc_service.py"), str(folder), endpoint)
        _line(service)
        ports = [_free_port() for _ in ROWS]
        file = folder / "envoy.json"
        file.write_text(json.dumps(_bootstrap(folder, ports, engine_port)))
        program = str(Path(sys.executable).with_name("envoy"))
        options = ("--concurrency", "1", "--disable-hot-restart", "-l", "error")
        envoy = _started(started, program, "-c", str(file), *options)
        os.sched_setaffinity(0, cores[:1])
        _await_port(ports[-1])
        yield ports, [envoy.pid, service.pid]
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _started(started: list[subprocess.Popen[str]], *command: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    started.append(process)
    return process


def _line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline() if process.stdout is not None else ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise SystemExit("Envoy did not start")


def _bootstrap(folder: Path, ports: Sequence[int], engine_port: int) -> Json:
    clusters = [_cluster(name, {"pipe": {"path": str(folder / name)}}, "http2") for name in _SERVICES]
    clusters.append(_cluster("engine", socket_address("127.0.0.1", engine_port), "http"))
    listeners = [_listener(port, row) for port, row in zip(ports, ROWS.values(), strict=True)]
    return {"static_resources": {"clusters": clusters, "listeners": listeners}}


def _cluster(name: str, address: Json, protocol: str) -> Json:
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    explicit: Json = {f"{protocol}_protocol_options": {}}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    return {
        "name": name,
        "type": "STATIC",
        "typed_extension_protocol_options": {options: message(options, explicit_http_config=explicit)},
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
    }


def _listener(port: int, row: tuple[str, Json] | None) -> Json:
    filters = [typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router")]
    if row is not None:
        service = {"envoy_grpc": {"cluster_name": row[0]}}
        config = typed(
            "envoy.filters.http.ext_proc",
            f"{_EXT_PROC}.ExternalProcessor",
            grpc_service=service,
            processing_mode=row[1],
            message_timeout="10s",
        )
        filters.insert(0, config)
    route = {"match": {"prefix": "/"}, "route": {"cluster": "engine", "timeout": "0s"}}
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=str(port),
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=filters,
    )
    return {
        "name": str(port),
        "address": socket_address("127.0.0.1", port),
        "filter_chains": [{"filters": [manager]}],
    }


if __name__ == "__main__":
    sys.exit(main())
