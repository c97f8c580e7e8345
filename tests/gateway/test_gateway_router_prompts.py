"""Blocks of prompts: the next turn begins with the blocks of the last, tenants with salts share none."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.affinity import prompt_blocks, session_key
from gateway.prompt_blocks import MAX_BLOCKS, TEXT_BLOCK_BYTES

TEXT = st.text(max_size=40)
LONG = st.text(min_size=1, max_size=30).map(lambda text: text * 80)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXT | LONG}),
    max_size=5,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
TOOLS = st.lists(st.fixed_dictionaries({"type": st.just("function"), "function": JSON}), max_size=2)


def found(document, **more):
    return prompt_blocks(document, model="m", **more)


@given(MESSAGES, MESSAGES, TOOLS)
def test_the_next_turn_begins_with_the_blocks_of_the_last(first, later, tools):
    before = found({"messages": first, "tools": tools})
    after = found({"messages": first + later, "tools": tools, "temperature": 0.5})
    assert after.blocks[: len(before.blocks)] == before.blocks
    assert after.prompt_tokens >= before.prompt_tokens
    assert len(after.blocks) * after.block_tokens <= after.prompt_tokens


@given(LONG, st.sampled_from(["", "x"]), st.integers(0, 2000))
def test_a_changed_character_changes_its_block_and_all_after_it(text, more, place):
    assume(place < len(text))
    other = text[:place] + ("b" if text[place] == "a" else "a") + text[place + 1 :]
    one, two = found({"prompt": text}).blocks, found({"prompt": other}).blocks
    block = len(text[:place].encode()) // TEXT_BLOCK_BYTES
    assert one[:block] == two[:block]
    assert not set(one[block:]) & set(two[block:])


@given(MESSAGES)
def test_a_salt_or_another_model_shares_nothing(messages):
    document = {"messages": messages}
    kinds = [
        prompt_blocks(document, model=model, cache_salt=salt).blocks
        for model, salt in (("m", None), ("m", ""), ("m", "a"), ("m", "b"), ("n", None), ("n", "a"))
    ]
    assert len({block for blocks in kinds for block in blocks}) == sum(len(set(blocks)) for blocks in kinds)


@given(LONG, st.sampled_from(["text", "input_text"]))
def test_a_text_and_its_only_part_are_the_same(text, kind):
    plain = {"messages": [{"role": "user", "content": text}]}
    parts = {"messages": [{"role": "user", "content": [{"type": kind, "text": text}]}]}
    assert found(plain) == found(parts)


def test_an_image_counts_little_and_differs_from_another():
    def chat(data):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        text = {"type": "text", "text": "w" * 600}
        return {"messages": [{"role": "user", "content": [picture, text]}]}

    one, two = found(chat("A" * 100_000)), found(chat("B" * 100_000))
    assert one.prompt_tokens == two.prompt_tokens < 200
    assert one.blocks[0] != two.blocks[0]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=100), st.integers(1, 20))
def test_token_ids_are_cut_as_engines_do(tokens, size):
    blocks = found({"prompt": tokens}, block_tokens=size)
    if tokens:
        assert blocks.prompt_tokens == len(tokens)
        assert len(blocks.blocks) == (len(tokens) - 1) // size
        assert found({"prompt": [tokens, [1, 2]]}, block_tokens=size) == blocks


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.lists(st.integers(0, 9), max_size=40))
def test_longer_token_lists_begin_with_the_blocks_of_shorter_ones(first, later):
    before, after = found({"prompt": first}, block_tokens=4), found({"prompt": first + later}, block_tokens=4)
    assert after.blocks[: len(before.blocks)] == before.blocks


@pytest.mark.parametrize("place", ["instructions", "system"])
def test_instructions_stand_before_the_messages(place):
    shared = {place: "You help. " * 200}
    one = found(shared | {"input": [{"role": "user", "content": "a" * 600}]})
    two = found(shared | {"input": [{"role": "user", "content": "b" * 600}]})
    common = [a for a, b in zip(one.blocks, two.blocks, strict=True) if a == b]
    assert len(common) == 2000 // TEXT_BLOCK_BYTES


@given(st.dictionaries(st.sampled_from(["messages", "prompt", "input", "tools", "system", "instructions"]), JSON))
def test_any_document_has_blocks(document):
    blocks = found(json.loads(json.dumps(document)))
    assert len(blocks.blocks) * blocks.block_tokens <= max(blocks.prompt_tokens, 0) or blocks.block_tokens == 16


def test_a_lone_surrogate_and_a_deep_part_are_no_trouble():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert found({"prompt": "\ud800" * 600}).blocks
    assert found({"messages": [{"role": "user", "content": [{"type": "x", "x": deep}]}]}).blocks == ()


def test_a_huge_prompt_is_known_by_its_beginning():
    blocks = found({"prompt": "x" * (MAX_BLOCKS + 10) * TEXT_BLOCK_BYTES})
    assert len(blocks.blocks) == MAX_BLOCKS
    assert blocks.prompt_tokens == (MAX_BLOCKS + 10) * TEXT_BLOCK_BYTES // 4


def test_sessions_of_two_tenants_differ():
    assert session_key("acme", "m", "s") == session_key("acme", "m", "s")
    others = {session_key("globex", "m", "s"), session_key("acme", "n", "s"), session_key("acme", "m", "t")}
    assert len(others | {session_key("acme", "m", "s")}) == 4
