"""The endpoints that Envoy knows: an EDS file, and whether Envoy has read it."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import httpx2
from pydantic import BaseModel, ValidationError, ValidationInfo, field_validator

from gateway.atomic_file import READABLE, write_atomically
from gateway.envoy_clusters import ENGINES_CLUSTER
from gateway.envoy_types import Json, message, socket_address

RETIRING_SECONDS = 5.0
"""How long Envoy knows an endpoint that left the snapshot: requests that were just sent there must still find it."""
_POLL_SECONDS = 0.01
_TIMEOUT_SECONDS = 0.25


class EndpointFile:
    """The file that Envoy watches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: frozenset[str] | None = None
        self._retiring: dict[str, float] = {}

    def show(self, wanted: frozenset[str], now: float) -> None:
        """Let Envoy know the wanted endpoints, and those that were wanted until a moment ago; raises OSError."""
        for address in (self._written or frozenset()) - wanted:
            self._retiring.setdefault(address, now + RETIRING_SECONDS)
        self._retiring = {a: end for a, end in self._retiring.items() if end > now and a not in wanted}
        members = wanted | self._retiring.keys()
        if members != self._written:
            write_atomically(self._path, endpoints_json(members), mode=READABLE)
            self._written = members


class _SocketAddress(BaseModel):
    address: str
    port_value: int


class _Address(BaseModel):
    socket_address: _SocketAddress


class _Host(BaseModel):
    address: _Address


class _Cluster(BaseModel):
    name: str
    host_statuses: tuple[_Host, ...] = ()

    @field_validator("host_statuses", mode="before")
    @classmethod
    def _only_engines(cls, hosts: object, info: ValidationInfo) -> object:
        """Other clusters have addresses of other kinds."""
        return hosts if info.data.get("name") == ENGINES_CLUSTER else ()


class _Clusters(BaseModel):
    """The part of Envoy's ``/clusters?format=json`` that is read here."""

    cluster_statuses: tuple[_Cluster, ...] = ()


class EnvoyAdmin:
    """Envoy's admin port: which endpoints it has."""

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url

    async def wait_until_known(self, addresses: frozenset[str], deadline_seconds: float) -> bool:
        """Whether Envoy has the endpoints by then. An Envoy that does not run has nothing to wait for: true."""
        try:
            async with asyncio.timeout(deadline_seconds):
                known = await self._known()
                while not addresses <= known:
                    await asyncio.sleep(_POLL_SECONDS)
                    known = await self._known()
        except TimeoutError:
            return False
        except (httpx2.TransportError, ValidationError):
            return True
        return True

    async def _known(self) -> frozenset[str]:
        page = await self._client.get(f"{self._url}/clusters?format=json", timeout=_TIMEOUT_SECONDS)
        clusters = _Clusters.model_validate_json(page.content).cluster_statuses
        hosts = [host.address.socket_address for c in clusters if c.name == ENGINES_CLUSTER for host in c.host_statuses]
        return frozenset(join_address(host.address, host.port_value) for host in hosts)


def endpoints_json(addresses: Iterable[str]) -> bytes:
    """The EDS response with these endpoints; the same endpoints give the same bytes."""
    ordered = sorted(addresses)
    assignment = message(
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        cluster_name=ENGINES_CLUSTER,
        endpoints=[{"lb_endpoints": [{"endpoint": {"address": _address(address)}} for address in ordered]}],
    )
    version = hashlib.sha256("\n".join(ordered).encode()).hexdigest()[:16]
    return json.dumps({"version_info": version, "resources": [assignment]}, indent=1).encode()


def join_address(host: str, port: int) -> str:
    """``ip:port``, with brackets for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(address: str) -> Json:
    host, _, port = address.rpartition(":")
    return socket_address(host.strip("[]"), int(port))
