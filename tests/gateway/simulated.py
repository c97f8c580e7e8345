"""A simulated engine as a process, and a whole gateway in front of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2

from tests.free_ports import free_port
from tests.gateway.conftest import DEADLINE_SECONDS, World, wait_for

MODEL = "acme-chat"
OTHER_MODEL = "both-chat"
_SERVE = ("--max-model-len", "4096", "--host=127.0.0.1", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")


@dataclass
class SimulatedEngine:
    """`python -m simulator.engine`, as vLLM speaks."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def metric(self, name: str) -> float:
        page = httpx2.get(f"http://{self.address}/metrics").text
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))

    def is_idle(self) -> bool:
        return self.metric("vllm:num_requests_running") == 0 and self.metric("vllm:num_requests_waiting{") == 0


@contextmanager
def simulated_engine(
    *own: str, served: tuple[str, ...] = (MODEL, OTHER_MODEL), options: tuple[str, ...] = ()
) -> Iterator[SimulatedEngine]:
    """An engine that serves the gateway tests' models."""
    port = free_port()
    command = [sys.executable, "-m", "simulator.engine", "--dialect", "vllm", "--engine-version", "0.32.0", *own, "--"]
    command += ["vllm", "serve", "model/tiny", "--served-model-name", *served, *_SERVE, *options, f"--port={port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    engine = SimulatedEngine(port, process)
    try:
        wait_for(lambda: _is_healthy(engine), "the simulated engine")
        yield engine
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(DEADLINE_SECONDS)


def publish(gateway, world: World, engine: SimulatedEngine, *, serves: tuple[str, ...] = (), **route: object) -> None:
    """Have the gateway serve its models from the engine, and wait until it does."""
    snapshot = world.snapshot(engine.address, **route)
    if serves:
        routes = tuple(
            found.model_copy(update={"arms": tuple(arm.model_copy(update={"serves": serves}) for arm in found.arms)})
            for found in snapshot.routes
        )
        snapshot = snapshot.model_copy(update={"routes": routes})
    gateway.publish(snapshot)
    wait_for(lambda: gateway.uses(snapshot), "the snapshot in use")
    headers = {"authorization": f"Bearer {world.globex_key}"}
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    path, body = ("/tokenize", {"prompt": "hi"}) if "tokenize" in serves else ("/v1/chat/completions", chat)

    def serves_from_the_engine() -> bool:
        answer = httpx2.post(f"{gateway.url}{path}", json={"model": OTHER_MODEL, **body}, headers=headers)
        return answer.status_code == 200 and answer.headers.get("content-type") == "application/json"

    wait_for(serves_from_the_engine, "an answer of the simulated engine")


def _is_healthy(engine: SimulatedEngine) -> bool:
    try:
        return httpx2.get(f"http://{engine.address}/health", timeout=1).status_code == 200
    except httpx2.TransportError:
        return False
