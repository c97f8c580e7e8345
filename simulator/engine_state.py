"""What an engine looks like at one moment, for the gauges of every dialect."""

import time
from dataclasses import dataclass

from simulator.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class EngineState:
    """The numbers that gauges show."""

    running: int
    waiting: int
    kv_usage: float
    blocks_used: int
    blocks_idle: int
    blocks_total: int
    running_tokens: int
    running_adapters: tuple[str, ...]
    waiting_adapters: tuple[str, ...]
    at: float
    """Seconds since the epoch."""


def state_of(scheduler: Scheduler) -> EngineState:
    """Read the state of a scheduler."""
    pool = scheduler.pool
    return EngineState(
        running=len(scheduler.running),
        waiting=len(scheduler.waiting),
        kv_usage=pool.usage,
        blocks_used=pool.used,
        blocks_idle=pool.idle,
        blocks_total=pool.capacity,
        running_tokens=sum(len(sequence.tokens) for sequence in scheduler.running),
        running_adapters=tuple(sorted({sequence.adapter for sequence in scheduler.running if sequence.adapter})),
        waiting_adapters=tuple(sorted({sequence.adapter for sequence in scheduler.waiting if sequence.adapter})),
        at=time.time(),
    )
