"""Translates the blocks that one engine names into the blocks of the prefix index. Pure.

An engine's hashes mean nothing outside of it; its events hold the tokens, so the gateway's own chain can be made of
them, after the parent that an earlier event named.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gateway.kv_events import AllCleared, BlockHash, BlocksRemoved, BlocksStored, KvEventBatch
from gateway.prefix_index import Block
from gateway.prompt_blocks import block_number, chain_root, cut, next_block


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks of one prompt that the engine holds, one after the other."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks that the engine holds no longer."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Cleared:
    """The engine holds nothing: it was cleared or is a new process."""


Change = Stored | Removed | Cleared


class EngineBlocks:
    """What one engine (of one data-parallel rank) has named so far; its memory is bounded."""

    def __init__(self, model: str, capacity_blocks: int) -> None:
        self.model = model
        self._capacity = max(1, capacity_blocks)
        self._known: OrderedDict[BlockHash, tuple[bytes, frozenset[str]]] = OrderedDict()
        """The engine's hash -> the own hash, and where the block lies (GPU, host memory)."""
        self.sequence = -1
        """The number of the last message that was read."""
        self.block_tokens = 1
        """How many tokens each block has, as it last said."""
        self._at_unix_seconds = 0.0
        self.missed_messages = 0
        self.unplaced_blocks = 0
        """Blocks whose parent was never named, since the gateway came later or missed a message."""

    def anew(self) -> "EngineBlocks":
        """Those of a new process, of which nothing was heard yet."""
        return EngineBlocks(self.model, self._capacity)

    def read(self, sequence: int, batch: KvEventBatch) -> Iterator[Change]:
        """The changes that a message tells; one that was read before tells nothing."""
        if sequence <= self.sequence:
            if batch.at_unix_seconds <= self._at_unix_seconds:
                return
            self._known.clear()  # the numbers start anew: another process
            yield Cleared()
        else:
            self.missed_messages += sequence - self.sequence - 1 if self.sequence >= 0 else 0
        self.sequence, self._at_unix_seconds = sequence, batch.at_unix_seconds
        for event in batch.events:
            change = self._change(event)
            if change is not None:
                yield change

    def _change(self, event: BlocksStored | BlocksRemoved | AllCleared) -> Change | None:
        if isinstance(event, AllCleared):
            self._known.clear()
            return Cleared()
        if isinstance(event, BlocksRemoved):
            gone = tuple(number for hash_ in event.hashes if (number := self._remove(hash_, event.medium)) is not None)
            return Removed(gone) if gone else None
        return self._store(event)

    def _store(self, event: BlocksStored) -> Stored | None:
        digest = self._before(event)
        if digest is None:
            self.unplaced_blocks += len(event.hashes)
            return None
        self.block_tokens, found, chunks = event.block_tokens, [], cut(event.tokens, event.block_tokens)
        for hash_, chunk in zip(event.hashes, chunks, strict=True):
            digest = next_block(digest, chunk)
            _, media = self._known.get(hash_, (digest, frozenset()))
            self._known[hash_] = (digest, _joined(media, event.medium))
            self._known.move_to_end(hash_)
            found.append(block_number(digest))
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return Stored(tuple(found))

    def _before(self, event: BlocksStored) -> bytes | None:
        """The own hash before the first block: of its parent, or the root of model and salt."""
        if event.parent is not None:
            known = self._known.get(event.parent)
            return None if known is None else known[0]
        first = event.extra_keys[0] if event.extra_keys else None
        keys = [key for key in first if key != event.lora_name] if isinstance(first, list) else []
        # The salt is the last of the keys; the others are of media, which no text or token ids can name.
        salt = keys[-1] if keys and isinstance(keys[-1], str) else None
        return chain_root(event.lora_name or self.model, salt)

    def _remove(self, hash_: BlockHash, medium: str) -> Block | None:
        """The own number of a block that now lies nowhere."""
        known = self._known.get(hash_)
        if known is None:
            return None
        digest, media = known
        if media - {medium}:
            self._known[hash_] = (digest, media - {medium})
            return None
        del self._known[hash_]
        return block_number(digest)


@lru_cache(maxsize=64)
def _joined(media: frozenset[str], medium: str) -> frozenset[str]:
    """One set for all blocks that lie in the same places."""
    return media | {medium}
