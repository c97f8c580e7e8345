"""The service of the ext_proc benchmark: a picker that hashes the prompt, and a filter that looks for a digit."""

import asyncio
import json
import sys
import zlib

import uvloop

from gateway.ext_proc import METHOD, ExternalProcessor
from gateway.ext_proc_contract import ChosenFilter, Pick, PickRequest, ResponseHead
from gateway.http2.grpc_server import grpc_server


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


async def serve(path: str, endpoint: str) -> None:
    """Run on a Unix socket."""
    loop = asyncio.get_running_loop()
    picking = ExternalProcessor(clock=loop.time, call_later=loop.call_later, picker=Picker(endpoint))
    filtering = ExternalProcessor(clock=loop.time, call_later=loop.call_later, chooser=Chooser())
    servers = []
    for name, processor in (("picking", picking), ("filtering", filtering)):
        server = grpc_server({METHOD: processor.open}, clock=loop.time, on_failure=lambda: None)
        servers.append(await loop.create_unix_server(server.connection, f"{path}/{name}"))
    print("ready", flush=True)
    await servers[0].serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], sys.argv[2]))
