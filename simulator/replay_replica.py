"""One engine of the reference model: a true LRU of full blocks, prompts computed first come first served."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Admitted:
    """What became of a prompt that an engine took."""

    cached_blocks: int
    first_token_at: float
    removed: tuple[int, ...] = ()
    """Blocks that had to leave for it."""


@dataclass(slots=True)
class Replica:
    """One engine; decoding has no limit, so only prompts wait."""

    capacity_blocks: int
    tokens_per_second: float
    life: int = 0
    """Counts restarts: what an earlier life promised is void."""
    requests: int = 0
    computed_tokens: int = 0
    running: int = 0
    """Requests that have not ended, as far as this life knows."""
    _blocks: OrderedDict[int, None] = field(default_factory=OrderedDict)
    _free_at: float = 0.0
    _ends: deque[float] = field(default_factory=deque)
    """When each prompt that was taken is computed."""

    def admit(self, blocks: Sequence[int], input_tokens: int, block_tokens: int, now: float) -> Admitted:
        """Take a prompt."""
        cached = self._cached(blocks)
        removed = self._hold(blocks)
        uncached = input_tokens - cached * block_tokens
        self.requests += 1
        self.running += 1
        self.computed_tokens += uncached
        self._free_at = max(self._free_at, now) + uncached / self.tokens_per_second
        self._ends.append(self._free_at)
        return Admitted(cached, self._free_at, removed)

    def ended(self) -> None:
        """A request of this life is over."""
        self.running -= 1

    def waiting(self, now: float) -> int:
        """Prompts that are taken but not begun."""
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        return max(0, len(self._ends) - 1)

    def restart(self) -> None:
        """Lose everything."""
        self.life += 1
        self.running = 0
        self._free_at = 0.0
        self._blocks.clear()
        self._ends.clear()

    def _cached(self, blocks: Sequence[int]) -> int:
        for depth, block in enumerate(blocks):
            if block not in self._blocks:
                return depth
        return len(blocks)

    def _hold(self, blocks: Sequence[int]) -> tuple[int, ...]:
        """The tail is touched first, so that it leaves before the head."""
        for block in reversed(blocks):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        surplus = len(self._blocks) - self.capacity_blocks
        return tuple(self._blocks.popitem(last=False)[0] for _ in range(surplus))
