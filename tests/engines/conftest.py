"""What the tests of the catalogue share."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engines.catalogue import Catalogue, load
from fleet.manifest import PinnedManifest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load()


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """The script that makes the golden files."""
    return runpy.run_path(str(HERE / "golden.py"))


@pytest.fixture(scope="session")
def pinned(golden) -> Callable[..., PinnedManifest]:
    """Makes a pinned manifest on an engine and version, with parts of the spec replaced."""
    return golden["pinned"]


@pytest.fixture(scope="session")
def extracts() -> dict[str, Any]:
    """The script that makes the flag extracts."""
    return runpy.run_path(str(HERE / "extract_flags.py"))


@pytest.fixture(scope="session")
def shared(checkout) -> Path:
    """The folder of facts beside the checkout."""
    folder = checkout.parent / "shared"
    if not (folder / "engines" / "flags").is_dir():
        pytest.skip("needs the folder ../shared/engines/flags")
    return folder
