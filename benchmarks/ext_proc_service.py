"""The services of the ext_proc benchmark: a picker that hashes the prompt, the real one, a filter that only passes."""

import asyncio
import hashlib
import json
import sys
import time
import zlib

import uvloop
from ext_proc_load import KEY

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayKey, GatewayRoute, GatewaySnapshot, GatewayTenant
from gateway.decision import DecisionCore
from gateway.endpoint_picker import CorePicker
from gateway.ext_proc import METHOD, ExternalProcessor
from gateway.ext_proc_contract import ChosenFilter, Pick, PickRequest, ResponseHead
from gateway.http2.grpc_server import grpc_server
from gateway.index import index_of
from gateway.telemetry import Telemetry


class Picker:
    """Reads the body and hashes it, as a decision by prefix would."""

    reads_answers = False

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def pick(self, asked: PickRequest, now: float) -> Pick:
        """The one engine."""
        document = json.loads(asked.request.body)
        zlib.crc32(document["messages"][0]["content"].encode())
        return Pick((self._endpoint,), (("x-gateway-tenant", "acme"),))

    def filter_of(self, pick: Pick, head: ResponseHead) -> None:
        """Nothing is filtered."""

    def responded(self, pick: Pick, status: int, served: str | None) -> None:
        """Nothing is counted."""

    def passed(self, pick: Pick, data: bytes) -> None:
        """Nothing is counted."""

    def ended(self, pick: Pick, *, is_whole: bool) -> None:
        """Nothing is counted."""


class PassingFilter:
    """What any filter costs at least."""

    has_ended = False

    def feed(self, data: bytes, now: float) -> bytes:
        """All of it."""
        return data

    def close(self, now: float) -> bytes:
        """Nothing is held."""
        return b""

    def flush_due(self, now: float) -> bytes:
        """Nothing is held."""
        return b""


class Chooser:
    """Filters everything."""

    def choose(self, head: ResponseHead) -> ChosenFilter:
        """A filter of its own for each response."""
        return ChosenFilter(PassingFilter())


def core_picker(endpoint: str) -> CorePicker:
    """The core with one model and a tenant whose tokens are counted."""
    core = DecisionCore(clock=time.time, stopwatch=time.perf_counter)
    arm = GatewayArm(deployment="m", identity="0" * 32, engine="vllm", endpoints=(GatewayEndpoint(address=endpoint),))
    snapshot = GatewaySnapshot(
        tenants=(GatewayTenant(name="acme", tokens_per_minute=10**9, default_output_tokens=100),),
        keys=(GatewayKey(id="k", sha256=hashlib.sha256(KEY.encode()).hexdigest(), tenant="acme"),),
        routes=(GatewayRoute(model="m", tenants=("acme",), arms=(arm,)),),
    )
    core.replace(index_of(snapshot), time.time())
    return CorePicker(
        core,
        now_unix_seconds=time.time,
        now_monotonic_seconds=time.perf_counter,
        decided=Telemetry().decided,
    )


async def serve(path: str, endpoint: str) -> None:
    """Run on a Unix socket."""
    loop = asyncio.get_running_loop()
    picking = ExternalProcessor(clock=loop.time, call_later=loop.call_later, picker=Picker(endpoint))
    filtering = ExternalProcessor(clock=loop.time, call_later=loop.call_later, chooser=Chooser())
    deciding = ExternalProcessor(clock=loop.time, call_later=loop.call_later, picker=core_picker(endpoint))
    servers = []
    for name, processor in (("picking", picking), ("filtering", filtering), ("deciding", deciding)):
        server = grpc_server({METHOD: processor.open}, clock=loop.time, on_failure=lambda: None)
        servers.append(await loop.create_unix_server(server.connection, f"{path}/{name}"))
    print("ready", flush=True)
    await servers[0].serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], sys.argv[2]))
