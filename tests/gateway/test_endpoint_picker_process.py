"""The endpoint picker as a process: when it says that it serves, how it ends, and settings that can't be."""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx2
import pytest

from gateway.decision import DecisionCore
from gateway.endpoint_picker import CorePicker
from gateway.errors import GatewayError
from gateway.picker_service import PickerService
from gateway.settings import PickerSettings, read_settings
from tests.free_ports import free_port
from tests.gateway.certificates import certificate
from tests.gateway.conftest import FakeControlPlane, answer, end_gateway, make_gateway, read_request
from tests.gateway.gaie import proxy
from tests.gateway.simulated import MODEL, simulated_engine

CHAT = "/v1/chat/completions"


@dataclass
class LateControlPlane(FakeControlPlane):
    """Has no snapshot until a test says so."""

    is_open: bool = False
    turned_away: list[str] = field(default_factory=list)

    async def serve(self, reader, writer):
        while not self.is_open and (request := await read_request(reader)) is not None:
            self.turned_away.append(request[0])
            await answer(writer, 503, b"")
        if self.is_open:
            await super().serve(reader, writer)


@contextmanager
def late(folder, world, engine, **settings) -> Iterator[tuple]:
    """A gateway whose control plane has nothing yet."""
    made = make_gateway(folder, world)
    plane = LateControlPlane(world.snapshot(engine.address))
    made.servers.start(plane)
    picker = {"port": free_port()}
    made.settings |= {"control_plane_url": f"http://127.0.0.1:{plane.port}", "endpoint_picker": picker, **settings}
    try:
        made.start_decision()
        yield made, plane, picker["port"]
    finally:
        end_gateway(made)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_serves_with_a_snapshot_and_until_it_is_told_to_stop(tmp_path, world, until, workers):
    with (
        simulated_engine("--decode-seconds", "0.02") as engine,
        late(tmp_path, world, engine, workers=workers, drain_seconds=20) as (gateway, plane, port),
        proxy(tmp_path / "proxy", port, (engine.address,)) as envoy,
    ):
        headers = {"authorization": f"Bearer {world.acme_key}"}
        chat = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "ignore_eos": True}
        until(lambda: plane.turned_away, "a question for a snapshot")
        until(lambda: envoy.is_turned_away, "a health check that says no")
        assert httpx2.post(f"{envoy.url}{CHAT}", json=chat, headers=headers).status_code == 503
        plane.is_open = True
        until(lambda: envoy.sees_a_picker, "a health check that says yes")
        asked = chat | {"stream": True, "max_tokens": 150}
        with httpx2.stream("POST", f"{envoy.url}{CHAT}", json=asked, headers=headers, timeout=30) as stream:
            pieces = stream.iter_bytes()
            first = next(pieces)
            os.kill(gateway.decision.pid, signal.SIGTERM)
            until(lambda: envoy.is_turned_away, "a health check that says no")
            body = first + b"".join(pieces)
        assert body.endswith(b"data: [DONE]\n\n")
        assert body.count(b'"content"') > 100
        assert gateway.decision.wait(10) == 0


def test_a_port_that_is_taken_ends_the_gateway_with_its_name(tmp_path, world, until):
    made = make_gateway(tmp_path, world)
    try:
        made.settings |= {"endpoint_picker": {"port": made.control_plane.port}}
        file = tmp_path / "settings.json"
        file.write_text(json.dumps(made.settings))
        command = [sys.executable, "-m", "gateway", "--settings", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1
        assert f"cannot listen on 127.0.0.1:{made.control_plane.port} for the endpoint picker" in done.stderr
        assert not (tmp_path / "d.sock").exists()
    finally:
        end_gateway(made)


async def test_a_renewed_certificate_is_used_and_half_a_renewal_is_not(tmp_path):
    file = certificate(tmp_path, "picker")
    settings = PickerSettings(port=free_port(), tls_cert_file=file, tls_key_file=file)
    told = {"now_unix_seconds": time.time, "now_monotonic_seconds": time.monotonic, "decided": lambda *_: None}
    service = PickerService(settings, CorePicker(DecisionCore(), **told), lambda: True)
    await service.start(lambda: False, shares_port=False)
    try:
        first = await shown(settings.port)
        file.write_bytes(b"half of a")
        service.look()
        assert await shown(settings.port) == first
        certificate(tmp_path, "picker")
        service.look()
        assert await shown(settings.port) != first
    finally:
        await service.drain(1)


async def shown(port):
    """The certificate of a new connection, which is HTTP/2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found = writer.get_extra_info("ssl_object")
    assert found.selected_alpn_protocol() == "h2"
    writer.close()
    return found.getpeercert(binary_form=True)


async def test_a_certificate_that_can_not_be_read_is_named(tmp_path):
    settings = PickerSettings(port=free_port(), tls_cert_file=tmp_path / "none.pem", tls_key_file=tmp_path / "none.key")
    told = {"now_unix_seconds": time.time, "now_monotonic_seconds": time.monotonic, "decided": lambda *_: None}
    service = PickerService(settings, CorePicker(DecisionCore(), **told), lambda: True)
    with pytest.raises(GatewayError, match=r"none\.pem and .*none\.key: No such file"):
        await service.start(lambda: False, shares_port=False)


@pytest.mark.parametrize(
    ("picker", "message"),
    [
        ({"port": 9002, "tls_cert_file": "cert.pem"}, "tls_cert_file and tls_key_file belong together"),
        ({"port": 0}, "endpoint_picker.port"),
        ({"host": "localhost"}, "'localhost' is no IP address"),
    ],
)
def test_settings_that_can_not_be_are_named(tmp_path, world, picker, message):
    file = tmp_path / "settings.json"
    stated = {"control_plane_url": "http://127.0.0.1:1", "token_file": "t", "socket_path": "s", "state_dir": "d"}
    stated |= {"listen_port": 1, "admin_port": 2, "ready_file": "r", "endpoint_picker": picker}
    file.write_text(json.dumps(stated))
    with pytest.raises(GatewayError, match=message):
        read_settings(file)
