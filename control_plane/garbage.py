"""When garbage is searched: not while a process starts, and seldom once it serves."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLD = 50_000
"""New objects between two searches for garbage: a review of everything makes many and drops few."""


@contextmanager
def unsearched() -> Iterator[None]:
    """What is made meanwhile stays: searches among it took a fifth of a start."""
    was_searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_searched:
            gc.enable()


def search_seldom() -> None:
    """Once everything that lives as long as the process is there: no later search looks at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD)
