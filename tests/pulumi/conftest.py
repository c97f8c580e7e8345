"""Stacks of the real engine for tests, and the probe that says whether this machine can have it."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.pulumi.checkout import Checkout
from tests.pulumi.engine import ENGINE, ROOT, Stack

PROJECT = """\
name: tiny
runtime: python
"""
Starter = Callable[..., Stack]


TIER = ("tier", "pulumi")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the reports of the tier's tests, which may be written in another process."""
    for item in items:
        if item.get_closest_marker("pulumi"):
            item.user_properties.append(TIER)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how long the tier took: five minutes are what it may take on a quiet machine."""
    reports = [item for kind in terminalreporter.stats.values() for item in kind if isinstance(item, pytest.TestReport)]
    of_tier = [item for item in reports if TIER in map(tuple, item.user_properties)]
    if of_tier:
        seconds = max(item.stop for item in of_tier) - min(item.start for item in of_tier)
        terminalreporter.write_line(f"tier pulumi took {seconds:.0f} s")


@pytest.fixture(scope="session")
def engine(ci_script: Callable[[str], ModuleType]) -> Path:
    """The engine that `make tools` built; without Go on this machine the tests are left out."""
    if not ENGINE.is_file():
        tools = ci_script("tools")
        (tool,) = (tool for tool in tools.read_tools() if tool.name == "pulumi")
        complaint = tools.go_complaint(tool, tools.installed_go())
        if complaint:
            pytest.skip(f"tier pulumi is left out: {complaint}")
        pytest.fail(f"{ENGINE.relative_to(ROOT)} is missing; run: make tools")
    return ENGINE


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of every stack: a place where the doubles keep what they read from the SDKs, and no account."""
    return {"DOUBLES_TYPES": str(tmp_path_factory.mktemp("types")), "AWS_ACCESS_KEY_ID": "doubles"}


@pytest.fixture(scope="session")
def checkout(engine: Path, tmp_path_factory: pytest.TempPathFactory, surroundings: dict[str, str]) -> Checkout:
    """A copy of what the platform's stacks need."""
    return Checkout.copied(tmp_path_factory.mktemp("platform"), surroundings)


@pytest.fixture(scope="session")
def two_at_once() -> Iterator[ThreadPoolExecutor]:
    """Where stacks run side by side: one command alone leaves half of two cores idle."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield pool


@pytest.fixture
def tiny(engine: Path, tmp_path: Path, surroundings: dict[str, str]) -> Starter:
    """Starts a stack of a small program that is given as text."""

    def start(program: str, config: Mapping[str, Any] | None = None) -> Stack:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text(PROJECT, encoding="utf-8")
        (folder / "__main__.py").write_text(program, encoding="utf-8")
        return Stack(folder, tmp_path / "stack", environment=surroundings).start(
            {"aws:region": "eu-central-1", **(config or {})}
        )

    return start
