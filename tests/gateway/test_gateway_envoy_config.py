"""Envoy itself accepts every configuration that is written for it."""

import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway import envoy_listener
from gateway.endpoints import endpoints_json
from gateway.envoy import EnvoyPlaces, bootstrap, bootstrap_json
from gateway.envoy_listener import INTERNAL_PREFIXES
from gateway.ext_authz import DESTINATION_HEADER
from gateway.worker_sockets import WorkerSockets

ENVOY = Path(sys.executable).with_name("envoy")


def sockets(folder, number):
    names = ("d", "g", "l", "w")
    return WorkerSockets(*(folder / f"{name}{number}.sock" for name in names))


def places(folder, host="127.0.0.1", workers=1):
    return EnvoyPlaces(
        listen_host=host,
        listen_port=10000,
        admin_port=10001,
        workers=tuple(sockets(folder, number) for number in range(workers)),
        endpoints_path=folder / "endpoints" / "endpoints.json",
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])  # noqa: S104
@pytest.mark.parametrize(
    ("addresses", "workers"), [((), 1), (("127.0.0.1:9001", "[::1]:9001"), 1), (("127.0.0.1:9001",), 3)]
)
def test_envoy_accepts_the_configuration(tmp_path, host, addresses, workers):
    configuration = places(tmp_path, host, workers)
    configuration.endpoints_path.parent.mkdir()
    configuration.endpoints_path.write_bytes(endpoints_json(addresses))
    file = tmp_path / "envoy.json"
    file.write_bytes(bootstrap_json(configuration))
    command = [str(ENVOY), "--mode", "validate", "-c", str(file)]
    # A library loaded before Envoy's own allocator (libfaketime) hangs it.
    visible = {name: word for name, word in os.environ.items() if name != "LD_PRELOAD"}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=visible)
    assert answer.returncode == 0, answer.stderr
    assert "eprecated" not in answer.stderr


@pytest.fixture
def impatient_envoy(tmp_path, monkeypatch):
    """A real Envoy whose limits are short, without a decision service; gives its public port."""
    for name, value in {"IDLE_SECONDS": 0.5, "HEAD_SECONDS": 0.5, "REQUEST_SECONDS": 1.0}.items():
        monkeypatch.setattr(envoy_listener, name, value)
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        public, admin = one.getsockname()[1], other.getsockname()[1]
    chosen = dataclasses.replace(places(tmp_path), listen_port=public, admin_port=admin)
    chosen.endpoints_path.parent.mkdir()
    chosen.endpoints_path.write_bytes(endpoints_json(()))
    (tmp_path / "envoy.json").write_bytes(bootstrap_json(chosen))
    command = [
        str(ENVOY),
        "-c",
        str(tmp_path / "envoy.json"),
        "--disable-hot-restart",
        "--concurrency",
        "1",
        "-l",
        "off",
    ]
    visible = {name: word for name, word in os.environ.items() if name != "LD_PRELOAD"}
    process = subprocess.Popen(command, env=visible)
    yield public
    process.kill()
    process.wait()


def connected(port):
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except OSError:
            assert time.monotonic() < deadline, "Envoy does not listen"
            time.sleep(0.05)


CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("start", "piece", "status"),
    [
        (b"", b"", b""),
        (CHAT + b"X: ", b"x", b"HTTP/1.1 408"),
        (CHAT + b"Content-Length: 100000\r\n\r\n", b"x", b"HTTP/1.1 408"),
    ],
    ids=["silent", "head", "body"],
)
def test_envoy_ends_clients_that_never_finish(impatient_envoy, start, piece, status):
    with connected(impatient_envoy) as client:
        client.sendall(start)
        client.settimeout(0.05)
        answer, deadline = b"", time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                if not (more := client.recv(4096)):
                    break
                answer += more
            if not answer:
                with contextlib.suppress(OSError):
                    client.sendall(piece)
        assert time.monotonic() < deadline
        assert answer[: len(status)] == status
        assert bool(answer) == bool(status)


def test_the_configuration_fails_closed(tmp_path):
    text = json.dumps(bootstrap(places(tmp_path)))
    assert '"failure_mode_allow": false' in text
    assert '"fallback_policy": "NO_FALLBACK"' in text
    assert '"127.0.0.1", "port_value": 10001' in text  # the admin port is never public


def test_the_destination_header_of_a_client_is_removed(tmp_path):
    assert any(DESTINATION_HEADER.startswith(prefix) for prefix in INTERNAL_PREFIXES)


def test_the_same_endpoints_give_the_same_bytes():
    assert endpoints_json(["127.0.0.1:2", "127.0.0.1:1"]) == endpoints_json(("127.0.0.1:1", "127.0.0.1:2"))
    assert endpoints_json(["127.0.0.1:1"]) != endpoints_json(["127.0.0.1:2"])
