"""Ways to make a start faster, each with its seconds and whether it meets the target."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fleet.cold_start import ColdStart, ColdStartWish, ImageState, Replica, StartMode, cold_start_of

TARGET_SECONDS = 20.0
"""What a replica is asked to take from a scale-up to its first token ("15-20 s from Lustre")."""


@dataclass(frozen=True, slots=True)
class StartOption:
    """One way to start."""

    name: str
    what: str
    start: ColdStart


def start_options(replica: Replica, wish: ColdStartWish) -> Iterator[StartOption]:
    """What can be prepared, each step on top of the one before; then waking instead of starting."""
    ready = replace(wish, is_node_ready=True, image=ImageState.PRELOADED)
    quick = replace(ready, has_compile_cache=True, captures_few_sizes=True, skips_p2p_check=True)
    yield _option("as-planned", "a new node, and everything is done at start", replica, wish)
    yield _option("preloaded", "a spare node with the image on its data volume", replica, ready)
    yield _option("preloaded-cached", "besides, a compile cache, few graph sizes, no P2P check", replica, quick)
    yield _option(
        "sleep-1", "asleep on its GPUs, weights in host memory", replica, replace(quick, mode=StartMode.SLEEP_1)
    )
    yield _option("sleep-2", "asleep on its GPUs without weights", replica, replace(quick, mode=StartMode.SLEEP_2))
    if replica.gpus == 1:
        snapshot = replace(quick, mode=StartMode.SNAPSHOT)
        yield _option("snapshot", "restored from a checkpoint of the process (one GPU only)", replica, snapshot)


def _option(name: str, what: str, replica: Replica, wish: ColdStartWish) -> StartOption:
    return StartOption(name, what, cold_start_of(replica, wish))
