"""Streams of events through the filter: what has no match leaves byte for byte, and no chunking changes anything."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.output_policy import FilterPolicy
from gateway.output_filter.channel import CompiledPolicy
from gateway.output_filter.masks import Masks
from gateway.output_filter.normal_form import Writing
from gateway.output_filter.stream_filter import StreamFilter
from gateway.output_filter.text_filter import edited, filter_whole
from tests.gateway.output_filter.filtered_streams import (
    DONE,
    USAGE,
    argument,
    chat_texts,
    cut,
    delta,
    documents,
    line,
    run_filter,
)

POLICY = CompiledPolicy(FilterPolicy())
CAPTURES = Path(__file__).parents[4] / "shared" / "engines" / "captures"
WORDS = [
    " the",
    " fox",
    "jane.doe@example.com",
    " 4111 1111 1111 1111",
    " 078-05-1120 ",
    "\n",
    " é 联",
    " 😀",
    ' "',
    "\\u0040",
]
TEXTS = st.lists(st.sampled_from([*WORDS, " 42", " +1 415 555 0134", " x@y", " sk-"]), max_size=6).map("".join)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=8)
PLACES = st.lists(st.integers(0, 5000), max_size=20)


def pieces(text: str, sizes: list[int]) -> list[str]:
    found, at = [], 0
    while at < len(text):
        found.append(text[at : at + sizes[len(found) % len(sizes)]])
        at += len(found[-1])
    return found


def filtered(text: str, writing: Writing | None = None) -> str:
    return edited(text, 0, filter_whole(text, POLICY.matcher, Masks(POLICY.modes), writing))


@st.composite
def chats(draw) -> tuple[bytes, dict]:
    """A chat of several choices, their pieces interleaved, each with its texts in turn, and the texts of it."""
    texts = {(index, "content"): draw(TEXTS) for index in range(draw(st.integers(1, 3)))}
    if draw(st.booleans()):
        texts[0, "reasoning_content"] = draw(TEXTS)
    for tool in range(draw(st.integers(0, 2))):
        texts[0, tool] = json.dumps({"q": draw(TEXTS), "n": 4111111111111111}, ensure_ascii=draw(st.booleans()))
    queues = [
        [(key, piece) for key, text in texts.items() for piece in pieces(text, draw(SIZES)) if key[0] == index]
        for index in range(3)
    ]
    stream = [delta(index, {"role": "assistant", "content": ""}) for index, name in texts if name == "content"]
    while any(queues):
        (index, name), piece = draw(st.sampled_from([queue for queue in queues if queue])).pop(0)
        stream.append(argument(index, name, piece) if isinstance(name, int) else delta(index, {name: piece}))
    stream += [delta(index, {}, "stop") for index, name in texts if name == "content"]
    return b"".join([*stream, USAGE, DONE]), {key: text for key, text in texts.items() if text}


@settings(max_examples=80)
@given(chats(), PLACES)
def test_every_text_of_a_chat_is_that_of_the_whole_text(chat, places):
    stream, texts = chat
    out, _ = run_filter(POLICY, cut(stream, places))
    expected = {key: filtered(text, Writing.JSON if isinstance(key[1], int) else None) for key, text in texts.items()}
    assert chat_texts(out).items() >= expected.items()
    assert len(documents(out)) == len(documents(stream))
    assert out.endswith(USAGE + DONE)
    for key, text in chat_texts(out).items():
        assert not isinstance(key[1], int) or json.loads(text)


@settings(max_examples=15)
@given(chats())
def test_a_stream_split_at_every_byte_gives_the_same(chat):
    stream, _ = chat
    assert run_filter(POLICY, [bytes([byte]) for byte in stream])[0] == run_filter(POLICY, [stream])[0]


@settings(max_examples=20)
@given(chats(), st.sampled_from([b"\r\n", b"\r"]))
def test_other_line_endings_stay(chat, ending):
    stream, _ = chat
    whole = run_filter(POLICY, [stream])[0]
    assert run_filter(POLICY, [stream.replace(b"\n", ending)])[0] == whole.replace(b"\n", ending)


@settings(max_examples=100)
@given(st.binary(max_size=300), PLACES)
def test_wild_bytes_give_the_same_for_every_chunking(data, places):
    stream = delta(0, {"content": "a"}) + b"data: " + data + b"\n\n" + data
    assert run_filter(POLICY, cut(stream, places))[0] == run_filter(POLICY, [stream])[0]


def test_only_the_strings_that_changed_are_written_anew():
    chunks = [delta(0, {"content": text}) for text in ("Hi", " ja", "ne@exa", "mple.com", ", bye", ".")]
    chunks[2] = chunks[2].replace(b'"created":', b'"x" :  "\\u00e9\\/",\t"created": ')
    out, growing = run_filter(POLICY, [*chunks, delta(0, {}, "stop"), DONE])
    expected = [
        chunks[0],
        delta(0, {"content": " [EMAIL]"}),
        chunks[2].replace(b"ne@exa", b""),
        delta(0, {"content": ""}),
    ]
    assert out == b"".join([*expected, *chunks[4:], delta(0, {}, "stop"), DONE])
    assert growing.counts == {"email": 1}


def test_values_split_across_interleaved_tools_do_not_leak():
    stream = [argument(0, 0, '{"a":"jane@ex'), argument(0, 1, '{"b":"4111 1111 '), argument(0, 0, 'ample.com"}')]
    out, _ = run_filter(POLICY, [*stream, argument(0, 1, '1111 1111"}'), delta(0, {}, "tool_calls"), DONE])
    assert chat_texts(out) == {(0, 0): '{"a":"[EMAIL]"}', (0, 1): '{"b":"[CARD]"}'}


def test_a_tool_call_does_not_wait_for_the_last_word_before_it():
    assert run_until(delta(0, {"content": "Let me look"}), argument(0, 0, "{")) == 2


def test_usage_and_ping_do_not_wait():
    held = delta(0, {"content": "jane@exam"})
    assert run_until(held, USAGE) == 1
    assert run_until(held, line({"type": "ping"}, "ping")) == 1


def run_until(*chunks: bytes) -> int:
    """How many events have left before the end."""
    growing = StreamFilter(POLICY)
    return len(documents(b"".join(growing.feed(chunk, 0.0) for chunk in chunks)))


def test_probabilities_of_tokens_that_spell_a_value_are_left_out():
    def chunk(text: str, tokens: list[str]) -> bytes:
        content = [
            {"token": token, "logprob": -1.0, "bytes": [1], "top_logprobs": [{"token": token}]} for token in tokens
        ]
        choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": content}, "finish_reason": None}
        return line({"choices": [{**choice, "token_ids": [7, 8]}]})

    stream = [chunk("hi ", ["hi", " "]), chunk("jane@exa", ["jane", "@exa"]), chunk("mple.com x ", ["mple.com", " x "])]
    out = documents(run_filter(POLICY, [*stream, DONE])[0])
    assert [document["choices"][0]["logprobs"] is None for document in out] == [False, True, True]
    assert all(document["choices"][0]["token_ids"] is None for document in out)
    assert b"jane" not in run_filter(POLICY, [*stream, DONE])[0]


def test_events_of_unknown_forms_are_text():
    stream = [line({"foo": {"bar": text}}) for text in ("jane@exam", "ple.com", " 4111 1111", " 1111 1111 ")]
    out, _ = run_filter(POLICY, [*stream, b"data: jane@exam\n\n", b"data: ple.com ok\n\n", b": jane@example.com\n\n"])
    assert b"ple.com" not in out
    assert b"1111" not in out
    assert out.endswith(b": [EMAIL]\n\n")


def test_responses_events_are_filtered_where_they_run_and_where_they_repeat():
    def event(kind: str, **members: object) -> bytes:
        return line({"type": f"response.{kind}", "item_id": "msg_1", **members}, f"response.{kind}")

    text = "Mail jane.doe@example.com or bob@example.org"
    stream = [event("created", response={"object": "response", "output": []}, sequence_number=0)]
    for number, piece in enumerate(pieces(text, [3, 5])):
        stream.append(event("output_text.delta", delta=piece, content_index=0, output_index=0, sequence_number=number))
    stream.append(event("output_text.done", text=text, content_index=0, output_index=0))
    arguments = pieces('{"to":"jane\\u0040example.com"}', [4])
    stream += [event("function_call_arguments.delta", delta=piece, output_index=1) for piece in arguments]
    stream.append(event("function_call_arguments.done", arguments='{"to":"jane\\u0040example.com"}', output_index=1))
    part = {"type": "output_text", "text": text, "logprobs": [{"token": "jane@example.com "}]}
    stream.append(event("completed", response={"object": "response", "output": [{"content": [part]}]}))
    out, growing = run_filter(POLICY, [b"".join(stream)])
    found = documents(out)
    assert "".join(e["delta"] for e in found if e["type"].endswith("text.delta")) == "Mail [EMAIL] or [EMAIL]"
    assert "".join(e["delta"] for e in found if e["type"].endswith("arguments.delta")) == '{"to":"[EMAIL]"}'
    assert found[-2]["arguments"] == '{"to":"[EMAIL]"}'
    assert found[-1]["response"]["output"][0]["content"] == [part | {"text": "Mail [EMAIL] or [EMAIL]", "logprobs": []}]
    assert growing.counts == {"email": 3}


def test_messages_events_are_filtered():
    def event(kind: str, **members: object) -> bytes:
        return line({"type": kind, **members}, kind)

    stream = [event("message_start", message={"id": "msg_4111111111111111", "content": []})]
    for index, (name, kind) in enumerate([("thinking", "thinking"), ("text", "text"), ("partial_json", "input_json")]):
        stream.append(event("content_block_start", index=index, content_block={"type": kind, "text": ""}))
        deltas = [
            {"type": f"{kind}_delta", name: piece}
            for piece in ("{ja", "ne@exam", "ple.com ", '"4111 1111', " 1111 1111")
        ]
        stream += [event("content_block_delta", index=index, delta=piece) for piece in deltas]
        stream.append(event("content_block_stop", index=index))
    stream += [
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4}),
        event("message_stop"),
    ]
    out, growing = run_filter(POLICY, [b"".join(stream)])
    texts = ["", "", ""]
    for document in documents(out):
        if document["type"] == "content_block_delta":
            texts[document["index"]] += "".join(value for name, value in document["delta"].items() if name != "type")
    assert texts[:2] == ['{0 "[CARD]', '{0 "[CARD]']
    assert growing.counts == {"email": 3, "card": 3}
    assert b"msg_4111111111111111" in out


def test_completions_chunks_are_filtered():
    stream = [
        line({"object": "text_completion", "choices": [{"index": 0, "text": t}]}) for t in ("x 10.0", ".0.1 ", "y")
    ]
    out = documents(run_filter(POLICY, [*stream, DONE])[0])
    assert "".join(document["choices"][0]["text"] for document in out) == "x [IP] y"


def test_data_on_several_lines_keeps_its_lines():
    stream = b'id: 1\ndata: {"choices":[{"index":0,\ndata: "delta":{"content":"jane@example.com "}}]}\n\n'
    assert run_filter(POLICY, [stream])[0] == stream.replace(b"jane@example.com", b"[EMAIL]")
    assert run_filter(POLICY, [stream.replace(b"@", b" ")])[0] == stream.replace(b"@", b" ")


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures of real engines are not beside this checkout")
@pytest.mark.parametrize("size", [1, 13, 1_000_000])
def test_what_real_engines_sent_passes_byte_for_byte(size):
    paths = [path for path in sorted(CAPTURES.glob("*.sse")) if "forced_pii" not in path.name]
    assert len(paths) > 20
    for path in paths:
        stream = path.read_bytes()[:12_000] if size == 1 else path.read_bytes()
        out, growing = run_filter(POLICY, [stream[at : at + size] for at in range(0, len(stream), size)])
        assert out == stream, path.name
        assert not growing.counts


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures of real engines are not beside this checkout")
def test_what_a_real_engine_was_made_to_say_is_masked():
    stream = (CAPTURES / "vllm32c_chat_stream_forced_pii.sse").read_bytes()
    out, growing = run_filter(POLICY, [stream])
    assert chat_texts(out)[0, "content"] == "Contact [EMAIL] or [PHONE], card [CARD], SSN [SSN]. Bye"
    assert growing.counts == {"email": 1, "phone": 1, "card": 1, "us_ssn": 1}
    changed = [(a, b) for a, b in zip(stream.split(b"\n"), out.split(b"\n"), strict=True) if a != b]
    assert all(b'"content":"' in before for before, _ in changed)
