"""Host and remote tiers of the KV cache: how many tokens they hold, what they expose, when they pay.

The rule for when they pay comes from replaying a prefix-heavy trace (12,031 requests, 512-token blocks, shared/facts
routing-and-scaling section 2): at 200 blocks per replica no policy reaches a hit ratio above 0.08, at 1,000 to 3,000
prefix routing triples it (0.09 -> 0.31 on 8 replicas), and 10,000 to 30,000 blocks need host memory.
"""

from dataclasses import dataclass
from enum import StrEnum

from fleet.codepath import CACHE, DISAGGREGATION, CodePath

BLOCK_TOKENS = 512
"""Of the replayed trace; a prefix is shared in blocks of this size."""
USELESS_BLOCKS = 200
SMALL_BLOCKS = 1000
HOST_SHARE = 0.5
"""Of a node's memory, for the cache: the rest is for the engine, the page cache and loading weights."""


class TierKind(StrEnum):
    """Where blocks go when the GPU has no room."""

    VLLM_OFFLOAD = "vllm-offload"
    LMCACHE = "lmcache"
    MOONCAKE = "mooncake"


EXPOSES: dict[TierKind, frozenset[CodePath]] = {
    TierKind.VLLM_OFFLOAD: frozenset({CACHE}),
    TierKind.LMCACHE: frozenset({CACHE}),
    TierKind.MOONCAKE: frozenset({CACHE, DISAGGREGATION}),
}
"""Code paths that a tier switches on: a store that peers write to is also a path between nodes."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier for one replica."""

    kind: TierKind
    tokens: int
    """What it holds beside the GPU's cache."""
    exposes: tuple[CodePath, ...]
    pays: bool
    closed: tuple[CodePath, ...]
    """Code paths that advisories close: the tier can't be used."""
    reason: str


def tier_tokens(tier_bytes: int, kv_bytes_per_token: int) -> int:
    """Tokens that so many bytes hold; each token lies there once for the whole model, not once per rank."""
    return tier_bytes // kv_bytes_per_token if kv_bytes_per_token > 0 else 0


def tiers(
    *,
    kv_tokens: int,
    kv_bytes_per_token: int,
    host_bytes_per_replica: int,
    working_set_tokens: int | None = None,
    closed_paths: frozenset[CodePath] = frozenset(),
) -> tuple[Tier, ...]:
    """Every tier with what it holds and whether it pays.

    ``working_set_tokens`` = distinct prompt tokens that come again while they are worth keeping, per replica.
    """
    held = tier_tokens(int(host_bytes_per_replica * HOST_SHARE), kv_bytes_per_token)
    pays, reason = pays_off(kv_tokens, held, working_set_tokens)
    found = []
    for kind in TierKind:
        closed = tuple(sorted(EXPOSES[kind] & closed_paths))
        note = f"{reason}; closed by advisories: {', '.join(closed)}" if closed else reason
        found.append(Tier(kind, held, tuple(sorted(EXPOSES[kind])), pays and not closed, closed, note))
    return tuple(found)


def pays_off(kv_tokens: int, tier: int, working_set: int | None) -> tuple[bool, str]:
    """Whether a tier of so many tokens pays beside a GPU cache of so many."""
    blocks, with_tier = kv_tokens // BLOCK_TOKENS, (kv_tokens + tier) // BLOCK_TOKENS
    if with_tier <= USELESS_BLOCKS:
        return False, (
            f"{blocks} blocks of {BLOCK_TOKENS} tokens on the GPU and {with_tier} with the tier: at {USELESS_BLOCKS} "
            "blocks per replica nothing helps, neither routing nor offload (hit ratio at most 0.08)"
        )
    if working_set is None:
        return blocks < SMALL_BLOCKS, (
            f"{blocks} blocks on the GPU, {with_tier} with the tier; the working set is not known: below "
            f"{SMALL_BLOCKS} blocks per replica a tier is worth trying where prompts share prefixes"
        )
    if working_set <= kv_tokens:
        return (
            False,
            f"the working set of {working_set} tokens fits the GPU's cache of {kv_tokens}: a tier would stay empty",
        )
    share = min(1.0, (kv_tokens + tier) / working_set)
    return True, (
        f"the working set of {working_set} tokens is larger than the GPU's cache of {kv_tokens}; with the tier "
        f"{share:.0%} of it is held"
    )
