"""Envoy as gateways of the Gateway API Inference Extension configure it, before a gateway that is its endpoint picker.

``bootstrap`` holds what such a gateway says of an InferencePool: external processing that streams both bodies full
duplex, the endpoint by header and metadata, the subset as metadata, the served endpoint back, and a health check.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from gateway.envoy_types import Json, message, socket_address, typed
from tests.free_ports import free_port
from tests.gateway.conftest import DEADLINE_SECONDS, ENVOY, wait_for, without_preload

_HTTP = "envoy.extensions.filters.http"
_POLICIES = "envoy.extensions.load_balancing_policies"
_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TLS = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
DESTINATION = "x-gateway-destination-endpoint"
SUBSET = """
function envoy_on_request(handle)
  local asked = handle:headers():get("x-test-subset")
  if asked then
    local metadata = handle:streamInfo():dynamicMetadata()
    metadata:set("envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset", asked)
  end
end
"""
"""In the place of whatever the gateway chooses endpoints by."""
MODES = {
    "request_header_mode": "SEND",
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_header_mode": "SEND",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "response_trailer_mode": "SEND",
}


@dataclass
class Proxy:
    """A running Envoy."""

    folder: Path
    port: int
    admin_port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sees_a_picker(self) -> bool:
        """Whether its health check says that the endpoint picker serves."""
        text = httpx2.get(f"http://127.0.0.1:{self.admin_port}/clusters").text
        flags = [line.rsplit("::", 1)[1] for line in text.splitlines() if "picker::" in line and "health_flags" in line]
        return flags == ["healthy"]

    @property
    def is_turned_away(self) -> bool:
        """Whether its health check was answered with a no, or by nobody."""
        text = httpx2.get(f"http://127.0.0.1:{self.admin_port}/clusters").text
        return any("picker::" in line and line.endswith("::/failed_active_hc") for line in text.splitlines())

    @property
    def is_up(self) -> bool:
        try:
            return httpx2.get(f"http://127.0.0.1:{self.admin_port}/ready").status_code == 200
        except httpx2.TransportError:
            return False


@contextmanager
def proxy(folder: Path, picker_port: int, engines: Sequence[str], *, is_encrypted: bool = False) -> Iterator[Proxy]:
    """Envoy before a picker and the engines of a pool."""
    folder.mkdir(exist_ok=True)
    port, admin_port = free_port(), free_port()
    file = folder / "gaie.json"
    file.write_text(json.dumps(bootstrap(port, admin_port, picker_port, engines, is_encrypted=is_encrypted)))
    command = [str(ENVOY), "-c", str(file), "--concurrency", "1", "--disable-hot-restart", "-l", "warn"]
    with (folder / "gaie.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=without_preload())
    made = Proxy(folder, port, admin_port, process)
    try:
        wait_for(lambda: made.is_up or process.poll() is not None, "Envoy of the other gateway")
        assert process.poll() is None, (folder / "gaie.log").read_text()[-2000:]
        yield made
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        process.wait(DEADLINE_SECONDS)


def bootstrap(
    port: int, admin_port: int, picker_port: int, engines: Sequence[str], *, is_encrypted: bool = False
) -> Json:
    """The whole configuration."""
    addresses = [address.rpartition(":") for address in engines]
    pool = _cluster("pool", [socket_address(host, int(number)) for host, _, number in addresses])
    pool |= {"load_balancing_policy": _picked_host()}
    return {
        "admin": {"address": socket_address("127.0.0.1", admin_port)},
        "static_resources": {
            "clusters": [_picker(picker_port, is_encrypted=is_encrypted), pool],
            "listeners": [_listener(port)],
        },
    }


def _cluster(name: str, addresses: Sequence[Json], protocol: str = "http") -> Json:
    explicit: Json = {f"{protocol}_protocol_options": {}}
    endpoints = [{"endpoint": {"address": address}} for address in addresses]
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {_OPTIONS: message(_OPTIONS, explicit_http_config=explicit)},
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _picker(port: int, *, is_encrypted: bool) -> Json:
    cluster = _cluster("picker", [socket_address("127.0.0.1", port)], "http2")
    check = {
        "timeout": "1s",
        "interval": "0.1s",
        "no_traffic_interval": "0.1s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "grpc_health_check": {"service_name": SERVICE},
    }
    cluster |= {"health_checks": [check], "common_lb_config": {"healthy_panic_threshold": {"value": 0}}}
    if is_encrypted:  # as gateways do that trust what runs in the cluster: without a look at the name
        cluster["transport_socket"] = typed("envoy.transport_sockets.tls", _TLS)
    return cluster


def _picked_host() -> Json:
    turns = typed("envoy.load_balancing_policies.round_robin", f"{_POLICIES}.round_robin.v3.RoundRobin")
    nothing = typed(
        "envoy.load_balancing_policies.subset",
        f"{_POLICIES}.subset.v3.Subset",
        fallback_policy="NO_FALLBACK",
        subset_selectors=[{"keys": ["never"]}],
        subset_lb_policy={"policies": [{"typed_extension_config": turns}]},
    )
    sources = [{"header": DESTINATION}, {"metadata": {"key": "envoy.lb", "path": [{"key": DESTINATION}]}}]
    override = typed(
        "envoy.load_balancing_policies.override_host",
        f"{_POLICIES}.override_host.v3.OverrideHost",
        override_host_sources=sources,
        selected_host_key={"key": "envoy.lb", "path": [{"key": f"{DESTINATION}-served"}]},
        fallback_policy={"policies": [{"typed_extension_config": nothing}]},
    )
    return {"policies": [{"typed_extension_config": override}]}


def _listener(port: int) -> Json:
    namespaces = ["envoy.lb", "envoy.lb.subset_hint"]
    picks = typed(
        "envoy.filters.http.ext_proc",
        f"{_HTTP}.ext_proc.v3.ExternalProcessor",
        grpc_service={"envoy_grpc": {"cluster_name": "picker"}},
        processing_mode=MODES,
        message_timeout="1000s",
        failure_mode_allow=False,
        status_on_error={"code": "ServiceUnavailable"},
        metadata_options={
            "forwarding_namespaces": {"untyped": namespaces},
            "receiving_namespaces": {"untyped": ["envoy.lb"]},
        },
    )
    hint = typed("envoy.filters.http.lua", f"{_HTTP}.lua.v3.Lua", default_source_code={"inline_string": SUBSET})
    retries = {"retry_on": "connect-failure", "num_retries": 2}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "pool", "timeout": "0s", "retry_policy": retries}}
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="gaie",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=[hint, picks, typed("envoy.filters.http.router", f"{_HTTP}.router.v3.Router")],
    )
    return {
        "name": "gaie",
        "address": socket_address("127.0.0.1", port),
        "filter_chains": [{"filters": [manager]}],
    }
