"""KV tiers: what they hold, when they pay, what they expose."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.kv_tiers import TierKind, tier_tokens, tiers

TOKENS = st.integers(min_value=0, max_value=10_000_000)
PER_TOKEN = st.integers(min_value=1, max_value=1_000_000)


@given(size=st.integers(min_value=0, max_value=1 << 42), per_token=PER_TOKEN)
def test_a_tier_never_holds_more_than_its_bytes(size, per_token):
    held = tier_tokens(size, per_token)
    assert held * per_token <= size < (held + 1) * per_token


@given(kv_tokens=TOKENS, per_token=PER_TOKEN, working=st.one_of(st.none(), TOKENS))
def test_a_tier_that_pays_is_needed_and_large_enough_to_matter(kv_tokens, per_token, working):
    found = tiers(
        kv_tokens=kv_tokens, kv_bytes_per_token=per_token, host_bytes_per_replica=1 << 38, working_set_tokens=working
    )
    for tier in found:
        if tier.pays:
            assert (kv_tokens + tier.tokens) // 512 > 200
            assert working is None or working > kv_tokens


@given(kv_tokens=TOKENS, per_token=PER_TOKEN)
def test_a_closed_path_closes_every_tier_that_needs_it(kv_tokens, per_token):
    found = tiers(
        kv_tokens=kv_tokens,
        kv_bytes_per_token=per_token,
        host_bytes_per_replica=1 << 38,
        closed_paths=frozenset({"disaggregation"}),
    )
    closed = {tier.kind for tier in found if tier.closed}
    assert closed == {TierKind.MOONCAKE}
    assert not any(tier.pays for tier in found if tier.closed)


def test_at_two_hundred_blocks_nothing_helps_and_the_answer_says_so():
    """Qwen3-8B fp8 on an L4 holds about 190 blocks of 512 tokens; a small host adds next to nothing."""
    found = tiers(kv_tokens=97_000, kv_bytes_per_token=147_456, host_bytes_per_replica=1 << 30)
    assert not any(tier.pays for tier in found)
    assert all("nothing helps" in tier.reason for tier in found)


def test_a_working_set_beyond_the_gpu_pays():
    found = tiers(
        kv_tokens=500_000,
        kv_bytes_per_token=147_456,
        host_bytes_per_replica=1 << 40,
        working_set_tokens=2_000_000,
    )
    assert all(tier.pays for tier in found)
    assert "100% of it is held" in found[0].reason
