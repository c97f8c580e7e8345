"""The KV blocks of one engine: chained block hashes, references, and eviction of the least recently used.

A prefix is found again only with the same salt and adapter, because both are hashed into the first block.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

BlockKey = bytes


def first_key(salt: str | None, adapter: str | None) -> BlockKey:
    """Return the key before the first block: it keeps tenants and adapters apart."""
    return hashlib.blake2b(repr((salt, adapter)).encode(), digest_size=16).digest()


def next_key(parent: BlockKey, tokens: Sequence[int]) -> BlockKey:
    """Return the key of a full block that follows `parent`."""
    packed = b"".join(token.to_bytes(4, "big") for token in tokens)
    return hashlib.blake2b(parent + packed, digest_size=16).digest()


def keys_of(tokens: Sequence[int], block_size: int, root: BlockKey) -> tuple[BlockKey, ...]:
    """Return the keys of all full blocks of a prompt."""
    keys: list[BlockKey] = []
    parent = root
    for start in range(0, len(tokens) - block_size + 1, block_size):
        parent = next_key(parent, tokens[start : start + block_size])
        keys.append(parent)
    return tuple(keys)


@dataclass(slots=True)
class Lease:
    """The blocks that one sequence holds: full ones by key, then blocks that are still being written."""

    keys: list[BlockKey] = field(default_factory=list)
    open_blocks: int = 0

    @property
    def blocks(self) -> int:
        """Return how many blocks the lease counts, shared ones included."""
        return len(self.keys) + self.open_blocks


class BlockPool:
    """All blocks of the KV cache. Blocks in use are never evicted; idle cached ones leave oldest first."""

    def __init__(self, capacity: int, *, keeps_prefixes: bool = True) -> None:
        self.capacity = capacity
        self._keeps_prefixes = keeps_prefixes
        self._references: dict[BlockKey, int] = {}
        self._idle: OrderedDict[BlockKey, None] = OrderedDict()
        self._open_blocks = 0

    @property
    def used(self) -> int:
        """Return the number of blocks that some sequence holds."""
        return len(self._references) + self._open_blocks

    @property
    def idle(self) -> int:
        """Return the number of cached blocks that nobody holds."""
        return len(self._idle)

    @property
    def usage(self) -> float:
        """Return the share of blocks in use, from 0 to 1."""
        return self.used / self.capacity

    def match(self, keys: Sequence[BlockKey]) -> int:
        """Return how many leading keys are in the cache."""
        for position, key in enumerate(keys):
            if key not in self._references and key not in self._idle:
                return position
        return len(keys)

    def lease(self, hits: Sequence[BlockKey], new_blocks: int) -> Lease | None:
        """Hold the hit blocks and `new_blocks` fresh ones, or return `None` when there is no room."""
        woken = sum(1 for key in hits if key in self._idle)
        if self.used + woken + new_blocks > self.capacity:
            return None
        for key in hits:
            self._hold(key)
        self._make_room(new_blocks)
        self._open_blocks += new_blocks
        return Lease(list(hits), new_blocks)

    def grow(self, lease: Lease) -> bool:
        """Add one fresh block to a lease; false when there is no room."""
        if self.used + 1 > self.capacity:
            return False
        self._make_room(1)
        self._open_blocks += 1
        lease.open_blocks += 1
        return True

    def fill(self, lease: Lease, key: BlockKey) -> None:
        """Mark the lease's oldest open block as full, so that others can find it (if prefixes are kept)."""
        if not self._keeps_prefixes:
            return
        lease.open_blocks -= 1
        self._open_blocks -= 1
        self._hold(key)
        lease.keys.append(key)

    def release(self, lease: Lease) -> None:
        """Give all blocks back; the tail of a prefix becomes the first to be evicted."""
        self._open_blocks -= lease.open_blocks
        lease.open_blocks = 0
        while lease.keys:
            self._let_go(lease.keys.pop())

    def _hold(self, key: BlockKey) -> None:
        self._idle.pop(key, None)
        self._references[key] = self._references.get(key, 0) + 1

    def _let_go(self, key: BlockKey) -> None:
        left = self._references.pop(key) - 1
        if left:
            self._references[key] = left
        else:
            self._idle[key] = None

    def _make_room(self, blocks: int) -> None:
        while self._idle and self.used + blocks + len(self._idle) > self.capacity:
            self._idle.popitem(last=False)
