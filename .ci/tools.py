"""Builds what the heavy test tiers need beside Python packages into `.tools/`, as `.ci/tools.toml` lists it.

A tool is built from Go modules by the Go that is installed, with its own caches; every module is checked against the
hashes in `.ci/sums/`. What is built already is left alone. Where this machine has no Go, or one that is too old, the
tool's tier is left out and a line says so; everything else that goes wrong is a failure.

    python .ci/tools.py           builds
    python .ci/tools.py --lock    writes the hashes again after a change of versions
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ROOT / ".ci" / "tools.toml"
SUMS = ROOT / ".ci" / "sums"
TOOLS = ROOT / ".tools"
PYTHON_TOOLS = "python"
"""The part of the list that .ci/engine.py installs."""


class ToolError(Exception):
    """A tool can't be built; the message says what failed."""


@dataclass(frozen=True)
class Tool:
    """One program that is built from Go modules."""

    name: str
    tier: str
    version: str
    module: str
    package: str
    go: str
    """The oldest Go that builds it."""
    version_variable: str
    replace: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name in the tool's folder -> module, path in it."""

    @property
    def folder(self) -> Path:
        """Where it is built."""
        return TOOLS / self.name

    @property
    def sums(self) -> Path:
        """The hashes of its modules."""
        return SUMS / f"{self.name}.sum"

    @property
    def go_mod(self) -> str:
        """The module that the tool is built in."""
        replaced = "".join(f"\nreplace {old} => {new}\n" for old, new in self.replace.items())
        return f"module tools/{self.name}\n\ngo {self.go}\n\nrequire {self.module} v{self.version}\n{replaced}"


def read_tools(path: Path = VERSIONS) -> tuple[Tool, ...]:
    """The tools as the list of versions has them."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Tool(name=name, **entry) for name, entry in listed.items() if name != PYTHON_TOOLS)


def go_complaint(tool: Tool, go_version: str | None) -> str | None:
    """Why this machine can't build the tool, or None when it can; `go_version` is what `go env GOVERSION` says."""
    if go_version is None:
        return f"no Go on this machine (`go` is not on PATH); {tool.name} {tool.version} needs {tool.go} or newer"
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", go_version)
    if found is None or tuple(int(part or 0) for part in found.groups()) < tuple(map(int, tool.go.split("."))):
        return f"Go here is {go_version!r}; {tool.name} {tool.version} needs {tool.go} or newer"
    return None


def installed_go() -> str | None:
    """What the installed Go calls itself, or None without one."""
    program = shutil.which("go")
    if program is None:
        return None
    command = [program, "env", "GOVERSION"]
    return subprocess.run(command, env=go_environment(), capture_output=True, text=True, check=False).stdout.strip()


def go_environment() -> dict[str, str]:
    """This environment; Go itself is never fetched, and no surrounding workspace counts."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}


def go(tool: Tool, *arguments: str) -> str:
    """Runs Go in the tool's folder and gives what it printed; a failure names the command."""
    command = [shutil.which("go") or "go", *arguments]
    done = subprocess.run(
        command, cwd=tool.folder, env=go_environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise ToolError(f"this failed in {tool.folder}: go {' '.join(arguments)}")
    return done.stdout


def digest_of(tool: Tool, go_version: str) -> str:
    """What the built tool depends on."""
    parts = (tool.go_mod.encode(), tool.sums.read_bytes(), repr(tool).encode(), go_version.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_built(tool: Tool, digest: str) -> bool:
    """Whether exactly this tool stands in its folder."""
    stamp = tool.folder / ".installed"
    made = [tool.folder / name for name in (tool.name, *tool.files)]
    return stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == digest and all(p.is_file() for p in made)


def build(tool: Tool, digest: str) -> None:
    """The tool and its files, from modules whose hashes are known."""
    shutil.rmtree(tool.folder, ignore_errors=True)
    tool.folder.mkdir(parents=True)
    (tool.folder / "go.mod").write_text(tool.go_mod, encoding="utf-8")
    shutil.copyfile(tool.sums, tool.folder / "go.sum")
    flags = f"-s -w -X {tool.version_variable}=v{tool.version}"
    go(tool, "build", "-mod=readonly", "-buildvcs=false", "-ldflags", flags, "-o", tool.name, tool.package)
    for name, (module, path) in tool.files.items():
        source = Path(go(tool, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module).strip()) / path
        shutil.copyfile(source, tool.folder / name)
        (tool.folder / name).chmod(0o755)
    (tool.folder / ".installed").write_text(digest + "\n", encoding="utf-8")


def lock(tool: Tool) -> None:
    """Writes the hashes of every module that the tool is built from."""
    tool.folder.mkdir(parents=True, exist_ok=True)
    (tool.folder / ".installed").unlink(missing_ok=True)
    (tool.folder / "go.mod").write_text(tool.go_mod, encoding="utf-8")
    (tool.folder / "go.sum").unlink(missing_ok=True)
    go(tool, "list", "-mod=mod", "-deps", tool.package)
    if (tool.folder / "go.mod").read_text(encoding="utf-8") != tool.go_mod:
        raise ToolError(f"{tool.name} needs another go.mod than {VERSIONS.name} says; compare {tool.folder}/go.mod")
    SUMS.mkdir(exist_ok=True)
    shutil.copyfile(tool.folder / "go.sum", tool.sums)


def install(tool: Tool, go_version: str) -> None:
    """Builds the tool unless it stands there already."""
    digest = digest_of(tool, go_version)
    if is_built(tool, digest):
        print(f"{tool.name} {tool.version} stands in {tool.folder.relative_to(ROOT)}")
        return
    print(f"building {tool.name} {tool.version} with {go_version}; the first time this takes minutes ...", flush=True)
    started = time.monotonic()
    build(tool, digest)
    print(f"built {tool.name} {tool.version} in {time.monotonic() - started:.0f} s", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Builds every tool, or with `--lock` writes their hashes."""
    go_version = installed_go()
    try:
        for tool in read_tools():
            complaint = go_complaint(tool, go_version)
            if complaint or go_version is None:
                print(f"tier {tool.tier} is left out: {complaint}", flush=True)
            elif "--lock" in arguments:
                lock(tool)
            else:
                install(tool, go_version)
    except (ToolError, OSError) as error:
        print(f"make tools stopped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
