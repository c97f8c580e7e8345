"""What endpoints are believed to hold, apart for each size of block: of text, of token ids as each engine cuts them.

An engine's capacity is in tokens; how many blocks that are depends on their size, and blocks of different sizes are
never equal. Pure.
"""

from collections.abc import Callable, Collection

from gateway.prefix_index import PrefixIndex

MOST_SIZES = 16
"""Text, and the block sizes of the engines of one fleet; of more the one that came first is forgotten."""


class PrefixIndexes:
    """One index for each size."""

    def __init__(self, make: Callable[[], PrefixIndex], most_blocks: int) -> None:
        self._make = make
        self._most_blocks = most_blocks
        self._by_size: dict[int, PrefixIndex] = {}
        self._capacity_tokens: dict[str, int] = {}

    def of(self, block_tokens: int) -> PrefixIndex:
        """The index of blocks of this size."""
        index = self._by_size.get(block_tokens)
        if index is None:
            index = self._by_size[block_tokens] = self._make()
            for address, tokens in self._capacity_tokens.items():
                index.set_capacity(address, self._blocks(tokens, block_tokens))
            if len(self._by_size) > MOST_SIZES:
                del self._by_size[next(iter(self._by_size))]
        return index

    def set_capacity(self, address: str, tokens: int) -> None:
        """How many tokens an endpoint can hold; what is too much leaves at once."""
        self._capacity_tokens[address] = tokens
        for block_tokens, index in self._by_size.items():
            index.set_capacity(address, self._blocks(tokens, block_tokens))

    def reset(self, address: str) -> None:
        """An endpoint holds nothing."""
        for index in self._by_size.values():
            index.reset(address)

    def keep_only(self, addresses: Collection[str]) -> None:
        """Forget the endpoints that are not among these."""
        for index in self._by_size.values():
            index.keep_only(addresses)
        self._capacity_tokens = {name: held for name, held in self._capacity_tokens.items() if name in addresses}

    def _blocks(self, tokens: int, block_tokens: int) -> int:
        return min(tokens // block_tokens, self._most_blocks)
