"""Chained hashes of the full blocks of a prompt: equal beginnings have equal first blocks, and no others. Pure.

Model and cache salt stand in the root of the chain, so that what one tenant sent is never found for another where the
engines keep them apart as well.
"""

import hashlib
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from gateway.prefix_index import Block

TEXT_BLOCK_BYTES = 512
BYTES_PER_TOKEN = 4
"""A cautious mean of European languages and code; only the ratio between prompts matters to the router."""
MAX_BLOCKS = 4_096
"""A longer prompt is known by its beginning: 2 MB of text, or 64k tokens in blocks of 16."""
_HASH_BYTES = 8


class PromptBlocks(NamedTuple):
    """What the router knows of a prompt."""

    blocks: tuple[Block, ...]
    block_tokens: int
    prompt_tokens: int


def chain_root(model: str, cache_salt: str | None) -> bytes:
    """Where the chain of a model starts, apart for each salt."""
    return _unsalted_root(model) if cache_salt is None else _root(model, cache_salt)


@lru_cache(maxsize=1024)
def _unsalted_root(model: str) -> bytes:
    return _root(model, None)


def _root(model: str, cache_salt: str | None) -> bytes:
    hasher = hashlib.blake2b(digest_size=_HASH_BYTES)
    for part in (model, cache_salt):
        data = b"" if part is None else part.encode("utf-8", "surrogatepass")
        hasher.update(struct.pack("<?Q", part is None, len(data)) + data)
    return hasher.digest()


def text_blocks(text: bytes, root: bytes) -> PromptBlocks:
    """The blocks of a prompt given as text; its tokens are estimated."""
    ends = range(TEXT_BLOCK_BYTES, min(len(text), MAX_BLOCKS * TEXT_BLOCK_BYTES) + 1, TEXT_BLOCK_BYTES)
    chunks = [text[end - TEXT_BLOCK_BYTES : end] for end in ends]
    tokens = -(-len(text) // BYTES_PER_TOKEN)
    return PromptBlocks(_chained(chunks, root), TEXT_BLOCK_BYTES // BYTES_PER_TOKEN, tokens)


def token_blocks(tokens: Sequence[int], root: bytes, block_tokens: int) -> PromptBlocks:
    """The blocks of a prompt given as token ids; engines never take the last token from their cache."""
    full = min((len(tokens) - 1) // block_tokens, MAX_BLOCKS) if tokens else 0
    return PromptBlocks(_chained(cut(tokens[: full * block_tokens], block_tokens), root), block_tokens, len(tokens))


def next_block(parent: bytes, chunk: bytes) -> bytes:
    """The hash of one block after its parent, as :func:`token_blocks` chains them."""
    return hashlib.blake2b(parent + chunk, digest_size=_HASH_BYTES).digest()


def cut(tokens: Sequence[int], block_tokens: int) -> list[bytes]:
    """Token ids in full blocks, as they are hashed."""
    packed, size = struct.pack(f"<{len(tokens)}I", *tokens), 4 * block_tokens
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def block_number(digest: bytes) -> Block:
    """A block's hash as the index keeps it."""
    return int.from_bytes(digest, "little")


def _chained(chunks: Sequence[bytes], root: bytes) -> tuple[Block, ...]:
    digest, found = root, []
    for chunk in chunks:
        digest = hashlib.blake2b(digest + chunk, digest_size=_HASH_BYTES).digest()
        found.append(int.from_bytes(digest, "little"))
    return tuple(found)
