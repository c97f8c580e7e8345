"""Which data-parallel ranks of one engine hold a block: it is gone when the last of them has given it up. Pure."""

from collections import OrderedDict
from collections.abc import Iterable

from gateway.prefix_index import Block


class RankBlocks:
    """What the ranks of one engine hold together; its memory is bounded."""

    def __init__(self, capacity_blocks: int) -> None:
        self._capacity = max(1, capacity_blocks)
        self._held: OrderedDict[Block, int] = OrderedDict()
        """One bit for each rank, the oldest block first."""

    def __len__(self) -> int:
        return len(self._held)

    def store(self, rank: int, blocks: Iterable[Block]) -> None:
        """A rank holds these."""
        for block in blocks:
            self._held[block] = self._held.get(block, 0) | 1 << rank
            self._held.move_to_end(block)
        while len(self._held) > self._capacity:
            self._held.popitem(last=False)

    def remove(self, rank: int, blocks: Iterable[Block]) -> tuple[Block, ...]:
        """A rank holds these no longer; what no rank holds now, as far as is known."""
        return tuple(block for block in blocks if self._leave(rank, block))

    def clear(self, rank: int) -> tuple[Block, ...]:
        """A rank holds nothing; what no rank holds now."""
        own = [block for block, ranks in self._held.items() if ranks >> rank & 1]
        return self.remove(rank, own)

    def _leave(self, rank: int, block: Block) -> bool:
        left = self._held.get(block, 0) & ~(1 << rank)
        if left:
            self._held[block] = left
        else:
            self._held.pop(block, None)
        return not left
