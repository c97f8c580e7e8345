"""Arms by weight and conversation."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.affinity import conversation_key
from gateway.router import pick_arm, usable_endpoints

CONVERSATIONS = [index.to_bytes(4, "big") for index in range(2000)]
WEIGHTS = st.lists(st.floats(min_value=0.01, max_value=100), min_size=1, max_size=5)


def arms_of(world, weights):
    return tuple(world.arm(name=f"arm-{index}", weight=weight) for index, weight in enumerate(weights))


@settings(max_examples=20)
@given(weights=WEIGHTS)
def test_each_arm_gets_its_share_of_conversations(world, weights):
    arms = arms_of(world, weights)
    picked = [pick_arm(arms, conversation).deployment for conversation in CONVERSATIONS]
    for arm in arms:
        share = arm.weight / sum(weights)
        spread = math.sqrt(share * (1 - share) / len(CONVERSATIONS))
        assert abs(picked.count(arm.deployment) / len(CONVERSATIONS) - share) <= 6 * spread + 1e-3


@given(weights=WEIGHTS, conversation=st.binary(max_size=20), seed=st.randoms())
def test_a_conversation_keeps_its_arm_whatever_the_order(world, weights, conversation, seed):
    arms = list(arms_of(world, weights))
    first = pick_arm(arms, conversation)
    seed.shuffle(arms)
    assert pick_arm(arms, conversation) == first


@given(weights=WEIGHTS, conversation=st.binary(max_size=20), which=st.integers(0, 4), factor=st.floats(1, 50))
def test_more_weight_for_an_arm_moves_conversations_to_it_alone(world, weights, conversation, which, factor):
    assume(which < len(weights))
    before = pick_arm(arms_of(world, weights), conversation).deployment
    weights = [weight * factor if index == which else weight for index, weight in enumerate(weights)]
    assert pick_arm(arms_of(world, weights), conversation).deployment in {before, f"arm-{which}"}


@pytest.mark.parametrize("weight", [1e-300, 5e-324, 1e308])
def test_extreme_weights_are_no_trouble(world, weight):
    arms = arms_of(world, [weight, 1.0])
    expected = "arm-0" if weight > 1 else "arm-1"
    assert {pick_arm(arms, conversation).deployment for conversation in CONVERSATIONS[:200]} == {expected}


def test_an_arm_without_weight_or_endpoint_is_never_picked(world):
    empty = world.arm(name="empty").model_copy(update={"endpoints": ()})
    draining = empty.model_copy(update={"endpoints": world.arm(draining=("127.0.0.1:1",)).endpoints[-1:]})
    off = world.arm(name="off", weight=0)
    assert pick_arm((), b"x") is None
    assert pick_arm((empty, draining, off), b"x") is None
    good = world.arm(name="good", weight=0.01)
    assert pick_arm((empty, draining, off, good), b"x") == good


def test_a_draining_endpoint_gets_nothing_new(world):
    arm = world.arm("127.0.0.1:1", draining=("127.0.0.1:2",))
    assert [endpoint.address for endpoint in usable_endpoints(arm)] == ["127.0.0.1:1"]


TEXT = st.text(max_size=20)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": TEXT}))


@given(system=TEXT, first=TEXT, later=MESSAGES)
def test_later_messages_do_not_change_the_conversation(system, first, later):
    start = [{"role": "system", "content": system}, {"role": "user", "content": first}]
    assert key({"messages": start}) == key({"messages": start + later, "temperature": 1})


@given(system=TEXT, one=TEXT, other=TEXT)
def test_shared_instructions_do_not_make_one_conversation(system, one, other):
    assume(one != other)
    chats = [[{"role": "system", "content": system}, {"role": "user", "content": text}] for text in (one, other)]
    assert key({"messages": chats[0]}) != key({"messages": chats[1]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["messages", "prompt", "input", "x"]), JSON))
def test_every_body_has_a_conversation(document):
    assert len(key(document)) == 16


def test_tenants_models_and_prompts_are_kept_apart():
    document = {"prompt": "x"}
    keys = {conversation_key(*names, document) for names in (("a", "m"), ("b", "m"), ("a", "n"), ("am", ""))}
    assert len(keys | {key({"prompt": "y"}), key({"input": "x"})}) == 6


def test_surrogates_and_deep_nesting_are_no_trouble():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    try:
        assert len(key({"prompt": nested})) == 16
    finally:
        while nested:  # taken apart by hand, or its end would recurse
            nested = nested.pop()
    assert len(key({"prompt": "\ud800"})) == 16


def key(document):
    return conversation_key("tenant", "model", document)
