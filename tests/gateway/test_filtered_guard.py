"""The output filter in the guard: nothing that is masked leaves, held text leaves in time, every end is a real one."""

import asyncio
import gzip
import json
from collections import Counter

import pytest

from fleet.output_policy import FailureMode, Mode, Moderation
from gateway.filtered_outlet import AT_ONCE_BYTES
from gateway.passage import End
from gateway.token_usage import TokenUsage
from tests.gateway.filtering import MASKED, TEXT, VALUES, Watch, contents, filter_of, is_clean
from tests.gateway.guarded import (
    LAST_PIECE,
    STREAM_HEAD,
    FakeEngine,
    FakePassage,
    ask,
    event,
    guarding,
    piece,
    until,
    wait_for_end,
    whole_answer,
)

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
USAGE_EVENT = b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
BLOCKING = {"classes": {"card": Mode.BLOCK}}
TOO_DEEP = b"data: " + b"[" * 300 + b'"xxx"' + b"]" * 300 + b"\n\n"
pytestmark = pytest.mark.asyncio


def says(*parts: bytes, goes_on: bool = False, breaks_off: bool = False):
    """A script: a stream of these parts, after which it ends, waits for its client to leave, or breaks off."""

    async def script(reader, writer):
        writer.write(STREAM_HEAD)
        for part in parts:
            writer.write(piece(part))
            await writer.drain()
            await asyncio.sleep(0)
        if goes_on:
            await wait_for_end(reader, writer)
        if breaks_off:
            writer.transport.abort()
            raise ConnectionResetError
        writer.write(LAST_PIECE)
        await writer.drain()

    return script


def answers(body: bytes, status: str = "200 OK", kind: str = "application/json", more: str = ""):
    """A script: one whole answer."""

    async def script(_, writer):
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return script


async def through(script, chosen, *, keep_alive_seconds: float = 60.0, **passage):
    """The answer of an engine through the guard: status, body, whether it came to its end, and how it ended."""
    async with FakeEngine(script) as engine:
        admitted = FakePassage((engine.address,), output_filter=chosen, **passage)
        async with guarding(admitted, keep_alive_seconds) as (guard, reader, writer):
            ask(writer)
            answer = await whole_answer(reader)
            await until(lambda: not guard.running)
    (ending,) = admitted.endings
    return *answer, ending


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_values_are_masked_however_the_bytes_are_cut_and_usage_is_read_and_taken_out(size):
    stream = b"".join(event(char) for char in TEXT) + USAGE_EVENT + DONE
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    watch = Watch()
    status, body, is_whole, ending = await through(says(*parts), filter_of(watch), is_usage_injected=True)
    assert (status, is_whole, contents(body)) == (200, True, MASKED)
    assert is_clean(body)
    assert body.endswith(DONE)
    assert b"usage" not in body
    assert (ending.end, ending.usage, ending.events) == (End.WHOLE, TokenUsage(9, 0, 4), len(TEXT))
    assert watch.answers == [("m", Counter(VALUES.keys()), None, None)]


async def test_a_stream_without_values_passes_byte_for_byte():
    stream = event("nothing ") + b": comment\n\n" + event("to see") + FINISH + USAGE_EVENT + DONE
    assert (await through(says(stream), filter_of()))[1] == stream


@pytest.mark.parametrize("script", [says(event("a"), FINISH, DONE), says(event("a"), breaks_off=True), answers(b"{}")])
async def test_a_request_that_is_over_leaves_nothing_to_the_collector(script, left_by_cycles):
    async with FakeEngine(script) as engine:
        passage = FakePassage((engine.address,), output_filter=filter_of())
        async with guarding(passage) as (guard, reader, writer):
            ask(writer)
            await whole_answer(reader)
            await until(lambda: not guard.running)
            assert not left_by_cycles() & {
                "Relay",
                "Exchange",
                "Attempt",
                "FilteredOutlet",
                "FilteredStream",
                "BothFlow",
            }


async def test_what_is_held_leaves_when_its_time_is_over():
    async with FakeEngine(says(event("call jane"), goes_on=True)) as engine:
        passage = FakePassage((engine.address,), output_filter=filter_of(hold_seconds=0.05))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            async with asyncio.timeout(5):
                assert b"jane" in await reader.readuntil(b"jane")


async def test_what_is_held_leaves_before_a_comment_that_keeps_the_stream_alive():
    async with FakeEngine(says(event("call jane"), goes_on=True)) as engine:
        passage = FakePassage((engine.address,), output_filter=filter_of(hold_seconds=60))
        async with guarding(passage, keep_alive_seconds=0.1) as (_, reader, writer):
            ask(writer)
            async with asyncio.timeout(5):
                assert b"call jane" in await reader.readuntil(b": keep-alive\n\n")


async def test_a_blocked_value_ends_the_answer_properly_and_frees_the_engine():
    watch = Watch()
    script = says(event("pay "), event("4111 1111 1111 1111"), event(" now"), event("more"), goes_on=True)
    async with FakeEngine(script) as engine:
        passage = FakePassage((engine.address,), output_filter=filter_of(watch, **BLOCKING))
        async with guarding(passage) as (guard, reader, writer):
            ask(writer)
            status, body, is_whole = await whole_answer(reader)
            await until(engine.gone.is_set)
            await until(lambda: not guard.running)
    assert (status, is_whole, contents(body)) == (200, True, "pay ")
    assert b'"finish_reason":"content_filter"' in body
    assert body.endswith(DONE)
    (ending,) = passage.endings
    assert ending.end is End.FILTERED
    assert ending.events >= 3
    assert watch.answers == [("m", Counter(card=1), "card", None)]


async def test_an_engine_that_breaks_off_leaves_what_was_held_filtered_and_an_error():
    script = says(event("card 4111 1111 1111 11"), event("11 jane"), b"data: {half", breaks_off=True)
    status, body, is_whole, ending = await through(script, filter_of())
    assert (status, is_whole, ending.end) == (200, True, End.ENGINE_LOST)
    assert b"4111" not in body
    assert b"[CARD]" in body
    assert json.loads(body.split(b"\n\n")[-2].removeprefix(b"data: "))["error"]["code"] == "engine_lost"


@pytest.mark.parametrize("mode", FailureMode)
async def test_a_stream_that_can_not_be_filtered_ends_with_an_error_or_passes_as_its_policy_says(mode):
    watch = Watch()
    script = says(event("a "), TOO_DEEP, event("b "), DONE)
    _, body, is_whole, ending = await through(script, filter_of(watch, failure_mode=mode))
    assert is_whole
    assert watch.answers == [("m", Counter(), None, "UnreadableAnswer")]
    if mode is FailureMode.OPEN:
        assert body == event("a ") + TOO_DEEP + event("b ") + DONE
        assert ending.end is End.WHOLE
    else:
        assert b"output_filter_failed" in body
        assert b"xxx" not in body
        assert ending.end is End.FILTERED


@pytest.mark.parametrize("filler", [0, 2 * AT_ONCE_BYTES])
async def test_a_whole_answer_is_masked_and_its_usage_is_read(filler):
    message = {"role": "assistant", "content": TEXT + " " + "so " * (filler // 3)}
    document = {"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message}], "usage": USAGE}
    script = answers(json.dumps(document).encode(), more="etag: of-the-engine\r\n")
    watch = Watch()
    status, body, _, ending = await through(script, filter_of(watch), is_stream=False)
    assert status == 200
    assert json.loads(body)["choices"][0]["message"]["content"].startswith(MASKED)
    assert is_clean(body)
    assert ending.usage == TokenUsage(9, 0, 4)
    assert watch.answers == [("m", Counter(VALUES.keys()), None, None)]


async def test_a_whole_answer_with_a_blocked_value_is_an_error_that_is_not_tried_again_and_its_usage_counts():
    message = {"role": "assistant", "content": TEXT}
    script = answers(json.dumps({"choices": [{"index": 0, "message": message}], "usage": USAGE}).encode())
    status, body, _, ending = await through(script, filter_of(**BLOCKING), is_stream=False)
    assert (status, json.loads(body)["error"]["code"]) == (400, "content_filter")
    assert ending.usage == TokenUsage(9, 0, 4)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/event-stream"])
async def test_an_error_of_an_engine_is_filtered_too(kind):
    told = json.dumps({"error": {"message": f"can't read {TEXT}"}}).encode()
    status, body, _, _ = await through(answers(told, "400 Bad Request", kind), filter_of())
    assert status == 400
    assert is_clean(body)
    assert b"[EMAIL]" in body


async def test_an_error_of_an_engine_after_a_comment_is_a_filtered_event():
    gate = asyncio.Event()
    told = json.dumps({"error": {"message": f"can't read {TEXT}"}}).encode()
    async with FakeEngine(answers(told, "400 Bad Request")) as engine:
        passage = FakePassage((engine.address,), output_filter=filter_of(), gate=gate)
        async with guarding(passage, keep_alive_seconds=0.01) as (_, reader, writer):
            ask(writer)
            async with asyncio.timeout(5):
                await reader.readuntil(b": keep-alive\n\n")
                gate.set()
                rest = await reader.readuntil(b"\r\n0\r\n\r\n")
    assert is_clean(rest)
    assert b"[EMAIL]" in rest


@pytest.mark.parametrize("mode", FailureMode)
async def test_an_encoded_answer_is_refused_or_passes_as_its_policy_says(mode):
    packed = gzip.compress(json.dumps({"choices": []}).encode(), mtime=0)
    watch = Watch()
    script = answers(packed, more="content-encoding: gzip\r\n")
    status, body, _, _ = await through(script, filter_of(watch, failure_mode=mode), is_stream=False)
    assert watch.answers == [("m", Counter(), None, "EncodedAnswer")]
    if mode is FailureMode.OPEN:
        assert (status, body) == (200, packed)
    else:
        assert (status, json.loads(body)["error"]["code"]) == (503, "output_filter_unavailable")


async def test_an_answer_that_is_too_long_to_be_kept_is_refused_and_frees_the_engine(monkeypatch):
    monkeypatch.setattr("gateway.attempt.MAX_WHOLE_BYTES", 1000)
    watch = Watch()
    body = json.dumps({"choices": [{"index": 0, "message": {"content": TEXT * 10}}]}).encode()
    status, told, _, ending = await through(answers(body), filter_of(watch), is_stream=False)
    assert (status, json.loads(told)["error"]["code"]) == (503, "output_filter_unavailable")
    assert is_clean(told)
    assert ending.end is End.FILTERED
    assert watch.answers == [("m", Counter(), None, "AnswerTooLarge")]


async def test_a_client_that_leaves_ends_the_filter_and_what_it_found_is_counted():
    watch = Watch()
    async with FakeEngine(says(event("to jane@example.com, so"), event(" held@"), goes_on=True)) as engine:
        passage = FakePassage((engine.address,), output_filter=filter_of(watch, hold_seconds=60))
        async with guarding(passage) as (guard, reader, writer):
            ask(writer)
            await reader.readuntil(b"[EMAIL]")
            writer.transport.abort()
            await until(engine.gone.is_set)
            await until(lambda: not guard.running)
    assert [ending.end for ending in passage.endings] == [End.CLIENT_LEFT]
    assert watch.answers == [("m", Counter(email=1), None, None)]


async def test_an_answer_that_could_not_be_judged_did_not_end_well_though_its_engine_did():
    class Broken:
        async def may_pass(self, texts):
            await asyncio.sleep(0)
            raise RuntimeError(len(texts))

    chosen = filter_of(judge=Broken(), moderation=Moderation())
    status, _, _, ending = await through(answers(json.dumps({"choices": [TEXT]}).encode()), chosen)
    assert (status, ending.end) == (500, End.FAILED)
