"""KV events of engines: both shapes, real captures, restarts and gaps, and nothing of a prompt in an error."""

import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.affinity import prompt_blocks
from gateway.engine_blocks import Cleared, EngineBlocks, Removed, Stored
from gateway.kv_events import AllCleared, BlocksRemoved, BlocksStored, KvEventError, read_batch

SIZE = 4
CAPTURES = Path(__file__).parents[3] / "shared" / "engines" / "captures"
HASH = st.one_of(st.integers(0, 2**64 - 1), st.binary(min_size=32, max_size=32))
TOKENS = st.lists(st.integers(0, 2**20), min_size=SIZE, max_size=6 * SIZE).map(lambda t: t[: len(t) // SIZE * SIZE])


def stored(hashes, tokens, parent=None, **more):
    event = {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": parent,
        "token_ids": list(tokens),
        "block_size": SIZE,
        "lora_id": None,
        "medium": "GPU",
        "lora_name": None,
        "extra_keys": None,
        "group_idx": 0,
    }
    return event | more


def removed(hashes, **more):
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU", "group_idx": 0} | more


CLEARED = {"type": "AllBlocksCleared"}


def packed(*events, at=1.0, shape="map"):
    written = [list(event.values()) if shape == "array" else event for event in events]
    return msgspec.msgpack.encode([at, written, 0])


def batch(*events, at=1.0):
    return read_batch(packed(*events, at=at))


@given(TOKENS, st.data())
def test_both_shapes_say_the_same(tokens, data):
    count = len(tokens) // SIZE
    hashes = data.draw(st.lists(HASH, min_size=count, max_size=count))
    events = [stored(hashes, tokens, data.draw(st.none() | HASH)), removed(hashes), CLEARED]
    as_maps, as_arrays = (read_batch(packed(*events, shape=shape)) for shape in ("map", "array"))
    assert as_maps == as_arrays
    assert [type(event) for event in as_maps.events] == [BlocksStored, BlocksRemoved, AllCleared]
    assert as_maps.events[0].tokens == tuple(tokens)
    assert as_maps.events[0].hashes == as_maps.events[1].hashes == tuple(hashes)


def test_an_old_array_without_later_fields_is_read():
    payload = msgspec.msgpack.encode([2.5, [["BlockStored", [1], None, [1, 2, 3, 4], 4, None], ["BlockRemoved", [1]]]])
    assert read_batch(payload).at_unix_seconds == 2.5
    assert [type(event) for event in read_batch(payload).events] == [BlocksStored, BlocksRemoved]


def test_unknown_kinds_and_other_groups_of_layers_are_counted_and_left():
    found = batch({"type": "BlockMoved", "x": 1}, stored([1], [1, 2, 3, 4], group_idx=1), removed([1]))
    assert found.unread == 2
    assert len(found.events) == 1


SECRET = "s3cret-salt"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\x81\xa1",
        msgspec.msgpack.encode(SECRET),
        msgspec.msgpack.encode([1.0]),
        msgspec.msgpack.encode([SECRET, []]),
        msgspec.msgpack.encode([1.0, SECRET]),
        msgspec.msgpack.encode([1.0, [SECRET]]),
        msgspec.msgpack.encode([1.0, [[]]]),
        packed(stored([SECRET], [1, 2, 3, 4])),
        packed(stored([1], [1, 2, 3, SECRET])),
        packed(stored([1], [1, 2, 3])),
        packed(stored([1], [1, 2, 3, -4])),
        packed(stored([True], [1, 2, 3, 4])),
        packed(stored([1], [1, 2, 3, 4], parent=SECRET)),
        packed(stored([1], [1, 2, 3, 4], block_size=0)),
        packed(removed(SECRET) | {"block_hashes": SECRET}),
    ],
)
def test_what_is_no_event_is_refused_without_being_quoted(payload):
    with pytest.raises(KvEventError) as refused:
        read_batch(payload)
    assert SECRET not in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_events_or_an_error(payload):
    with contextlib.suppress(KvEventError):
        read_batch(payload)


def test_nothing_of_a_prompt_shows_in_a_repr():
    found = batch(stored([77777], [88881, 88882, 88883, 88884], extra_keys=[[SECRET]]), removed([77777]))
    assert not any(word in repr(found) for word in ("77777", "88881", SECRET))


# --- Into the blocks of the index ---
def blocks_of(tokens, salt=None, model="m"):
    return prompt_blocks({"prompt": [*tokens, 0]}, model=model, cache_salt=salt, block_tokens=SIZE).blocks


@given(TOKENS, st.sampled_from([None, "tenant-a"]), st.sampled_from([None, "lora-a"]), st.integers(0, 6))
def test_events_name_the_blocks_that_the_gateway_hashes_itself(tokens, salt, lora, cut):
    count = len(tokens) // SIZE
    cut = min(cut, count)
    first = [key for key in (lora, salt) if key]
    extra = [first or None, *[None] * (count - 1)]
    events = []
    if cut:
        events.append(stored(range(cut), tokens[: cut * SIZE], lora_name=lora, extra_keys=extra[:cut]))
    if cut < count:
        parent = cut - 1 if cut else None
        event = stored(range(cut, count), tokens[cut * SIZE :], parent, lora_name=lora, extra_keys=extra[cut:])
        events.append(event)
    engine = EngineBlocks("m", 100)
    found = tuple(block for change in engine.read(0, batch(*events)) for block in change.blocks)
    assert found == blocks_of(tokens, salt, lora or "m")
    gone = list(engine.read(1, batch(removed(range(count)))))
    assert gone == [Removed(found)]
    assert list(engine.read(2, batch(removed(range(count))))) == []


def test_blocks_after_an_unknown_parent_are_counted_and_left():
    engine = EngineBlocks("m", 100)
    assert list(engine.read(5, batch(stored([1, 2], range(8), parent=99)))) == []
    assert engine.unplaced_blocks == 2
    assert engine.missed_messages == 0
    list(engine.read(9, batch(CLEARED)))
    assert engine.missed_messages == 3


def test_a_block_is_gone_when_it_lies_nowhere_any_more():
    engine = EngineBlocks("m", 100)
    tokens = range(SIZE)
    list(engine.read(0, batch(stored([1], tokens), stored([1], tokens, medium="CPU"))))
    assert list(engine.read(1, batch(removed([1])))) == []
    assert list(engine.read(2, batch(removed([1], medium="CPU")))) == [Removed(blocks_of(tokens))]


def test_a_message_read_twice_says_nothing_and_a_new_process_clears():
    engine = EngineBlocks("m", 100)
    message = batch(stored([1], range(SIZE)), at=10.0)
    assert list(engine.read(3, message)) == [Stored(blocks_of(range(SIZE)))]
    assert list(engine.read(3, message)) == []
    assert list(engine.read(0, batch(at=11.0))) == [Cleared()]
    assert list(engine.read(1, batch(stored([2], range(8)[SIZE:], parent=1), at=12.0))) == []
    assert list(engine.read(2, batch(CLEARED, at=13.0))) == [Cleared()]


@given(st.lists(st.integers(0, 50), max_size=60))
def test_what_is_remembered_of_an_engine_is_bounded(heads):
    engine = EngineBlocks("m", 5)
    for sequence, head in enumerate(heads):
        list(engine.read(sequence, batch(stored([head], [head] * SIZE), at=float(sequence))))
    assert len(engine._known) <= 5


@pytest.mark.parametrize("name", ["vllm32_kv_events", "vllm32_kv_events_small"])
def test_captured_events_of_a_real_engine_name_our_own_blocks(name):
    path = CAPTURES / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the captures of real engines are not beside this checkout")
    messages = [json.loads(line) for line in path.read_text().splitlines()]
    engine, compared = EngineBlocks("m", 100_000), 0
    for message in (message for message in messages if "payload_hex" in message):
        found = read_batch(bytes.fromhex(message["payload_hex"]))
        changes = [change for change in engine.read(message["seq"], found) if isinstance(change, Stored)]
        events = [event for event in found.events if isinstance(event, BlocksStored)]
        assert found.unread == 0
        for event, change in zip(events, changes, strict=True):
            if event.parent is None and event.lora_name is None and event.extra_keys[0] is None:
                own = prompt_blocks({"prompt": [*event.tokens, 1]}, model="m", block_tokens=event.block_tokens)
                assert change.blocks == own.blocks
                compared += 1
    assert compared > 0
    assert engine.unplaced_blocks == 0
