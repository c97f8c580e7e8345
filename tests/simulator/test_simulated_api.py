"""The OpenAI API of a simulated engine over loopback: streams, usage, cache, limits, keys, aborts."""

import asyncio
import json
import re

import httpx2
import pytest

from simulator.tokens import pieces_of

VLLM = "vllm serve model/tiny --served-model-name tiny --max-model-len 4096"
PROMPT = "Please read this long introduction before you answer the question of the fleet. " * 12
PII = "Contact jane.doe@example.com or +1 415 555 0134, card 4111 1111 1111 1111, SSN 078-05-1120. Bye"
NAMED = {"type": "function", "function": {"name": "look"}}
DETAILS = f"{VLLM} --enable-prompt-tokens-details --block-size 32"


def text_of(chunks, index=0):
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "fields",
    [
        {"seed": 1},
        {"seed": 2, "max_tokens": 9},
        {"temperature": 0, "n": 3, "max_tokens": 20},
        {"seed": 3, "stop": ["e", "."]},
        {"seed": 4, "structured_outputs": {"choice": [PII]}},
        {"seed": 5, "response_format": {"type": "json_object"}},
    ],
    ids=["seed", "length", "choices", "stop", "forced", "json"],
)
async def test_the_pieces_of_a_stream_join_to_the_whole_answer_with_the_same_usage(shared_engine, fields):
    engine = await shared_engine(VLLM, "0.32.0")
    whole = (await engine.chat(**fields)).json()
    chunks = await engine.chunks(**fields, stream_options={"include_usage": True})
    for choice in whole["choices"]:
        assert text_of(chunks, choice["index"]) == choice["message"]["content"]
        reasons = [
            shown["finish_reason"]
            for chunk in chunks
            for shown in chunk["choices"]
            if shown["index"] == choice["index"] and shown["finish_reason"]
        ]
        assert reasons == [choice["finish_reason"]]
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [chunks[-1]["usage"][name] for name in names] == [whole["usage"][name] for name in names]


@pytest.mark.parametrize("dialect", ["sglang", "tensorrt-llm", "lmdeploy"])
async def test_the_other_dialects_stream_what_they_answer_whole(start_engine, dialect):
    argv = {
        "sglang": "python3 -m sglang.launch_server --model-path model/tiny --served-model-name tiny",
        "tensorrt-llm": "trtllm-serve model/tiny --served_model_name tiny --max_batch_size 8",
        "lmdeploy": "lmdeploy serve api_server model/tiny --model-name tiny",
    }[dialect]
    engine = await start_engine(argv, dialect=dialect, version="0.5.23")
    for fields in ({"seed": 1, "max_tokens": 30}, {"seed": 1, "structured_outputs": {"choice": [PII]}}):
        whole = (await engine.chat(**fields)).json()
        chunks = await engine.chunks(**fields, stream_options={"include_usage": True})
        assert text_of(chunks) == whole["choices"][0]["message"]["content"]
        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"]["total_tokens"] == whole["usage"]["total_tokens"]
    completion = await engine.client.post("/v1/completions", json={"model": "tiny", "prompt": "def main(", "seed": 1})
    assert completion.json()["choices"][0]["finish_reason"] == "length"
    assert (await engine.client.get("/v1/models")).json()["data"][0]["id"] == "tiny"


async def test_sglang_streams_text_without_nulls_and_the_reason_alone(start_engine):
    argv = "python3 -m sglang.launch_server --model-path m --served-model-name tiny"
    engine = await start_engine(argv, dialect="sglang", version="0.5.23")
    chunks = await engine.chunks(max_tokens=2, ignore_eos=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [sorted(delta) for delta in deltas] == [
        ["content", "reasoning_content", "role"],
        ["content", "reasoning_content"],
        ["content", "reasoning_content"],
        ["reasoning_content"],
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "length"]
    assert not any("usage" in chunk for chunk in chunks)


@pytest.mark.parametrize(
    ("choice", "reasons"), [("required", ["tool_calls", "tool_calls"]), (NAMED, ["stop", "tool_calls"])]
)
async def test_a_tool_is_called_by_both_engines_and_each_names_its_own_reason(start_engine, choice, reasons):
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"properties": {"at": {"const": 7}}}}}]
    sglang = "python3 -m sglang.launch_server --model-path m --served-model-name tiny --tool-call-parser qwen25"
    engines = [
        await start_engine(f"{VLLM} --tool-call-parser hermes"),
        await start_engine(sglang, dialect="sglang", version="0.5.23"),
    ]
    for engine, reason in zip(engines, reasons, strict=True):
        whole = (await engine.chat(tools=tools, tool_choice=choice)).json()["choices"][0]
        chunks = await engine.chunks(tools=tools, tool_choice=choice)
        functions = [
            call["function"]
            for chunk in chunks
            for shown in chunk["choices"]
            for call in shown["delta"].get("tool_calls", ())
        ]
        assert whole["message"]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": 7}'}
        assert [function["name"] for function in functions if function.get("name")] == ["look"]
        assert "".join(function.get("arguments") or "" for function in functions) == '{"at": 7}'
        assert (whole["finish_reason"], chunks[-1]["choices"][0]["finish_reason"]) == (reason, reason)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_seed_repeats_an_answer_and_its_absence_does_not(shared_engine):
    engine = await shared_engine(VLLM, "0.32.0")

    async def answer(**fields):
        return (await engine.chat(max_tokens=30, **fields)).json()["choices"][0]["message"]["content"]

    assert await answer(seed=1) == await answer(seed=1) != await answer(seed=2)
    assert await answer(temperature=0) == await answer(temperature=0)
    assert await answer() != await answer()


async def test_two_engines_with_one_seed_agree_and_with_two_seeds_do_not(start_engine):
    answers = []
    for version, seed in (("0.31.0", "0"), ("0.32.0", "0"), ("0.32.0", "9")):
        engine = await start_engine(version=version, own=("--seed", seed, "--time-scale", "0"))
        answers.append((await engine.chat(temperature=0)).json()["choices"][0]["message"]["content"])
    assert answers[0] == answers[1] != answers[2]


async def test_cached_tokens_are_whole_blocks_of_an_earlier_equal_prompt(start_engine):
    engine = await start_engine(DETAILS)

    async def usage(content=PROMPT, **fields):
        return (await engine.chat(content, max_tokens=2, **fields)).json()["usage"]

    cold, warm = await usage(), await usage()
    assert cold["prompt_tokens_details"]["cached_tokens"] == 0
    cached = warm["prompt_tokens_details"]["cached_tokens"]
    assert cached % 32 == 0
    assert 0 < warm["prompt_tokens"] - cached <= 32
    assert (await usage(PROMPT + "And now?"))["prompt_tokens_details"]["cached_tokens"] >= cached - 32
    assert await engine.metric("vllm:prefix_cache_hits_total") >= cached
    assert await engine.metric("vllm:prefix_cache_queries_total") >= 2 * cold["prompt_tokens"]


async def test_a_cache_salt_or_an_adapter_keeps_the_prefix_to_itself(start_engine):
    engine = await start_engine(f"{DETAILS} --enable-lora --lora-modules lora-a=/a lora-b=/b")

    async def cached(**fields):
        answer = (await engine.chat(PROMPT, max_tokens=2, **fields)).json()
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    for own in ({}, {"cache_salt": "tenant-a"}, {"cache_salt": "tenant-b"}, {"model": "lora-a"}):
        assert await cached(**own) == 0
        assert await cached(**own) > 0
    models = (await engine.client.get("/v1/models")).json()["data"]
    assert [(model["id"], model["parent"]) for model in models] == [
        ("tiny", None),
        ("lora-a", "tiny"),
        ("lora-b", "tiny"),
    ]


async def test_without_prefix_caching_nothing_is_cached(start_engine):
    engine = await start_engine(f"{DETAILS} --no-enable-prefix-caching")
    for _ in range(2):
        usage = (await engine.chat(PROMPT, max_tokens=2)).json()["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0


async def test_a_full_queue_refuses_with_503_and_counts_it(start_engine):
    engine = await start_engine(f"{VLLM} --max-num-queued-reqs 2", own=("--decode-seconds", "0.01"))
    fields = {"max_tokens": 40, "ignore_eos": True}
    answers = await asyncio.gather(*(engine.chat(**fields) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503, 503, 503]
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert "retry-after" not in refused.headers
    assert await engine.metric('vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"}') == 4


async def test_sglang_refuses_a_stream_inside_a_200_and_a_whole_answer_with_503(start_engine):
    argv = "python3 -m sglang.launch_server --model-path m --max-running-requests 1 --max-queued-requests 1"
    engine = await start_engine(argv, dialect="sglang", version="0.5.23", own=("--decode-seconds", "0.01"))
    fields = {"max_tokens": 60, "ignore_eos": True}
    running = asyncio.create_task(engine.chat(**fields))
    await engine.until(lambda: _runs(engine, 1))
    waiting = asyncio.create_task(engine.chat(**fields))
    await engine.until(lambda: _waits(engine, 1))
    whole, stream = await asyncio.gather(
        engine.chat(**fields), engine.events("/v1/chat/completions", _body(stream=True, **fields))
    )
    assert (whole.status_code, whole.json()["message"]) == (503, "The request queue is full.")
    assert stream[0] == 200
    assert json.loads(stream[1][0].removeprefix("data: "))["error"]["code"] == 503
    assert [(await answer).status_code for answer in (running, waiting)] == [200, 200]


async def _runs(engine, number):
    return len(engine.app.runtime.scheduler.running) == number


async def _waits(engine, number):
    return len(engine.app.runtime.scheduler.waiting) == number


def _body(**fields):
    return {"model": "tiny", "messages": [{"role": "user", "content": "Say hello to the fleet."}], **fields}


async def test_requests_beyond_the_batch_wait_and_fill_the_kv_cache(start_engine):
    argv = f"{VLLM} --max-num-seqs 2 --block-size 32 --num-gpu-blocks-override 128"
    engine = await start_engine(argv, own=("--decode-seconds", "0.01"))
    tasks = [asyncio.create_task(engine.chat(f"{n} {PROMPT}", max_tokens=30, ignore_eos=True)) for n in range(5)]

    async def is_busy():
        return await engine.metric("vllm:num_requests_running") == 2

    await engine.until(is_busy)
    assert await engine.metric("vllm:num_requests_waiting{") > 0
    assert 0 < await engine.metric("vllm:kv_cache_usage_perc") <= 1
    assert {answer.status_code for answer in await asyncio.gather(*tasks)} == {200}
    assert await engine.metric("vllm:kv_cache_usage_perc") == 0


@pytest.mark.parametrize("streams", [True, False])
async def test_a_client_that_leaves_frees_its_place_and_its_blocks_at_once(start_engine, streams):
    engine = await start_engine(own=())
    reader, writer = await asyncio.open_connection("127.0.0.1", engine.port)
    body = json.dumps(_body(stream=streams, max_tokens=3_000, ignore_eos=True)).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def runs(number):
        return await engine.metric("vllm:num_requests_running") == number

    await engine.until(lambda: runs(1))
    if streams:
        assert await reader.readuntil(b'"role":"assistant"')
    writer.close()
    await engine.until(lambda: runs(0), seconds=2)
    assert await engine.metric("vllm:kv_cache_usage_perc") == 0
    assert await engine.metric('vllm:request_success_total{engine="0",finished_reason="abort"') == 0


async def test_a_comment_keeps_a_waiting_stream_open(start_engine):
    argv = f"{VLLM} --max-num-seqs 1 --sse-keep-alive-interval 0.05"
    engine = await start_engine(argv, own=("--decode-seconds", "0.01"))
    first = asyncio.create_task(engine.chat(max_tokens=40, ignore_eos=True))
    await engine.until(lambda: _runs(engine, 1))
    _, events = await engine.events("/v1/chat/completions", _body(stream=True, max_tokens=2))
    assert events[0] == ": keep-alive"
    assert [event for event in events if not event.startswith((": keep-alive", "data: "))] == []
    assert (await first).status_code == 200


async def test_the_api_key_guards_v1_and_nothing_else(start_engine):
    engine = await start_engine(f"{VLLM} --api-key sk-one sk-two")
    assert (await engine.client.get("/v1/models")).status_code == 401
    wrong = await engine.client.get("/v1/models", headers={"Authorization": "Bearer sk-three"})
    assert (wrong.status_code, wrong.json()) == (401, {"error": "Unauthorized"})
    for key in ("sk-one", "sk-two"):
        right = await engine.client.get("/v1/models", headers={"Authorization": f"Bearer {key}"})
        assert right.status_code == 200
    for path in ("/health", "/version", "/metrics", "/load", "/ping"):
        assert (await engine.client.get(path)).status_code == 200


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": None}, "body.messages"),
        ({"messages": [{"content": "no role"}]}, "body.messages.0.role"),
        ({"max_tokens": "many"}, "body.max_tokens"),
        ({"max_tokens": 0}, "at least 1"),
        ({"max_tokens": 4_095}, "for a total of at least"),
        ({"n": 0}, "n must be from 1"),
        ({"stream_options": {"include_usage": 7}}, "body.stream_options.include_usage"),
        ({"structured_outputs": {"regex": "("}}, "Grammar error"),
        ({"structured_outputs": {"grammar": "root ::= x"}}, "does not support grammars"),
    ],
)
async def test_a_wrong_field_is_named_in_a_400(shared_engine, fields, message):
    engine = await shared_engine(VLLM, "0.32.0")
    answer = await engine.client.post("/v1/chat/completions", json={**_body(), **fields})
    assert answer.status_code == 400
    assert re.search(re.escape(message), answer.json()["error"]["message"])
    assert await engine.metric("vllm:num_requests_running") == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_not_json_or_not_a_route_is_refused(shared_engine):
    engine = await shared_engine(VLLM, "0.32.0")
    answers = [
        await engine.client.post("/v1/chat/completions", content=b'{"model": '),
        await engine.client.post("/v1/chat/completions", content=b"[]"),
        await engine.client.get("/v1/chat/completions"),
        await engine.client.get("/nothing"),
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 405, 404]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_list_of_prompts_and_an_echo_are_completed_one_by_one(shared_engine):
    engine = await shared_engine(VLLM, "0.32.0")
    body = {"model": "tiny", "prompt": ["one fleet", "two fleets"], "max_tokens": 3, "n": 2, "echo": True, "seed": 1}
    choices = (await engine.client.post("/v1/completions", json=body)).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert [choice["text"][:9] for choice in choices] == ["one fleet"] * 2 + ["two fleet"] * 2
    _, events = await engine.events("/v1/completions", {**body, "stream": True})
    shown = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events[:-1]]
    for choice in choices:
        texts = [part["text"] for part in shown if part["index"] == choice["index"]]
        assert "".join(texts) == choice["text"]
    tokens = {"model": "tiny", "prompt": [5, 6, 7], "max_tokens": 1}
    assert (await engine.client.post("/v1/completions", json=tokens)).json()["usage"]["prompt_tokens"] == 3


async def test_images_are_taken_up_to_the_limit(start_engine):
    engine = await start_engine(f'{VLLM} --limit-mm-per-prompt {{"image":1}}')
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    answers = [
        await engine.chat([{"type": "text", "text": "What is it?"}, *[image] * number], max_tokens=2)
        for number in (0, 1, 2)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert answers[2].json()["error"]["param"] == "image"
    tokens = [answer.json()["usage"]["prompt_tokens"] for answer in answers[:2]]
    assert tokens[1] - tokens[0] == 64


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fields",
    [{"messages": [{"role": "user", "content": "x " * 3_500_000}]}, {"prompt": ["x " * 5_000] * 300}],
    ids=["chat", "completion"],
)
async def test_a_prompt_of_megabytes_does_not_keep_others_waiting(start_engine, fields):
    """Health is asked for while it is read: a control plane would take a silent engine out of service."""
    engine = await start_engine()
    path = "/v1/chat/completions" if "messages" in fields else "/v1/completions"
    sending = asyncio.create_task(engine.client.post(path, json={"model": "tiny", "max_tokens": 1, **fields}))
    slowest = 0.0
    clock = asyncio.get_running_loop().time
    async with httpx2.AsyncClient(base_url=str(engine.client.base_url), verify=False, timeout=20) as other:
        while not sending.done():
            asked = clock()
            assert (await other.get("/health")).status_code == 200
            slowest = max(slowest, clock() - asked)
    assert slowest < 2.0
    await sending


def test_a_prompt_beyond_the_limit_is_read_no_further_than_that():
    assert pieces_of("x " * 10_000_000, 5) == ("x", " x", " x", " x", " x")
