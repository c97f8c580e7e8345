"""Responses, embeddings, ranks, uploads and tokens through real Envoy, the gateway and simulated engines."""

import json

import httpx2
import pytest

from tests.gateway.late import Late
from tests.gateway.simulated import MODEL, publish, simulated_engine

openai = Late("openai")

PACE = ("--time-scale", "0.02")
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TEXTS = ("responses", "messages", "count-tokens", "tokenize", "chat")


@pytest.fixture(scope="module")
def engine():
    with simulated_engine(*PACE) as engine:
        yield engine


@pytest.fixture
def texts(gateway, world, engine):
    publish(gateway, world, engine, serves=TEXTS)
    with sdk(gateway, world) as client:
        yield client


@pytest.fixture(scope="module")
def serving(gateway, world):
    """Serve another kind of model, and the client for it."""
    running = []

    def start(task, operation):
        engine = simulated_engine(*PACE, "--task", task)
        running.append(engine)
        publish(gateway, world, engine.__enter__(), serves=(operation, "tokenize"))
        return sdk(gateway, world)

    yield start
    for engine in running:
        engine.__exit__(None, None, None)


def sdk(gateway, world):
    return openai.OpenAI(api_key=world.acme_key, base_url=f"{gateway.url}/v1", max_retries=0, timeout=10)


def charged(gateway, kind):
    return gateway.metric(f'enginehouse_gateway_tokens_total{{basis="usage",kind="{kind}",model="{MODEL}"')


def test_a_response_is_answered_and_charged_as_the_engine_says(gateway, texts, until):
    before = charged(gateway, "output")
    answer = texts.responses.create(model=MODEL, input="Say hello.", max_output_tokens=9)
    assert answer.output_text
    assert answer.usage.output_tokens == 9
    until(lambda: charged(gateway, "output") == before + 9, "the charge")


def test_a_streamed_response_ends_with_the_whole_one_and_is_charged(gateway, texts, until):
    before = charged(gateway, "output")
    with texts.responses.stream(model=MODEL, input="Say hello.", max_output_tokens=9) as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(pieces) == final.output_text
    until(lambda: charged(gateway, "output") == before + 9, "the charge")


def test_a_response_calls_a_tool(texts):
    tool = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}
    choice = {"type": "function", "name": "weather"}
    answer = texts.responses.create(model=MODEL, input="x", tools=[tool], tool_choice=choice)
    assert set(json.loads(answer.output[0].arguments)) == {"city"}


def test_a_response_that_an_engine_would_keep_is_a_bad_request(texts):
    with pytest.raises(openai.BadRequestError) as raised:
        texts.responses.create(model=MODEL, input="x", background=True)
    assert raised.value.param == "background"
    with pytest.raises(openai.NotFoundError):
        texts.responses.retrieve("resp_1")


def test_leaving_a_streamed_response_frees_the_engine(texts, engine, until):
    stream = texts.responses.create(
        model=MODEL, input="x", max_output_tokens=4000, stream=True, extra_body={"ignore_eos": True}
    )
    assert next(iter(stream)).type == "response.created"
    stream.close()
    until(engine.is_idle, "the engine is free", 2)


def test_what_no_engine_of_a_model_serves_is_not_found_with_the_reason(texts):
    with pytest.raises(openai.NotFoundError) as raised:
        texts.embeddings.create(model=MODEL, input="x")
    assert raised.value.code == "operation_not_served"
    assert "responses" in raised.value.message


def test_tokens_are_counted_and_nothing_is_charged(gateway, world, texts):
    before = gateway.metric(f'enginehouse_gateway_tokens_total{{basis="reserved",kind="input",model="{MODEL}"')
    headers = {"authorization": f"Bearer {world.acme_key}"}
    answer = httpx2.post(f"{gateway.url}/tokenize", json={"model": MODEL, "prompt": "a warm cache"}, headers=headers)
    assert answer.json()["count"] == len(answer.json()["tokens"]) > 0
    assert httpx2.post(f"{gateway.url}/detokenize", json={"model": MODEL}, headers=headers).status_code == 404
    assert gateway.metric(f'enginehouse_gateway_tokens_total{{basis="reserved",kind="input",model="{MODEL}"') == before


def test_embeddings_come_as_numbers_although_they_travel_packed(serving):
    with serving("embed", "embedding") as client:
        answer = client.embeddings.create(model=MODEL, input=["a warm cache", "nine wet dogs"])
        assert len(answer.data) == 2
        assert all(isinstance(number, float) for number in answer.data[0].embedding)
        assert answer.usage.prompt_tokens > 0
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x"}])


def test_ranks_are_answered(gateway, world, serving):
    with serving("rank", "rerank"):
        asked = {"model": MODEL, "query": "warm cache", "documents": ["nine wet dogs", "a warm cache"]}
        headers = {"authorization": f"Bearer {world.acme_key}"}
        answer = httpx2.post(f"{gateway.url}/v1/rerank", json=asked, headers=headers)
    assert [result["index"] for result in answer.json()["results"]] == [1, 0]


def test_a_sound_is_transcribed_charged_by_its_length_and_refused_without_a_file(gateway, serving, until):
    sound = ("a.wav", b"RIFF" * 20_000, "audio/wav")
    before = charged(gateway, "input")
    with serving("transcribe", "transcription") as client:
        answer = client.audio.transcriptions.create(model=MODEL, file=sound)
        assert answer.text
        until(lambda: charged(gateway, "input") == before + 75, "three seconds of sound")
        assert client.audio.transcriptions.create(model=MODEL, file=sound, response_format="text")
        with client.audio.transcriptions.with_streaming_response.create(model=MODEL, file=sound, stream=True) as got:
            assert got.headers["content-type"].startswith("text/event-stream")
            assert "[DONE]" in "".join(got.iter_text())
        with pytest.raises(openai.NotFoundError):
            client.audio.transcriptions.create(model="nobody-chat", file=sound)
        with pytest.raises(openai.BadRequestError) as raised:
            client.post("/audio/transcriptions", cast_to=object, body={"model": MODEL})
    assert raised.value.code == "invalid_form"


def test_without_the_guard_the_same_is_answered_and_charged(gateway, world, engine, until):
    publish(gateway, world, engine, serves=TEXTS, is_guarded=False)
    before = charged(gateway, "output")
    with sdk(gateway, world) as client:
        assert client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=9).output_text
        until(lambda: charged(gateway, "output") == before + 9, "the charge of a response")
        with client.responses.stream(model=MODEL, input="Say hello.", max_output_tokens=9) as stream:
            assert [event.type for event in stream][-1] == "response.completed"
        until(lambda: charged(gateway, "output") == before + 18, "the charge of a streamed response")
    headers = {"x-api-key": world.acme_key}
    asked = {"model": MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": "x"}]}
    answer = httpx2.post(f"{gateway.url}/v1/messages", json=asked, headers=headers)
    assert answer.json()["usage"]["output_tokens"] == 4
    until(lambda: charged(gateway, "output") == before + 22, "the charge of a message")
