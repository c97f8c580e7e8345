"""Envoy itself accepts every configuration that is written for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.endpoints import endpoints_json
from gateway.envoy import EnvoyPlaces, bootstrap, bootstrap_json
from gateway.envoy_listener import INTERNAL_PREFIXES
from gateway.ext_authz import DESTINATION_HEADER

ENVOY = Path(sys.executable).with_name("envoy")


def places(folder, host="127.0.0.1"):
    return EnvoyPlaces(host, 10000, 10001, folder / "d.sock", folder / "endpoints" / "endpoints.json")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])  # noqa: S104
@pytest.mark.parametrize("addresses", [(), ("127.0.0.1:9001", "[::1]:9001")])
def test_envoy_accepts_the_configuration(tmp_path, host, addresses):
    configuration = places(tmp_path, host)
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
