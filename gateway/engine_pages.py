"""Reads what a router needs of an engine's metrics: the few lines of a long page of Prometheus text. Pure.

A page of vLLM has some 600 lines; each name is searched for, so that the others cost next to nothing.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from fleet.engine import MetricsDialect

MOST = 10**9
"""More requests, blocks or tokens than any engine has; a figure above it is cut to it."""
STARTED = "process_start_time_seconds"
_OTHER_RANK = re.compile(rb'[{,](?:tp|pp)_rank="(?!0")')
"""Ranks of one engine that compute the same requests together say the same; one of them counts."""
_BLOCKS = re.compile(rb'[{,]num_gpu_blocks="([0-9]{1,10})"')
_BLOCK_SIZE = re.compile(rb'[{,]block_size="([0-9]{1,6})"')


@dataclass(frozen=True, slots=True)
class PageNames:
    """Where an engine has its page, and what stands on it under which names, in any of its versions."""

    path: str
    port: int | None
    """``None`` = the serving port."""
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    kv_usage: tuple[str, ...]
    cache_info: tuple[str, ...]
    cache_tokens: tuple[str, ...]
    counters: tuple[str, ...]
    """What only grows as long as a process lives."""

    @property
    def query(self) -> str:
        """Asks for these names alone, which Python's Prometheus client obeys and others pass over."""
        names = (*self.running, *self.waiting, *self.kv_usage, *self.cache_info, *self.cache_tokens, *self.counters)
        return "&".join(f"name%5B%5D={quote(name, safe=':')}" for name in (*names, STARTED))


@dataclass(frozen=True, slots=True)
class EnginePage:
    """What an engine says of itself; ``None`` = it does not say."""

    running: int
    waiting: int
    kv_usage: float
    cache_tokens: int | None
    block_tokens: int | None
    started_at: float | None
    counted: tuple[float | None, ...]
    """The counters in the order of the names."""

    def is_after_restart(self, before: "EnginePage") -> bool:
        """Whether another process says this than the one before."""
        if self.started_at is not None and before.started_at is not None:
            return self.started_at != before.started_at
        pairs = zip(self.counted, before.counted, strict=True)
        return any(now is not None and then is not None and now < then for now, then in pairs)


def page_names(dialects: Sequence[MetricsDialect]) -> PageNames | None:
    """The names of an engine whose version is not known; ``None`` = it has no page that says how busy it is."""
    first = next((item for item in dialects if item.path and item.running and item.waiting), None)
    if first is None or first.path is None:
        return None
    rows = [item for item in dialects if (item.path, item.port) == (first.path, first.port)]
    return PageNames(
        path=first.path,
        port=first.port,
        running=_each(item.running for item in rows),
        waiting=_each(item.waiting for item in rows),
        kv_usage=_each(item.kv_usage for item in rows),
        cache_info=_each(item.cache_info for item in rows),
        cache_tokens=_each(item.cache_tokens for item in rows),
        counters=_each(
            name
            for item in rows
            for name in (item.prefix_queries, item.prefix_hits, item.e2e_seconds and f"{item.e2e_seconds}_count")
        ),
    )


def read_page(text: bytes, names: PageNames) -> EnginePage | None:
    """What the page says; ``None`` = it says nothing about requests, so it is no page of this engine."""
    page = b"\n" + text
    running, waiting = _total(page, names.running), _total(page, names.waiting)
    if running is None or waiting is None:
        return None
    usages = [value for name in names.kv_usage for _, value in _samples(page, name)]
    cache_tokens, block_tokens = _cache(page, names)
    return EnginePage(
        running=_count(running),
        waiting=_count(waiting),
        kv_usage=min(1.0, max((0.0, *usages))),
        cache_tokens=cache_tokens,
        block_tokens=block_tokens,
        started_at=_total(page, (STARTED,)),
        counted=tuple(_total(page, (name,)) for name in names.counters),
    )


def _each(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _count(value: float) -> int:
    return round(min(max(0.0, value), MOST))


def _total(page: bytes, names: Sequence[str]) -> float | None:
    """The sum over the series of the first name that is there."""
    for name in names:
        values = [value for _, value in _samples(page, name)]
        if values:
            return sum(values)
    return None


def _samples(page: bytes, name: str) -> Iterator[tuple[bytes, float]]:
    """Labels and value of each series of a metric."""
    start = b"\n" + name.encode()
    place = page.find(start)
    while place >= 0:
        begin = place + len(start)
        end = page.find(b"\n", begin)
        sample = _sample(page[begin : end if end >= 0 else len(page)])
        if sample is not None:
            yield sample
        place = page.find(start, begin)


def _sample(line: bytes) -> tuple[bytes, float] | None:
    """What follows a name: ``{labels} value``; ``None`` = the name goes on, or it is no number."""
    if line[:1] not in (b"{", b" "):
        return None
    labels, _, rest = line.rpartition(b"}")
    words = rest.split(None, 1)
    try:
        value = float(words[0]) if words else math.nan
    except ValueError:
        return None
    return None if not math.isfinite(value) or _OTHER_RANK.search(labels) else (labels, value)


def _cache(page: bytes, names: PageNames) -> tuple[int | None, int | None]:
    """How many tokens the cache holds, and in blocks of how many."""
    tokens, block_tokens = 0, None
    for name in names.cache_info:
        for labels, _ in _samples(page, name):
            blocks, size = _BLOCKS.search(labels), _BLOCK_SIZE.search(labels)
            if blocks and size and int(size[1]):
                block_tokens = int(size[1])
                tokens += int(blocks[1]) * block_tokens
    stated = _total(page, names.cache_tokens)
    tokens += _count(stated) if stated is not None else 0
    return (min(tokens, MOST) or None), block_tokens
