"""vLLM on this machine's processor: whether it can run here, and replicas of it that serve a tiny model."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from local.tiny_model import make
from local.vllm_on_cpu import ENVIRONMENT
from tests.free_ports import free_port
from tests.gateway.conftest import without_preload

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".tools" / "vllm" / "bin" / "vllm"
START_SECONDS = 420.0
"""Half a minute on a quiet machine, two minutes for two of them on a busy one."""
END_SECONDS = 30.0
FREE_BYTES = 5 * 10**9
"""Two replicas take 1.4 GB each."""
POOL_BLOCKS, BLOCK = 300, 32
SHOWN_LINES = 40


@dataclass
class RealEngine:
    """One replica."""

    port: int
    process: "subprocess.Popen[bytes]"
    log: Path
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=30, trust_env=False))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def metric(self, *names: str) -> float:
        """The sum of all series that begin so, on one page."""
        page = self.client.get(f"{self.url}/metrics").text
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(names))

    def is_idle(self) -> bool:
        return self.metric("vllm:num_requests_running{", "vllm:num_requests_waiting{") == 0

    def is_healthy(self) -> bool:
        with suppress(httpx2.TransportError):
            return self.client.get(f"{self.url}/health", timeout=2).status_code == 200
        return False

    def last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-SHOWN_LINES:])

    def kill(self) -> None:
        """It and its workers are gone at once, as on a machine that fails."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(END_SECONDS)


def why_not(program: Path = PROGRAM, available: int | None = None) -> str | None:
    """Why this machine can't run the tier, or None when it can."""
    if not program.is_file():
        return f"no vLLM in {program.parents[1].relative_to(ROOT)}; `make tools-engine` installs it (6 GB)"
    memory = available_bytes() if available is None else available
    if memory < FREE_BYTES:
        return f"{memory / 1e9:.1f} GB of memory are free, two replicas take {FREE_BYTES / 1e9:.0f}"
    return None


def available_bytes(information: Path = Path("/proc/meminfo")) -> int:
    """What programs may still take, as Linux says it; plenty where it says nothing."""
    lines = information.read_text(encoding="ascii").splitlines() if information.exists() else []
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return int(found) * 1024 if found else 10**12


@contextmanager
def real_engines(
    count: int, folder: Path, *, served: Sequence[str], options: Sequence[str] = ()
) -> Iterator[tuple[RealEngine, ...]]:
    """Replicas that answer, ended by their own process ids; their logs stay in the folder."""
    model = make(folder / "model" / "tiny")
    engines: list[RealEngine] = []
    try:
        # One by one, so that the ones before end too where one can't be started.
        engines += (_start(model, folder, number, served, options) for number in range(count))
        for engine in engines:
            _await(engine)
        yield tuple(engines)
    finally:
        for engine in engines:
            if engine.process.poll() is None:
                engine.process.send_signal(signal.SIGTERM)
        for engine in engines:
            _end(engine)


def command(model: Path, port: int, served: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """How a replica is started: few blocks, and each answer says how much of its prompt was cached."""
    line = [str(PROGRAM), "serve", str(model), "--host", "127.0.0.1", "--port", str(port)]
    line += ["--served-model-name", *served, "--max-model-len", "4096", "--enforce-eager", "--block-size", str(BLOCK)]
    line += ["--num-gpu-blocks-override", str(POOL_BLOCKS), "--enable-prompt-tokens-details"]
    return [*line, "--enable-auto-tool-choice", "--tool-call-parser", "hermes", *options]


def environment() -> Mapping[str, str]:
    """What vLLM and Python compile is kept in the checkout."""
    kept = {"VLLM_CACHE_ROOT": str(ROOT / ".cache" / "vllm"), "PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "bytecode")}
    return {**without_preload(), **ENVIRONMENT, **kept}


def _start(model: Path, folder: Path, number: int, served: Sequence[str], options: Sequence[str]) -> RealEngine:
    port, log = free_port(), folder / f"engine-{number}.log"
    line = command(model, port, served, options)
    with log.open("ab") as out:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment(),
            cwd=folder,
            start_new_session=True,
        )
    return RealEngine(port, process, log)


def _await(engine: RealEngine) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not engine.is_healthy():
        gone = engine.process.poll()
        if gone is not None or time.monotonic() > deadline:
            what = f"ended with {gone}" if gone is not None else f"did not answer within {START_SECONDS:g} s"
            raise AssertionError(f"vLLM {what}; its log {engine.log} ends with:\n{engine.last_words()}")
        time.sleep(0.25)


def _end(engine: RealEngine) -> None:
    """Its workers are of its own process group: none outlives it."""
    engine.client.close()
    with suppress(subprocess.TimeoutExpired):
        engine.process.wait(END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(engine.process.pid, signal.SIGKILL)
    engine.process.wait(END_SECONDS)
