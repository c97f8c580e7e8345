"""A simulated vLLM answers like the captured one: key sets, order of events, headers, errors, metrics."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import pytest_asyncio

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
EXCHANGES = json.loads((CAPTURES / "vllm_exchanges.json").read_text(encoding="utf-8"))
ERRORS = sorted(
    name for name, exchange in EXCHANGES.items() if exchange["status"] in {400, 404} and name.startswith("vllm32_")
)
WHOLE = sorted(name for name, exchange in EXCHANGES.items() if exchange["status"] == 200 and "body" in exchange)
STREAMS = sorted(name for name, exchange in EXCHANGES.items() if "events" in exchange)

PLAIN = "vllm serve model/tiny --served-model-name tiny --max-model-len 4096"
TOOLS = f"{PLAIN} --block-size 32 --enable-prompt-tokens-details --enable-auto-tool-choice --tool-call-parser hermes"
TOOLS_AND_IDS = f"{TOOLS} --enable-request-id-headers"
ENGINES = {
    "vllm31": (PLAIN, "0.31.0"),
    "vllm32": (PLAIN, "0.32.0"),
    "vllm32b": (TOOLS_AND_IDS, "0.32.0"),
    "vllm32c": (TOOLS, "0.32.0"),
    "vllm32d": (
        f"{PLAIN} --max-num-queued-reqs 2 --enable-force-include-usage --enable-per-request-metrics",
        "0.32.0",
    ),
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine_of(shared_engine):
    """Give the engine whose capture it is."""

    async def give(name):
        return await shared_engine(*ENGINES[name.partition("_")[0]])

    return give


def keys(value):
    """Return the recursive key sets of a JSON value; lists by their distinct members."""
    if isinstance(value, dict):
        return {name: keys(part) for name, part in value.items()}
    if isinstance(value, list) and not any(isinstance(part, dict) for part in value):
        return "list of values"
    if isinstance(value, list):
        seen = {json.dumps(keys(part), sort_keys=True) for part in value}
        return sorted(seen)
    return type(value).__name__ if isinstance(value, bool) else "value"


def null_free(value):
    """Return key sets where null and a value count as the same leaf."""
    return json.loads(json.dumps(keys(value)).replace('"bool"', '"value"'))


def data_of(events):
    return [json.loads(event.removeprefix("data: ")) for event in events if event.startswith("data: {")]


def runs(shapes):
    """Return the shapes of a stream with repetitions left out: the order of events."""
    return [shape for place, shape in enumerate(shapes) if place == 0 or shapes[place - 1] != shape]


def header_names(response):
    return sorted(name.lower() for name in response.headers)


@pytest.mark.parametrize("name", WHOLE)
async def test_a_whole_answer_has_the_captured_keys_headers_and_constants(engine_of, name):
    exchange = EXCHANGES[name]
    engine = await engine_of(name)
    if "request" in exchange:
        answer = await engine.client.post(exchange["path"], json=exchange["request"])
        assert header_names(answer) == sorted(exchange["headers"])
    else:
        answer = await engine.client.get(exchange["path"])
    ours, theirs = answer.json(), exchange["body"]
    assert answer.status_code == 200
    assert null_free(ours) == null_free(theirs)
    assert list(ours) == list(theirs)
    for constant in ("object", "model", "version", "server_load"):
        assert ours.get(constant) == theirs.get(constant)


@pytest.mark.parametrize("name", [name for name in WHOLE if "chat" in name])
async def test_a_whole_answer_ends_for_the_captured_reason(engine_of, name):
    exchange = EXCHANGES[name]
    engine = await engine_of(name)
    ours = (await engine.client.post(exchange["path"], json=exchange["request"])).json()
    theirs = exchange["body"]
    assert [choice["finish_reason"] for choice in ours["choices"]] == [
        choice["finish_reason"] for choice in theirs["choices"]
    ]
    pattern = r"vllm-\d+\.\d+\.\d+-[0-9a-f]{8}"
    assert re.fullmatch(pattern, ours["system_fingerprint"])
    assert re.fullmatch(pattern, theirs["system_fingerprint"])
    assert ours["system_fingerprint"].split("-")[:2] == theirs["system_fingerprint"].split("-")[:2]
    assert re.sub("[0-9a-f]{16}", "", ours["id"]) == re.sub("[0-9a-f]{16}", "", theirs["id"])


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_has_the_captured_order_of_events_with_their_keys(engine_of, name):
    exchange = EXCHANGES[name]
    engine = await engine_of(name)
    status, events = await engine.events(exchange["path"], exchange["request"])
    assert (status, events[-1]) == (200, exchange["events"][-1])
    ours, theirs = data_of(events), data_of(exchange["events"])
    assert runs([null_free(chunk) for chunk in ours]) == runs([null_free(chunk) for chunk in theirs])
    assert [list(chunk) for chunk in (ours[0], ours[-1])] == [list(chunk) for chunk in (theirs[0], theirs[-1])]
    assert _reasons(ours) == _reasons(theirs)
    assert {chunk["object"] for chunk in ours} == {chunk["object"] for chunk in theirs}
    assert len({chunk["id"] for chunk in ours}) == 1


def _reasons(chunks):
    return [
        (choice["index"], choice["finish_reason"], choice.get("stop_reason"))
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["finish_reason"]
    ]


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_is_the_captured_one_word_by_word(engine_of, name):
    exchange = EXCHANGES[name]
    request = dict(exchange["request"])
    if request["messages"] == "TOO LONG":
        request["messages"] = [{"role": "user", "content": "a b c d e f g " * 1_000}]
    engine = await engine_of(name)
    answer = await engine.client.post(exchange["path"], json=request)
    assert answer.status_code == exchange["status"]
    assert answer.json() == exchange["body"]
    assert header_names(answer) == sorted(exchange["headers"])


async def test_the_503_of_admission_is_the_captured_one(shared_engine):
    exchange = EXCHANGES["vllm32d_admission_2"]
    engine = await shared_engine(f"{PLAIN} --max-num-queued-tokens 1", "0.32.0")
    answer = await engine.client.post(exchange["path"], json=exchange["request"])
    assert (answer.status_code, answer.json()) == (503, exchange["body"])
    assert header_names(answer) == sorted(exchange["headers"])


async def test_forced_text_arrives_exactly_over_many_events(engine_of):
    engine = await engine_of("vllm32c")
    pii = EXCHANGES["vllm32c_chat_stream_forced_pii"]["request"]["structured_outputs"]["regex"]
    unicode = EXCHANGES["vllm32c_chat_stream_forced_unicode"]["request"]["structured_outputs"]["choice"][0]
    for forced, text in (({"regex": pii}, re.sub(r"\\(.)", r"\1", pii)), ({"choice": [unicode]}, unicode)):
        chunks = await engine.chunks(structured_outputs=forced, max_tokens=150)
        contents = [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]
        assert "".join(contents) == text
        assert sum(1 for content in contents if content) >= len(text) / 5


async def test_the_bytes_on_the_wire_are_framed_like_the_captured_ones(engine_of):
    engine = await engine_of("vllm32")
    body = json.dumps(
        {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 3}
    )
    head, _, rest = (await raw_exchange(engine.port, body)).partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    assert status == "HTTP/1.1 200 OK"
    assert [header.partition(":")[0] for header in headers] == [
        "date",
        "server",
        "content-type",
        "vary",
        "transfer-encoding",
    ]
    chunks = re.findall(rb"([0-9a-f]+)\r\n(data: .*?\n\n)\r\n", rest, re.DOTALL)
    assert [int(size, 16) for size, _ in chunks] == [len(data) for _, data in chunks]
    assert chunks[-1][1] == b"data: [DONE]\n\n"
    assert rest.endswith(b"0\r\n\r\n")


async def raw_exchange(port, body):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((request + body).encode())
    answer = await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    return answer
