"""The families that every Python Prometheus client exposes about its own process."""

import gc
import os
import platform
import resource
import time
from pathlib import Path

from simulator.exposition import Family

_STARTED = time.time()


def process_families() -> list[Family]:
    """Return garbage collector, interpreter and process families with current values."""
    return [*_collector(), _interpreter(), *_process()]


def _collector() -> list[Family]:
    names = {"objects_collected": "collected", "objects_uncollectable": "uncollectable", "collections": "collections"}
    families: list[Family] = []
    for name, key in names.items():
        family = Family(f"python_gc_{name}_total", "counter")
        for generation, counted in enumerate(gc.get_stats()):
            family.set({"generation": str(generation)}, counted[key])
        families.append(family)
    return families


def _interpreter() -> Family:
    family = Family("python_info", "gauge")
    major, minor, patch = platform.python_version_tuple()
    labels = {"implementation": platform.python_implementation(), "major": major, "minor": minor}
    family.set({**labels, "patchlevel": patch, "version": platform.python_version()}, 1)
    return family


def _process() -> list[Family]:
    page = resource.getpagesize()
    sizes = Path("/proc/self/statm").read_text(encoding="ascii").split()
    values = {
        "virtual_memory_bytes": ("gauge", int(sizes[0]) * page),
        "resident_memory_bytes": ("gauge", int(sizes[1]) * page),
        "start_time_seconds": ("gauge", _STARTED),
        "cpu_seconds_total": ("counter", time.process_time()),
        "open_fds": ("gauge", len(os.listdir("/proc/self/fd"))),
        "max_fds": ("gauge", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    }
    families: list[Family] = []
    for name, (kind, value) in values.items():
        family = Family(f"process_{name}", kind)
        family.set({}, value)
        families.append(family)
    return families
