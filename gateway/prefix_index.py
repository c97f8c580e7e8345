"""Which blocks of prompts each endpoint is believed to hold: one bounded LRU per endpoint, as the engines keep. Pure.

A block is known by the hash of all that stands before it and of itself, so a block says its whole prefix. Blocks of a
prompt are noted from the last to the first: the tail is the oldest and leaves before the head, as in the engines, so
that of every prompt a head is held or nothing.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

Block = int
DEFAULT_CAPACITY_BLOCKS = 8_192
"""A million tokens in blocks of text; about 2.5 MB of memory for each endpoint."""
DEFAULT_TTL_SECONDS = 1_800.0
"""An engine under load has replaced all its blocks long before; an idle one may keep them, which costs one miss."""


@dataclass(slots=True)
class _Held:
    """What one endpoint holds, the least recently used first, with the second at which it was last used."""

    bit: int
    capacity_blocks: int
    used_at: OrderedDict[Block, float] = field(default_factory=OrderedDict)


class PrefixIndex:
    """What is believed about the caches of all endpoints; the memory is bounded by their capacities."""

    def __init__(
        self,
        *,
        capacity_blocks: int = DEFAULT_CAPACITY_BLOCKS,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> None:
        self._capacity_blocks = capacity_blocks
        self._ttl_seconds = ttl_seconds
        self._held: dict[str, _Held] = {}
        self._holders: dict[Block, int] = {}
        """Block -> the bits of the endpoints that hold it: a prompt is looked up once, not once per endpoint."""
        self._addresses: dict[int, str] = {}
        self._all_bits = 0
        self._work_tokens: dict[Block, int] = {}
        """Block -> what prompts that were known as far as this block had to be computed after it."""

    def depths(self, blocks: Sequence[Block], now: float) -> dict[str, int]:
        """How many blocks from the first on each endpoint holds; endpoints that hold none are left out."""
        self._expire(now)
        found: dict[str, int] = {}
        open_bits, holders = self._all_bits, self._holders
        for depth, block in enumerate(blocks):
            still = open_bits & holders.get(block, 0)
            if depth and still != open_bits:
                self._note_depth(found, open_bits & ~still, depth)
            open_bits = still
            if not open_bits:
                return found
        if blocks:
            self._note_depth(found, open_bits, len(blocks))
        return found

    def note(self, address: str, blocks: Sequence[Block], now: float) -> None:
        """An endpoint got a prompt or said that it holds its blocks; of more than its capacity only the head stays."""
        held = self._of(address)
        used_at, holders = held.used_at, self._holders
        for block in reversed(blocks[: held.capacity_blocks]):
            if block in used_at:
                used_at.move_to_end(block)
            else:
                holders[block] = holders.get(block, 0) | held.bit
            used_at[block] = now
        self._trim(held)

    def add_work(self, block: Block, tokens: int) -> None:
        """A prompt was known nowhere further than this block; so many tokens after it had to be computed."""
        if block in self._holders:
            self._work_tokens[block] = self._work_tokens.get(block, 0) + tokens

    def work_tokens(self, block: Block) -> int:
        """What was computed after a block, as long as any endpoint holds it."""
        return self._work_tokens.get(block, 0)

    def drop(self, address: str, blocks: Iterable[Block]) -> None:
        """An endpoint said that it no longer holds these blocks."""
        held = self._held.get(address)
        if held is None:
            return
        for block in blocks:
            if held.used_at.pop(block, None) is not None:
                self._unhold(held, block)

    def reset(self, address: str) -> None:
        """An endpoint has restarted: it holds nothing."""
        held = self._held.get(address)
        if held is not None:
            self.drop(address, tuple(held.used_at))

    def keep_only(self, addresses: Collection[str]) -> None:
        """Forget the endpoints that are not among these."""
        for address in [known for known in self._held if known not in addresses]:
            self.reset(address)
            bit = self._held.pop(address).bit
            del self._addresses[bit]
            self._all_bits ^= bit

    def set_capacity(self, address: str, capacity_blocks: int) -> None:
        """How many blocks an endpoint can hold, host memory included; what is too much leaves at once."""
        held = self._of(address)
        held.capacity_blocks = max(0, capacity_blocks)
        self._trim(held)

    def held_by(self, address: str) -> tuple[Block, ...]:
        """What an endpoint is believed to hold, the least recently used first."""
        held = self._held.get(address)
        return () if held is None else tuple(held.used_at)

    def count(self, address: str) -> int:
        """How many blocks an endpoint is believed to hold."""
        held = self._held.get(address)
        return 0 if held is None else len(held.used_at)

    def _of(self, address: str) -> _Held:
        held = self._held.get(address)
        if held is None:
            bit = 1
            while bit in self._addresses:
                bit <<= 1
            held = self._held[address] = _Held(bit, self._capacity_blocks)
            self._addresses[bit] = address
            self._all_bits |= bit
        return held

    def _note_depth(self, found: dict[str, int], bits: int, depth: int) -> None:
        while bits:
            lowest = bits & -bits
            found[self._addresses[lowest]] = depth
            bits ^= lowest

    def _expire(self, now: float) -> None:
        for held in self._held.values():
            while held.used_at and now - next(iter(held.used_at.values())) > self._ttl_seconds:
                self._unhold(held, held.used_at.popitem(last=False)[0])

    def _trim(self, held: _Held) -> None:
        for _ in range(len(held.used_at) - held.capacity_blocks):
            self._unhold(held, held.used_at.popitem(last=False)[0])

    def _unhold(self, held: _Held, block: Block) -> None:
        others = self._holders[block] ^ held.bit
        if others:
            self._holders[block] = others
        else:
            del self._holders[block]
            self._work_tokens.pop(block, None)
