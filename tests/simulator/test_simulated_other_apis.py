"""Responses and messages have the captured form; embeddings, ranks and transcriptions that of the engines' models."""

import base64
import json
import struct
from pathlib import Path

import pytest

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
EXCHANGES = json.loads((CAPTURES / "vllm_other_apis.json").read_text(encoding="utf-8"))
TOOLS = "vllm serve model/tiny --served-model-name tiny --max-model-len 4096 --tool-call-parser hermes"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def shape(value):
    """The keys of a value in their order, and its kinds."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def shapes(events):
    """Name and shape of each event; repetitions are one."""
    found = []
    for event in events:
        name, data = event.split("\n")
        told = (name, shape(json.loads(data.removeprefix("data: "))))
        if not found or found[-1] != told:
            found.append(told)
    return found


@pytest.mark.parametrize("name", sorted(name for name, exchange in EXCHANGES.items() if "body" in exchange))
async def test_a_whole_answer_has_the_captured_members_in_their_order(start_engine, name):
    exchange, engine = EXCHANGES[name], await start_engine()
    answer = (await engine.client.post(exchange["path"], json=exchange["request"])).json()
    assert json.dumps(shape(answer)) == json.dumps(shape(exchange["body"]) | forgiven(answer))


def forgiven(answer):
    """Whether it was cut is a matter of its text."""
    return {"incomplete_details": shape(answer["incomplete_details"])} if "incomplete_details" in answer else {}


@pytest.mark.parametrize("name", sorted(name for name, exchange in EXCHANGES.items() if "events" in exchange))
async def test_a_stream_has_the_captured_events_in_their_order(start_engine, name):
    exchange, engine = EXCHANGES[name], await start_engine()
    status, events = await engine.events(exchange["path"], exchange["request"])
    assert status == 200
    assert shapes(events) == shapes(exchange["events"])


async def test_a_message_that_needs_a_tool_is_a_call_with_its_arguments(start_engine):
    engine = await start_engine(TOOLS)
    tool = {"name": "weather", "input_schema": WEATHER}
    asked = {"model": "tiny", "max_tokens": 100, "messages": [{"role": "user", "content": "x"}], "tools": [tool]}
    asked["tool_choice"] = {"type": "tool", "name": "weather"}
    answer = (await engine.client.post("/v1/messages", json=asked)).json()
    assert answer["stop_reason"] == "tool_use"
    assert set(answer["content"][0]["input"]) == {"city"}
    _, events = await engine.events("/v1/messages", asked | {"stream": True})
    data = [json.loads(event.split("\n")[1].removeprefix("data: ")) for event in events]
    pieces = [one["delta"]["partial_json"] for one in data if one["type"] == "content_block_delta"]
    assert set(json.loads("".join(pieces))) == {"city"}


async def test_a_message_is_refused_in_anthropics_form(start_engine):
    engine = await start_engine()
    asked = {"model": "tiny", "max_tokens": 100_000, "messages": [{"role": "user", "content": "x"}]}
    answer = await engine.client.post("/v1/messages", json=asked)
    assert answer.status_code == 400
    assert answer.json()["type"] == "error"
    assert set(answer.json()["error"]) == {"type", "message"}


async def test_the_tokens_of_a_message_are_those_that_it_takes(start_engine):
    engine = await start_engine()
    asked = {"model": "tiny", "system": "Be short.", "messages": [{"role": "user", "content": "Say hello."}]}
    counted = (await engine.client.post("/v1/messages/count_tokens", json=asked)).json()
    answer = (await engine.client.post("/v1/messages", json=asked | {"max_tokens": 3})).json()
    assert counted == {"input_tokens": answer["usage"]["input_tokens"]}


async def test_embeddings_are_near_where_texts_are_alike_and_the_same_in_both_encodings(start_engine):
    engine = await start_engine(own=("--task", "embed"))
    asked = {"model": "tiny", "input": ["a warm cache", "a warm cache", "nine wet dogs"]}
    answer = (await engine.client.post("/v1/embeddings", json=asked)).json()
    one, same, other = (entry["embedding"] for entry in answer["data"])
    assert one == same != other
    packed = (await engine.client.post("/v1/embeddings", json=asked | {"encoding_format": "base64"})).json()
    raw = base64.b64decode(packed["data"][0]["embedding"])
    assert struct.unpack(f"<{len(raw) // 4}f", raw) == pytest.approx(one)
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > 0
    assert (await engine.chat()).status_code == 404


async def test_ranks_put_the_nearest_document_first(start_engine):
    engine = await start_engine(own=("--task", "rank"))
    asked = {"model": "tiny", "query": "a warm cache", "documents": ["nine wet dogs", "the warm cache"], "top_n": 1}
    answer = (await engine.client.post("/v1/rerank", json=asked)).json()
    assert [result["index"] for result in answer["results"]] == [1]
    assert answer["results"][0]["document"]["text"] == "the warm cache"


async def test_a_sound_is_transcribed_whole_and_streamed(start_engine):
    engine = await start_engine(own=("--task", "transcribe"))
    upload = {"files": {"file": ("a.wav", b"RIFF" * 20_000)}, "data": {"model": "tiny"}}
    answer = (await engine.client.post("/v1/audio/transcriptions", **upload)).json()
    assert answer["usage"] == {"type": "duration", "seconds": 3}
    verbose = {**upload, "data": {"model": "tiny", "response_format": "verbose_json"}}
    told = (await engine.client.post("/v1/audio/transcriptions", **verbose)).json()
    assert told == {"duration": 3.0, "language": "en", "text": answer["text"], "segments": [], "words": None}
    upload["data"]["stream"] = "true"
    streamed = (await engine.client.post("/v1/audio/transcriptions", **upload)).text.split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in streamed if event.startswith("data: {")]
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks) == answer["text"]


@pytest.mark.parametrize(("flags", "is_told"), [("--enable-prompt-tokens-details", True), ("", False)])
async def test_an_engine_that_tells_of_its_cache_takes_it_out_of_a_messages_input(start_engine, flags, is_told):
    engine = await start_engine(f"{TOOLS} --block-size 16 {flags}".strip())
    story = "a long story " * 40 + "to the end of it"
    asked = {"model": "tiny", "max_tokens": 2, "messages": [{"role": "user", "content": story}]}
    counted = (await engine.client.post("/v1/messages/count_tokens", json=asked)).json()["input_tokens"]
    whole = counted // 16 * 16
    for read, written in ((0, whole), (whole, 0)):
        usage = (await engine.client.post("/v1/messages", json=asked)).json()["usage"]
        cache = {"cache_creation_input_tokens": written, "cache_read_input_tokens": read}
        told = {"input_tokens": counted - whole, **cache} if is_told else {"input_tokens": counted}
        assert usage == {**told, "output_tokens": 2}
