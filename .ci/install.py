"""Builds `.venv` from the locks on a machine that has nothing but Python and its venv module.

1. pip installs the pinned uv, hash-checked, into `.tools/uv`.
2. uv installs the locked environment, hash-checked, into `.venv`.
3. uv installs this project there, editable, without looking anything up.

Only the standard library is used, and nothing that Python 3.7 can't read, so that the message about the version is
what a person with an old one sees.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
UV_LOCK = "requirements-uv.lock"
ENVIRONMENT_LOCK = "requirements-dev.lock"


class InstallError(Exception):
    """The environment can't be built; the message says what would help."""


def complaint(version: Sequence[int], *, venv_works: bool) -> str | None:
    """What this Python lacks and the command that helps, or None when it will do."""
    found = f"{version[0]}.{version[1]}"
    if tuple(version[:2]) < OLDEST:
        return (
            f"Enginehouse needs Python {OLDEST[0]}.{OLDEST[1]} or newer, this is {found}. "
            "Name another one: make install PYTHON=python3.12"
        )
    if not venv_works:
        return (
            f"The venv module of Python {found} is not complete (ensurepip is missing). "
            "On Debian or Ubuntu install it as root: apt-get install python3-venv"
        )
    return None


def has_venv() -> bool:
    """Whether this Python can make an environment with pip in it (Debian splits that off)."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return False
    return True


def pip_settings(listing: str) -> dict[str, str]:
    """The settings that `pip config list` printed, the more specific ones winning.

    A line is `global.index-url='https://…'`, `install.…`, or `:env:.…` for environment variables.
    """
    rank = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, separator, value = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        if separator and section in rank and rank[section] >= found.get(name, (-1, ""))[0]:
            found[name] = (rank[section], value.strip().strip("'\""))
    return {name: value for name, (_, value) in found.items()}


def uv_environment(environ: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv: never fetch a Python, and use the registry that pip is told to use.

    What the person set for uv itself wins.
    """
    environment = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    environment.update(environ)
    environment.pop("VIRTUAL_ENV", None)
    for setting, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("extra-index-url", "UV_INDEX"),
        ("cert", "SSL_CERT_FILE"),
        ("trusted-host", "UV_INSECURE_HOST"),
        ("timeout", "UV_HTTP_TIMEOUT"),
    ):
        value = settings.get(setting) or (settings.get("default-timeout") if setting == "timeout" else None)
        if value and not _is_set(environ, variable):
            environment[variable] = " ".join(value.replace("\\n", " ").split())
    return environment


def _is_set(environ: Mapping[str, str], variable: str) -> bool:
    synonyms = {"UV_DEFAULT_INDEX": ("UV_INDEX_URL",), "UV_INDEX": ("UV_EXTRA_INDEX_URL",)}
    return any(environ.get(name) for name in (variable, *synonyms.get(variable, ())))


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> None:
    """Runs one command in the checkout; a failure names it."""
    words = [str(word) for word in command]
    if subprocess.run(words, cwd=str(ROOT), env=environment, check=False).returncode != 0:
        raise InstallError(f"this failed: {' '.join(words)}")


def make_venv(folder: Path) -> Path:
    """An environment with pip, unless there is one whose Python still runs."""
    python = folder / "bin" / "python"
    works = python.exists() and subprocess.run(
        [str(python), "-m", "pip", "--version"], capture_output=True, check=False
    )
    if not works or works.returncode != 0:
        run(sys.executable, "-m", "venv", "--clear", folder)
    return python


def install_uv() -> tuple[Path, dict[str, str]]:
    """The pinned uv in `.tools/uv`, and the environment to run it in."""
    python = make_venv(ROOT / ".tools" / "uv")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    run(python, "-m", "pip", "install", *quiet, "--require-hashes", "--only-binary", ":all:", "-r", UV_LOCK)
    listing = subprocess.run([str(python), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    return python.parent / "uv", uv_environment(os.environ, pip_settings(listing.stdout))


def install_environment(uv: Path, environment: Mapping[str, str]) -> None:
    """The locked environment and this project in `.venv`; a lock that is installed already is left alone."""
    python = ROOT / ".venv" / "bin" / "python"
    stamp = ROOT / ".venv" / ".installed"
    target = ("--python", python)
    digest = hashlib.sha256((ROOT / ENVIRONMENT_LOCK).read_bytes()).hexdigest()
    if not python.exists():
        run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, ".venv", environment=environment)
    if not stamp.exists() or stamp.read_text(encoding="utf-8").strip() != digest:
        print("installing the locked environment into .venv ...", flush=True)
        run(
            uv,
            "pip",
            "sync",
            "--quiet",
            *target,
            "--compile-bytecode",
            "--require-hashes",
            ENVIRONMENT_LOCK,
            environment=environment,
        )
    editable = ("--no-deps", "--no-build-isolation", "--offline", "--editable", ".")
    run(uv, "pip", "install", "--quiet", *target, *editable, environment=environment)
    stamp.write_text(digest + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Builds everything; with `--uv-only` just the tool that makes the locks."""
    wrong = complaint(sys.version_info[:2], venv_works=has_venv())
    if wrong:
        print(wrong, file=sys.stderr)
        return 1
    try:
        uv, environment = install_uv()
        if "--uv-only" not in arguments:
            install_environment(uv, environment)
    except InstallError as error:
        print(f"make install stopped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
