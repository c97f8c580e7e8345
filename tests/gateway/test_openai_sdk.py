"""OpenAI's own Python client through real Envoy, the gateway and the simulated engine."""

import json

import pytest
from pydantic import BaseModel

from tests.gateway.late import Late
from tests.gateway.simulated import MODEL, OTHER_MODEL, publish, simulated_engine

openai = Late("openai")

SAY = [{"role": "user", "content": "Say hello to the fleet."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Person(BaseModel):
    age: int


@pytest.fixture(scope="module")
def engine():
    with simulated_engine("--time-scale", "0.02") as engine:
        yield engine


@pytest.fixture
def client(gateway, world, engine):
    publish(gateway, world, engine)
    with openai.OpenAI(api_key=world.acme_key, base_url=f"{gateway.url}/v1", max_retries=0, timeout=10) as client:
        yield client


def with_key(client, key):
    return client.with_options(api_key=key)


def test_a_chat_is_answered_and_counted(client):
    answer = client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=8)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens == 8
    assert answer.model == MODEL


def test_a_streamed_chat_has_the_text_of_a_whole_one_and_no_usage_that_was_not_asked_for(client):
    asked = {"model": MODEL, "messages": SAY, "max_tokens": 12, "seed": 7}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "length"
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_that_was_asked_for_comes_as_the_last_chunk(client):
    options = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=SAY, max_completion_tokens=5, stream=True, stream_options=options
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 5
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_several_choices_are_streamed_each_to_its_end(client):
    chunks = list(client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=4, n=3, stream=True))
    ends = [c.index for chunk in chunks for c in chunk.choices if c.finish_reason]
    assert sorted(ends) == [0, 1, 2]


def test_the_streaming_helper_parses_what_it_was_given(client):
    with client.chat.completions.stream(model=MODEL, messages=SAY, response_format=Person) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert isinstance(final.choices[0].message.parsed.age, int)


def test_a_tool_is_called_with_arguments_of_its_schema(client):
    choice = {"type": "function", "function": {"name": "weather"}}
    answer = client.chat.completions.create(model=MODEL, messages=SAY, tools=[WEATHER], tool_choice=choice)
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "weather"
    assert set(json.loads(call.function.arguments)) == {"city"}


def test_a_streamed_tool_call_is_put_together_from_its_pieces(client):
    stream = client.chat.completions.create(
        model=MODEL, messages=SAY, tools=[WEATHER], tool_choice="required", stream=True
    )
    calls = [call for chunk in stream for c in chunk.choices for call in c.delta.tool_calls or ()]
    assert calls[0].function.name == "weather"
    assert set(json.loads("".join(call.function.arguments or "" for call in calls))) == {"city"}


def test_a_structured_output_is_json_of_its_schema(client):
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    answer = client.chat.completions.create(model=MODEL, messages=SAY, response_format=form)
    assert isinstance(json.loads(answer.choices[0].message.content)["age"], int)


def test_a_completion_is_answered_whole_and_streamed(client):
    asked = {"model": MODEL, "prompt": "def add(a, b):", "max_tokens": 6, "seed": 3}
    whole = client.completions.create(**asked).choices[0].text
    assert "".join(chunk.choices[0].text for chunk in client.completions.create(**asked, stream=True)) == whole


def test_the_models_are_listed_and_found_by_name(client):
    assert [model.id for model in client.models.list()] == [MODEL, OTHER_MODEL]
    assert client.models.retrieve(OTHER_MODEL).id == OTHER_MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("globex-chat")


async def test_the_async_client_streams_as_well(gateway, world, client):
    url = f"{gateway.url}/v1"
    async with openai.AsyncOpenAI(api_key=world.acme_key, base_url=url, max_retries=0, timeout=10) as own:
        stream = await own.chat.completions.create(model=MODEL, messages=SAY, max_tokens=5, stream=True)
        chunks = [chunk async for chunk in stream]
        whole = await own.chat.completions.create(model=MODEL, messages=SAY, max_tokens=5)
    assert chunks[-1].choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == 5


def test_leaving_a_stream_frees_the_engine(client, engine, until):
    stream = client.chat.completions.create(
        model=MODEL, messages=SAY, max_tokens=4000, stream=True, extra_body={"ignore_eos": True}
    )
    assert next(iter(stream)).choices
    assert not engine.is_idle()
    stream.close()
    until(engine.is_idle, "the engine is free", 2)


def test_a_key_that_is_not_valid_is_an_authentication_error(gateway, world, client, until):
    snapshot = gateway.control_plane.snapshot
    old = world.key("k9", "eh-long-ago", "acme", expires=1)
    gateway.publish(snapshot.model_copy(update={"keys": (*snapshot.keys, old)}))

    def code(key):
        with pytest.raises(openai.AuthenticationError) as raised:
            with_key(client, key).chat.completions.create(model=MODEL, messages=SAY)
        return raised.value.code

    assert code("eh-wrong") == "invalid_api_key"
    until(lambda: code("eh-long-ago") == "expired_api_key", "the old key is known")


def test_an_unknown_model_and_one_of_another_tenant_are_not_found(client):
    for model in ("globex-chat", "nobody-chat"):
        with pytest.raises(openai.NotFoundError) as raised:
            client.chat.completions.create(model=model, messages=SAY)
        assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


@pytest.mark.parametrize(
    ("name", "value"), [("n", 0), ("n", -1), ("max_tokens", -5), ("max_tokens", 10**30), ("max_tokens", "many")]
)
def test_a_figure_that_cannot_be_meant_is_a_bad_request_that_names_the_field(client, name, value):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=SAY, **{name: value})
    assert raised.value.param == name


def test_what_the_engine_refuses_is_the_engines_own_error(client):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=100_000)
    assert "max_model_len" in raised.value.message


def test_a_used_up_limit_is_a_rate_limit_error_and_the_client_waits_as_it_is_told(
    gateway, world, client, engine, until
):
    gateway.publish(world.snapshot(engine.address, requests_per_minute=30))

    def limited():
        try:
            client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=1)
        except openai.RateLimitError as error:
            return error

    seen = []
    until(lambda: seen.append(limited()) or seen[-1], "the limit")
    assert seen[-1].code == "rate_limit_exceeded"
    assert seen[-1].response.headers["retry-after"] in {"1", "2"}  # a request comes back every other second
    patient = client.with_options(max_retries=3)
    assert patient.chat.completions.create(model=MODEL, messages=SAY, max_tokens=1).choices


def test_no_engine_is_an_internal_server_error_and_a_retry_finds_one(gateway, world, client, engine, until):
    gateway.publish(world.snapshot("127.0.0.1:1"))

    def lost():
        try:
            client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=1)
        except openai.InternalServerError as error:
            return error

    seen = []
    until(lambda: seen.append(lost()) or seen[-1], "no engine")
    assert (seen[-1].status_code, seen[-1].code) == (503, "no_endpoint")
    gateway.publish(world.snapshot(engine.address))
    patient = client.with_options(max_retries=4)
    assert patient.chat.completions.create(model=MODEL, messages=SAY, max_tokens=2).usage.completion_tokens == 2


def test_the_request_id_of_an_answer_is_the_gateways(client):
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=SAY, max_tokens=1)
    assert answer.headers["x-request-id"]
    assert answer.parse().choices
