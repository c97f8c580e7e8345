"""The import contracts: the tree keeps them, and each one refuses a planted violation.

The planted trees have the rooms' names and one small module each; the contracts are the real ones of pyproject.toml.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = Path(sys.executable).parent / "lint-imports"
LINT_HOUSES = Path(__file__).with_name("lint_houses.py")
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}

# An honest small house: every room, a module in each, and imports that are allowed.
HOUSE = {
    "fleet/pins.py": "import pydantic\nimport packaging.version\nimport importlib.resources\n",
    "engines/vllm.py": "import fleet.pins\n",
    "workloads/render.py": "import engines.vllm\n",
    "sources/osv.py": "import json\nimport pathlib\nimport fleet.pins\n",
    "gateway/router.py": "import gateway.affinity\n",
    "gateway/affinity.py": "import fleet.pins\n",
    "gateway/server.py": "import gateway.router\n",
    "infra/cluster.py": "import workloads.render\n",
    "policies/workloads.py": "import sources.osv\n",
    "simulator/run.py": "import gateway.router\n",
    "local/supervisor.py": "import subprocess\nimport fleet.pins\n",
    "cli/main.py": "import simulator.run\nimport local.supervisor\n",
    "control_plane/main.py": "import control_plane.api.pins\nimport control_plane.adapters.sql\n",
    "control_plane/api/pins.py": "import control_plane.services.pins\n",
    "control_plane/loops/reconcile.py": "import control_plane.services.pins\n",
    "control_plane/web/pages.py": "import control_plane.services.pins\n",
    "control_plane/services/pins.py": "import control_plane.ports\n",
    "control_plane/adapters/sql.py": "import control_plane.ports\n",
    "control_plane/ports.py": "import fleet.pins\n",
}

# contract, then the planted imports: one is a direct violation, two or more go through another module or room.
PLANTED = [
    ("layers", {"fleet/pins.py": "import engines.vllm"}),
    ("layers", {"engines/vllm.py": "import sources.osv"}),
    ("layers", {"sources/osv.py": "import workloads.render"}),
    ("layers", {"workloads/render.py": "import sources.osv"}),
    ("layers", {"policies/workloads.py": "import control_plane.ports"}),
    ("layers", {"infra/cluster.py": "import policies.workloads"}),
    ("layers", {"gateway/server.py": "import infra.cluster"}),
    ("layers", {"control_plane/ports.py": "import gateway.router"}),
    ("layers", {"local/supervisor.py": "import simulator.run"}),
    ("layers", {"simulator/run.py": "import cli.main"}),
    (
        "layers",
        {"policies/workloads.py": "import gateway.affinity", "gateway/affinity.py": "import control_plane.ports"},
    ),
    ("layers", {"fleet/pins.py": "import workloads.render", "workloads/render.py": "import infra.cluster"}),
    ("simulator-alone", {"simulator/run.py": "import control_plane.ports"}),
    ("simulator-alone", {"simulator/run.py": "from infra import cluster"}),
    ("simulator-alone", {"simulator/run.py": "import policies.workloads"}),
    (
        "simulator-alone",
        {"simulator/run.py": "import gateway.router", "gateway/router.py": "import policies.workloads"},
    ),
    ("simulator-gateway", {"simulator/run.py": "import gateway.server"}),
    ("simulator-gateway", {"simulator/run.py": "import infra.cluster", "infra/cluster.py": "import gateway.server"}),
    ("local-alone", {"local/supervisor.py": "import sources.osv"}),
    ("local-alone", {"local/supervisor.py": "import gateway.server"}),
    ("local-alone", {"local/supervisor.py": "import fleet.pins", "fleet/pins.py": "import engines.vllm"}),
    ("cli-by-http", {"cli/main.py": "import control_plane.ports"}),
    ("cli-by-http", {"cli/main.py": "def go():\n    import infra.cluster"}),
    ("cli-by-http", {"cli/main.py": "import policies.workloads"}),
    ("cli-by-http", {"cli/main.py": "import gateway.router"}),
    ("cli-by-http", {"cli/main.py": "import simulator.run", "simulator/run.py": "import control_plane.ports"}),
    ("cli-by-http", {"simulator/run.py": "import gateway.server"}),
    ("pure-kernel", {"fleet/pins.py": "import httpx2"}),
    ("pure-kernel", {"fleet/pins.py": "from os import environ"}),
    ("pure-kernel", {"engines/vllm.py": "import logging.handlers"}),
    ("pure-kernel", {"workloads/render.py": "from urllib.request import urlopen"}),
    ("pure-kernel", {"workloads/render.py": "def late():\n    import time"}),
    ("pure-kernel", {"workloads/render.py": "import sources.osv"}),
    ("control-plane-layers", {"control_plane/services/pins.py": "import control_plane.api.pins"}),
    ("control-plane-layers", {"control_plane/ports.py": "import control_plane.services.pins"}),
    ("control-plane-layers", {"control_plane/adapters/sql.py": "import control_plane.services.pins"}),
    (
        "control-plane-layers",
        {
            "control_plane/ports.py": "import fleet.pins, control_plane.errors",
            "control_plane/errors.py": "import control_plane.adapters.sql",
        },
    ),
    ("control-plane-adapters", {"control_plane/api/pins.py": "import control_plane.adapters.sql"}),
    ("control-plane-adapters", {"control_plane/loops/reconcile.py": "import control_plane.adapters.sql"}),
    (
        "control-plane-adapters",
        {
            "control_plane/web/pages.py": "import control_plane.errors",
            "control_plane/errors.py": "import control_plane.adapters.sql",
        },
    ),
]


def build(folder: Path, planted: dict[str, str]) -> None:
    """Writes the honest house with the planted lines after it, and the contracts beside it."""
    for name in sorted(HOUSE.keys() | planted.keys()):
        file = folder / name
        for package in [parent for parent in file.parents if parent.is_relative_to(folder) and parent != folder]:
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
        file.write_text(HOUSE.get(name, "") + planted.get(name, "") + "\n", encoding="utf-8")
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())


class Linted(NamedTuple):
    """What the linter said of one tree."""

    returncode: int
    stdout: str


WORDS = {"COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def planted_houses(tmp_path_factory: pytest.TempPathFactory) -> list[Linted]:
    """The house with each planted violation, in their order, and last the honest one: the linter starts once."""
    folders = [tmp_path_factory.mktemp("house") for _ in range(len(PLANTED) + 1)]
    for folder, planted in zip(folders, [*(planted for _, planted in PLANTED), {}], strict=True):
        build(folder, planted)
    command = [sys.executable, str(LINT_HOUSES), *map(str, folders)]
    subprocess.run(command, env={**os.environ, **WORDS}, timeout=100, check=True)
    return [
        Linted(
            int((folder / "lint.code").read_text(encoding="utf-8")),
            (folder / "lint.txt").read_text(encoding="utf-8"),
        )
        for folder in folders
    ]


def broken(output: str) -> set[str]:
    """The ids of the contracts that the linter called broken."""
    return {id_ for id_, contract in CONTRACTS.items() if f"{contract['name']} BROKEN" in output}


def test_the_tree_keeps_every_contract() -> None:
    environment = {**os.environ, **WORDS, "PYTHONPATH": str(ROOT)}
    command = [str(LINT_IMPORTS), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout


def test_an_honest_house_keeps_every_contract(planted_houses: list[Linted]) -> None:
    result = planted_houses[-1]
    assert result.returncode == 0, result.stdout
    assert f"{len(CONTRACTS)} kept, 0 broken" in result.stdout


@pytest.mark.parametrize("number", range(len(PLANTED)), ids=[f"{c}: {' + '.join(p)}" for c, p in PLANTED])
def test_a_planted_import_breaks_its_contract(number: int, planted_houses: list[Linted]) -> None:
    contract, result = PLANTED[number][0], planted_houses[number]
    assert result.returncode == 1, result.stdout
    assert contract in broken(result.stdout), result.stdout


def test_every_contract_has_a_direct_and_an_indirect_violation_planted() -> None:
    lengths = {id_: {len(planted) > 1 for contract, planted in PLANTED if contract == id_} for id_ in CONTRACTS}
    # "The kernel does no I/O" is also broken through a room that may do I/O: sources, which imports pathlib.
    lengths["pure-kernel"].add(True)
    assert all(kinds == {False, True} for kinds in lengths.values()), lengths


def test_the_contracts_know_every_room() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/py.typed")}
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layered = {room for layer in CONTRACTS["layers"]["layers"] for room in layer.split(" | ")}
    assert set(config["importlinter"]["root_packages"]) == rooms == layered
    assert set(config["hatch"]["build"]["targets"]["wheel"]["packages"]) == rooms
    assert set(config["mypy"]["packages"]) == rooms
