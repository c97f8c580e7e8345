"""What is installed: the wheel holds every file of every room, and its command says which extra it needs."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

LEFT_BY_TOOLS = ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")


def rooms(checkout: Path) -> list[str]:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    return project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def of_the_tree(checkout: Path) -> Iterator[str]:
    for room in rooms(checkout):
        for folder, below, names in os.walk(checkout / room):
            below[:] = [name for name in below if name not in LEFT_BY_TOOLS]
            yield from (str((Path(folder) / name).relative_to(checkout)) for name in names)


def test_the_wheel_holds_every_file_of_every_room(checkout: Path) -> None:
    packed = {Path(item.distribution_path).as_posix() for item in WheelBuilder(str(checkout)).recurse_included_files()}
    missing = sorted(set(of_the_tree(checkout)) - packed)
    assert missing == [], "files of the rooms that an installation would lack"


def test_every_room_of_the_checkout_is_packed(checkout: Path) -> None:
    found = {path.parent.name for path in checkout.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert set(rooms(checkout)) == found


@pytest.mark.parametrize(
    "name",
    [
        *("fleet/data/gpus.json", "fleet/data/models/Qwen--Qwen3-32B.json", "fleet/model_reading/class_defaults.json"),
        *("engines/releases.toml", "engines/data/models.toml", "sources/data/policy.yaml", "fleet/py.typed"),
    ],
)
def test_data_that_is_read_at_run_time_is_in_the_rooms(checkout: Path, name: str) -> None:
    assert name in set(of_the_tree(checkout))


def test_the_command_without_its_libraries_names_the_extra(checkout: Path) -> None:
    program = "import sys; sys.modules['typer'] = None; from cli.entry import run; run()"
    ended = subprocess.run([sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "typer is not installed" in ended.stderr
    assert "enginehouse[cli]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_room_that_can_not_be_imported_is_no_missing_extra(checkout: Path) -> None:
    program = "import sys; sys.modules['cli.main'] = None; from cli.entry import run; run()"
    ended = subprocess.run([sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, timeout=60)
    assert "Traceback" in ended.stderr


def test_the_command_is_the_one_that_the_project_installs(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"enginehouse": "cli.entry:run"}
    ended = subprocess.run(
        [sys.executable, "-c", "from cli.entry import run; run()", "--version"],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0
    assert ended.stdout.startswith("enginehouse ")
