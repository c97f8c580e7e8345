"""Whole JSON answers: texts are filtered where they stand, every other byte stays."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.output_policy import FilterPolicy, Mode
from gateway.output_filter.channel import Answer, CompiledPolicy
from gateway.output_filter.held_event import replaced
from gateway.output_filter.json_spans import UnreadableAnswer, decoded, encoded, spans
from gateway.output_filter.masks import Masks
from gateway.output_filter.whole_answer import filter_answer, request_changes, texts_to_judge

POLICY = CompiledPolicy(FilterPolicy())
BLOCKING = CompiledPolicy(FilterPolicy(classes={"email": Mode.BLOCK}))
CAPTURES = Path(__file__).parents[4] / "shared" / "engines" / "captures"
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def through(body: bytes, policy: CompiledPolicy = POLICY) -> tuple[bytes, Answer]:
    answer = Answer(policy, Masks(policy.modes))
    return filter_answer(body, answer), answer


def strings(document: object) -> list[str]:
    if isinstance(document, dict):
        return [text for value in document.values() for text in strings(value)]
    if isinstance(document, list):
        return [text for value in document for text in strings(value)]
    return [document] if isinstance(document, str) else []


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_every_string_is_found_where_it_stands(document, ascii_only, indent):
    data = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogateescape")
    found = [decoded(data[span.start : span.end]) for span in spans(data) if span.is_string]
    assert found == strings(document)


@given(JSON)
def test_a_container_spans_what_is_in_it(document):
    data = json.dumps({"a": document}).encode()
    for span in spans(data):
        json.loads(data[span.start : span.end])


@given(st.text(), st.booleans())
def test_a_string_is_written_as_the_one_before(text, ascii_only):
    literal = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogateescape")
    assert decoded(encoded(text, literal)) == text


def test_a_chat_is_filtered_byte_for_byte():
    message = {
        "role": "assistant",
        "content": "Mail jane@example.com \u00e9",
        "reasoning_content": "4111 1111 1111 1111",
    }
    calls = [{"id": "call_1", "function": {"name": "send", "arguments": '{"to": "a@b.org", "n": 4111111111111111}'}}]
    probabilities = {"content": [{"token": "jane@"}, {"token": "example.com"}]}
    choice = {"index": 0, "message": message | {"tool_calls": calls}, "logprobs": probabilities, "token_ids": [1]}
    body = json.dumps({"id": "4111111111111111", "choices": [choice], "usage": {"n": 1}}, indent=1).encode()
    out, answer = through(body)
    document = json.loads(body)
    found = document["choices"][0]
    found["message"] |= {"content": "Mail [EMAIL] \u00e9", "reasoning_content": "[CARD]"}
    found["message"]["tool_calls"][0]["function"]["arguments"] = '{"to": "[EMAIL]", "n": 0}'
    found["logprobs"] = found["token_ids"] = None
    assert json.loads(out) == document
    assert out.startswith(body[: body.index(b"Mail")])
    assert answer.counts == {"email": 2, "card": 2}


def test_other_answers_are_filtered():
    for body in (
        {"object": "response", "output": [{"content": [{"type": "output_text", "text": "a@b.org"}]}]},
        {
            "type": "message",
            "content": [{"type": "text", "text": "a@b.org"}, {"type": "tool_use", "input": {"x": "a@b.org"}}],
        },
        {"choices": [{"text": "a@b.org", "logprobs": {"tokens": ["a@", "b.org"], "top_logprobs": [{"a@": 1}]}}]},
        {"unknown": [["a@b.org"]]},
        "a@b.org",
    ):
        out, answer = through(json.dumps(body).encode())
        assert b"b.org" not in out
        assert answer.counts["email"] >= 1
        json.loads(out)


def test_what_a_model_wrote_as_json_is_text_whatever_it_is_called():
    tool = {
        "id": "4111111111111111",
        "a@b.org": {"n": -4111111111111111, "code": ["4111 1111 1111 1111", 10, 4111111111111111]},
    }
    body = {"type": "message", "id": "msg_4111111111111111", "content": [{"type": "tool_use", "input": tool}]}
    out, answer = through(json.dumps(body).encode())
    expected = {"id": "[CARD]", "[EMAIL]": {"n": 0, "code": ["[CARD]", 10, 0]}}
    assert json.loads(out) == {**body, "content": [{"type": "tool_use", "input": expected}]}
    assert answer.counts == {"card": 4, "email": 1}


def test_a_word_of_the_form_may_not_hold_a_number():
    out, _ = through(b'{"choices": [], "status": "4111111111111111", "type": "x.y_2025-01"}')
    assert json.loads(out) == {"choices": [], "status": "[CARD]", "type": "x.y_2025-01"}


def test_a_blocked_value_withholds_the_answer():
    out, answer = through(b'{"choices":[{"message":{"content":"a@b.org"}}]}', BLOCKING)
    assert json.loads(out)["error"]["code"] == "content_filter"
    assert answer.blocked == "email"


def test_what_is_no_json_is_a_text():
    assert through(b"\xff plain a@b.org")[0] == b"\xff plain [EMAIL]"


def test_what_cannot_be_read_for_sure_is_refused_without_quoting_it():
    for body in (b'{"a": "jane", "a": "jane"}', b"[" * 5000 + b"]" * 5000):
        with pytest.raises(UnreadableAnswer) as refusal:
            through(body)
        assert "jane" not in str(refusal.value)


def test_the_texts_of_a_request_are_filtered_and_nothing_else():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,a@b.org"}}
    call = {"id": "call_1", "function": {"name": "send", "arguments": '{"n": 4111111111111111}'}}
    messages = [
        {"role": "user", "content": "I am jane@example.com"},
        {"role": "user", "content": [{"type": "text", "text": "10.0.0.1"}, image]},
        {"role": "assistant", "tool_calls": [call]},
    ]
    body = json.dumps({"model": "a@b.org", "messages": messages, "user": "a@b.org"}).encode()
    changes = request_changes(body, answer := Answer(POLICY, Masks(POLICY.modes)))
    out = json.loads(replaced(body, changes))
    messages[0]["content"] = "I am [EMAIL]"
    messages[1]["content"][0]["text"] = "[IP]"
    call["function"]["arguments"] = '{"n": 0}'
    assert out == {"model": "a@b.org", "messages": messages, "user": "a@b.org"}
    assert answer.counts == {"email": 1, "ip": 1, "card": 1}


@pytest.mark.parametrize("kind", [[], {}, [[]], {"type": []}, None, 1, True])
def test_a_type_that_is_no_word_keeps_nothing_from_being_filtered(kind):
    body = json.dumps({"type": kind, "content": "jane@example.com", "query": "jane@example.com"}).encode()
    filtered, _ = through(body)
    assert json.loads(filtered) == {"type": kind, "content": "[EMAIL]", "query": "[EMAIL]"}
    assert request_changes(body, Answer(POLICY, Masks(POLICY.modes)))
    assert texts_to_judge(body, 400) == ["jane@example.com"] * 2


def test_the_sentences_of_a_whole_answer_can_be_judged():
    body = json.dumps(
        {"choices": [{"message": {"role": "assistant", "content": "One. Two is " + "long " * 20}}]}
    ).encode()
    asked = texts_to_judge(body, 40)
    assert asked[0] == "One. "
    assert "".join(asked) == "One. Two is " + "long " * 20
    assert texts_to_judge(b"no json", 40) == ["no json"]


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures of real engines are not beside this checkout")
def test_what_real_engines_answered_passes_byte_for_byte():
    paths = [
        path for path in sorted(CAPTURES.glob("*.json")) if "meta" not in path.name and "kv_event" not in path.name
    ]
    assert len(paths) > 20
    for path in paths:
        assert through(path.read_bytes())[0] == path.read_bytes(), path.name


def test_the_timed_parts_of_a_transcript_do_not_spell_a_value_that_its_text_hides():
    def timed(*numbers: str) -> bytes:
        words = [{"word": word, "start": 0.1, "end": 0.2} for word in ("call", *numbers)]
        segments = [
            {"id": 0, "text": " call " + " ".join(numbers[:2]), "tokens": [50364, 7], "note": "jane@example.com"},
            {"id": 1, "text": " " + " ".join(numbers[2:]), "tokens": [8]},
        ]
        text = "call " + " ".join(numbers)
        return json.dumps({"text": text, "language": "en", "words": words, "segments": segments}).encode()

    out = json.loads(through(timed("4111", "1111", "1111", "1111"))[0])
    assert out == {"text": "call [CARD]", "language": "en", "words": [], "segments": []}
    harmless = json.loads(through(timed("me", "at", "ten", "please"))[0])
    assert [word["word"] for word in harmless["words"]] == ["call", "me", "at", "ten", "please"]
    assert [part["text"] for part in harmless["segments"]] == [" call me at", " ten please"]
    assert harmless["segments"][0]["note"] == "[EMAIL]"
    assert [part["tokens"] for part in harmless["segments"]] == [[], []]


def test_embeddings_stay_as_they_are_in_either_form():
    vectors = [0.25, "/".join(["AAECAwQF4111111111111111"] * 3)]
    body = json.dumps(
        {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": one} for one in vectors]}
    ).encode()
    assert through(body)[0] == body


def test_numbers_that_a_model_wrote_in_a_list_are_looked_at():
    call = {"type": "function", "function": {"name": "pay", "arguments": "{}"}}
    message = {"role": "assistant", "tool_calls": [call], "parsed": {"cards": [4111111111111111, 7]}}
    out, answer = through(json.dumps({"choices": [{"index": 0, "message": message}]}).encode())
    assert json.loads(out)["choices"][0]["message"]["parsed"] == {"cards": [0, 7]}
    assert answer.counts["card"] == 1
