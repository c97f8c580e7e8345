"""The locks carry hashes, no host names, and everything that pyproject.toml asks for."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements-uv.lock", "requirements.lock", "requirements-dev.lock")
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+)", re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(lock: str) -> dict[str, Version]:
    found = PIN.findall((ROOT / lock).read_text(encoding="utf-8"))
    return {canonicalize_name(name): Version(version) for name, version in found}


def requirements(*lists: list[object]) -> list[Requirement]:
    found = [Requirement(line) for lines in lists for line in lines if isinstance(line, str)]
    return [requirement for requirement in found if requirement.name != "enginehouse"]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host_and_no_path(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(?m)(^|\s)/\w", text)
    assert "--index-url" not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", (ROOT / lock).read_text(encoding="utf-8"))[1:]
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_locks_hold_what_the_project_asks_for() -> None:
    runtime = requirements(PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values())
    groups = PROJECT["dependency-groups"]
    asked = {
        "requirements.lock": runtime,
        "requirements-dev.lock": runtime + requirements(groups["dev"], groups["build"]),
        "requirements-uv.lock": requirements(groups["bootstrap"]),
    }
    for lock, wanted in asked.items():
        held = pins(lock)
        for requirement in wanted:
            version = held.get(canonicalize_name(requirement.name))
            assert version, f"{lock} lacks {requirement}; make it again with `make lock`"
            assert version in requirement.specifier, (
                f"{lock}: {requirement.name} {version} is not {requirement.specifier}"
            )


def test_both_environments_hold_the_same_versions() -> None:
    runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
    assert {name: development.get(name) for name in runtime} == runtime


ROOMS = sorted(path.parent.name for path in ROOT.glob("*/py.typed"))


def imports(room: str) -> Iterator[str]:
    """The top-level packages that a room imports and neither the standard library nor the house has."""
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            yield from (name.partition(".")[0] for name in names)


def extra(name: str) -> set[str]:
    """The packages of an extra and of the extras that it names."""
    found: set[str] = set()
    for requirement in map(Requirement, PROJECT["project"]["optional-dependencies"].get(name, [])):
        if requirement.name == "enginehouse":
            found = found.union(*(extra(inner) for inner in requirement.extras))
        else:
            found.add(canonicalize_name(requirement.name))
    return found


providers_of_packages = cache(packages_distributions)  # reads the metadata of everything that is installed


@pytest.mark.parametrize("room", ROOMS)
def test_the_extra_of_a_room_holds_what_it_imports(room: str) -> None:
    base = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}
    # pydantic pins its own core, so it needs no line.
    held = base | extra(room.replace("_", "-")) | {"pydantic-core"}
    providers = providers_of_packages()
    foreign = set(imports(room)) - set(sys.stdlib_module_names) - set(ROOMS)
    missing = {
        package
        for package in foreign
        if not held & {canonicalize_name(provider) for provider in providers.get(package, [package])}
    }
    assert not missing, (
        f"add them to the extra {room.replace('_', '-')!r} in pyproject.toml, then `make lock`: {missing}"
    )
