"""Peers of the gateway's benchmark: routers that install from PyPI, in an environment of their own.

``python benchmarks/gateway_peers.py`` puts them at the versions below into ``.tools/peers/<name>`` by pip; the
project's own environment and locks do not know them. What can't be had is left out of the tables with the reason.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway_processes import Contender, await_port, free_port, started

ENVIRONMENTS = Path(__file__).resolve().parents[1] / ".tools" / "peers"
INSTALL_SECONDS = 900


@dataclass(frozen=True)
class Peer:
    """A router and how it is started before the engines."""

    requirements: tuple[str, ...]
    command: Callable[[Path, int, Sequence[str]], Sequence[str]]
    """From the folder of its programs, its port and the engines' URLs."""
    connections: int | None = None
    """Fewer streams than the others, because it can't hold as many."""


def _sglang(programs: Path, port: int, urls: Sequence[str]) -> Sequence[str]:
    start = (str(programs / "python"), "-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", str(port))
    return (*start, "--prometheus-port", str(free_port()), "--policy", "cache_aware", "--worker-urls", *urls)


def _vllm(programs: Path, port: int, urls: Sequence[str]) -> Sequence[str]:
    start = (str(programs / "vllm-router"), "--host", "127.0.0.1", "--port", str(port))
    return (*start, "--prometheus-port", str(free_port()), "--policy", "cache_aware", "--worker-urls", *urls)


def _litellm(programs: Path, port: int, urls: Sequence[str]) -> Sequence[str]:
    def deployment(url: str) -> Mapping[str, object]:
        engine = {"model": "openai/chat", "api_base": f"{url}/v1", "api_key": "x"}
        return {"model_name": "chat", "litellm_params": engine}

    file = ENVIRONMENTS / f"litellm-{port}.yaml"
    open_to_all = {"dangerously_permit_weak_or_unset_master_key": True}
    file.write_text(json.dumps({"model_list": list(map(deployment, urls)), "general_settings": open_to_all}))
    offline = ("env", "LITELLM_LOCAL_MODEL_COST_MAP=True")
    return (*offline, str(programs / "litellm"), "--host", "127.0.0.1", "--port", str(port), "--config", str(file))


PEERS: Mapping[str, Peer] = {
    "sglang-router": Peer(("sglang-router==0.3.2",), _sglang),
    "vllm-router": Peer(("vllm-router==0.1.17",), _vllm),
    "litellm": Peer(("litellm[proxy]==1.108.7",), _litellm, connections=4),
}


def install() -> None:
    """Each by pip into its own environment; one that can't be had leaves the others."""
    for name, peer in PEERS.items():
        folder = ENVIRONMENTS / name
        venv.create(folder, with_pip=True)
        command = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        done = subprocess.run(  # noqa: S603
            (*command, *peer.requirements), capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        said = done.stderr.strip().splitlines()
        if done.returncode == 0:
            (folder / "installed").write_text("\n".join(peer.requirements))
        print(f"{name}: {'installed' if done.returncode == 0 else 'not installed: ' + (said[-1] if said else '')}")


def why_not(name: str) -> str | None:
    """Why a peer can't be asked; ``None`` = it can."""
    file = ENVIRONMENTS / name / "installed"
    if file.exists() and file.read_text() == "\n".join(PEERS[name].requirements):
        return None
    return "not installed (python benchmarks/gateway_peers.py)"


@contextmanager
def running(name: str, core: str, folder: Path, ports: Sequence[int]) -> Iterator[Contender]:
    """One peer before the engines."""
    port, urls = free_port(), [f"http://127.0.0.1:{one}" for one in ports]
    command = PEERS[name].command(ENVIRONMENTS / name / "bin", port, urls)
    with started(core, command, log=folder / f"{name}.log") as processes:
        await_port(port)
        yield Contender(port, processes)


if __name__ == "__main__":
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    install()
    sys.exit(0)
