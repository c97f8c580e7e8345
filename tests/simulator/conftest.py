"""Simulated engines for tests: served in the test's own process over loopback, and clients for them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import httpx2
import pytest
import pytest_asyncio

from simulator.app import EngineApp
from simulator.command_line import read_command_line
from simulator.server import open_socket, serve_on, start_listening

VLLM = "vllm serve model/tiny --served-model-name tiny --max-model-len 4096"


@dataclass(slots=True)
class Engine:
    client: httpx2.AsyncClient
    port: int
    app: EngineApp
    stop: asyncio.Event

    async def chat(self, content="Say hello to the fleet.", **fields):
        body = {"model": "tiny", "messages": [{"role": "user", "content": content}], **fields}
        return await self.client.post("/v1/chat/completions", json=body)

    async def events(self, path, body):
        """Return status and the raw events of a stream."""
        async with self.client.stream("POST", path, json=body) as response:
            text = (await response.aread()).decode()
        return response.status_code, [event for event in text.split("\n\n") if event]

    async def chunks(self, content="Say hello to the fleet.", **fields):
        body = {"model": "tiny", "messages": [{"role": "user", "content": content}], "stream": True, **fields}
        status, events = await self.events("/v1/chat/completions", body)
        assert status == 200
        assert events[-1] == "data: [DONE]"
        return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]

    async def metric(self, series):
        lines = (await self.client.get("/metrics")).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(series))

    async def until(self, is_true: Callable, seconds=5.0):
        """Poll a condition until it holds or the deadline passes."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await is_true():
            assert asyncio.get_running_loop().time() < deadline, "the condition did not come true in time"
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _serve(engine_argv, dialect, version, own) -> AsyncIterator[Engine]:
    settings = read_command_line(["--dialect", dialect, "--engine-version", version, *own, "--", *engine_argv.split()])
    listener = open_socket("127.0.0.1", 0)
    port = listener.getsockname()[1]
    stop = asyncio.Event()
    settings = replace(settings, port=port, pace=replace(settings.pace, drain_seconds=2))
    app = EngineApp(settings)
    start_listening(listener)
    serving = asyncio.create_task(serve_on(listener, app, stop))
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, verify=False) as client:
        yield Engine(client, port, app, stop)
    stop.set()
    await serving


@pytest.fixture
async def start_engine():
    """Start engines by their real command line; they end with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(engine_argv=VLLM, *, dialect="vllm", version="0.32.0", own=("--time-scale", "0.02")):
            return await stack.enter_async_context(_serve(engine_argv, dialect, version, own))

        yield start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_engine():
    """Give a running engine for a command line; a module starts each one once. Needs the module's event loop."""
    engines = {}
    async with contextlib.AsyncExitStack() as stack:

        async def share(engine_argv, version):
            if (engine_argv, version) not in engines:
                serving = _serve(engine_argv, "vllm", version, ("--time-scale", "0"))
                engines[engine_argv, version] = await stack.enter_async_context(serving)
            return engines[engine_argv, version]

        yield share
