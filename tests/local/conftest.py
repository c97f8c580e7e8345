"""Fake rooms, and waiting for a real condition with a deadline."""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from local import ports
from local.ending import end, marked
from local.layout import Layout
from local.room import Room

CHANCE = random.Random()  # noqa: S311 - a port is no secret
FAKE = Path(__file__).with_name("fake_room.py")


def until(condition: Callable[[], object], *, seconds: float = 10.0) -> None:
    """Wait for a condition of a real process."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


@pytest.fixture
def layout(tmp_path):
    """A state folder, empty of processes afterwards whatever the test did."""
    layout = Layout(tmp_path / "state")
    layout.create()
    yield layout
    end(marked(layout.state), grace_seconds=0.0)


@pytest.fixture
def fake_room(layout, tmp_path):
    """Makes rooms of the fake program; `journal` lists their starts and ends."""

    def make(name: str, *words: str, **changes: object) -> Room:
        (port,) = ports.pick(1, chance=CHANCE)
        ready = layout.ready_file(name)
        argv = (sys.executable, str(FAKE), name, str(port), str(ready), str(tmp_path / "journal"), *words)
        room = {
            "name": name,
            "argv": argv,
            "log": layout.logs / f"{name}.log",
            "ports": (port,),
            "probes": (f"http://127.0.0.1:{port}/",),
            "ready_file": ready,
            "grace_seconds": 2.0,
        }
        return Room(**(room | changes))

    return make


@pytest.fixture
def journal(tmp_path):
    """The lines that the fake rooms wrote."""

    def lines() -> list[str]:
        path = tmp_path / "journal"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    return lines


@pytest.fixture
def environment():
    """What a child process gets to see."""
    return dict(os.environ)


@pytest.fixture
def eventually():
    """Waits for a condition with a deadline."""
    return until
