"""What every test shares: where the checkout is, and how hypothesis behaves."""

import functools
import gc
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import httpcore2
import pytest
from hypothesis import HealthCheck, Phase, settings

from sources import policy_file

# No deadline: a busy machine is not a bug. The same examples are tried each time, so that a change is judged by itself;
# LAWS=new tries others.
# No explain phase: on a failure it takes minutes to tell which lines always ran.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink)
# 50 examples a law unless it asks for more: the suite runs often.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES, max_examples=50
)
settings.register_profile("same", settings.get_profile("house"), derandomize=True, database=None)
settings.load_profile("house" if os.environ.get("LAWS") == "new" else "same")

ROOT = Path(__file__).resolve().parent.parent


def keep_certificates() -> None:
    """A client reads every authority's certificate, 30 ms that each of a hundred polls of loopback would spend."""
    make = httpcore2.default_ssl_context

    @functools.cache
    def kept(trust_env: bool, *_where: str | None) -> object:
        return make(_trust_env=trust_env)

    def context(*, _trust_env: bool = True) -> object:
        return kept(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    httpcore2.default_ssl_context = context


keep_certificates()


def keep_policies() -> None:
    """The policy in this repository is parsed once: each control plane and each command of a test reads it."""
    parse = policy_file.parse
    policy_file.parse = functools.lru_cache(maxsize=8)(parse)


keep_policies()


def pytest_sessionstart() -> None:
    """Collecting makes a million objects that stay: searches for garbage among them took a fifth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays, so that no search for garbage looks through it, not even one."""
    gc.freeze()
    gc.enable()


LONG = (
    "tests/cli/test_demo_end_to_end.py",
    "tests/local/test_up_and_down.py",
    "tests/contracts/test_reference_commands_in_docs.py",
)
"""Files whose few tests take a minute together: one that begins last keeps a single core busy when all else is done."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers take the long files first, then those with the most tests; a file's tests stay in their order."""
    if not hasattr(config, "workerinput"):
        return
    counts = Counter(item.path for item in items)
    long = {ROOT / name for name in LONG}
    items.sort(key=lambda item: (item.path not in long, -counts[item.path], str(item.path)))


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: while one waits for a process that it started, another one works."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def ci_script() -> Callable[[str], ModuleType]:
    """Makes a module of a script of `.ci`, which is no package."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"enginehouse_ci_{name}", ROOT / ".ci" / f"{name}.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load
