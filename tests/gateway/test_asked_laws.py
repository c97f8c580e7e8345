"""Whatever is asked at whatever path: a decision, an error in the form of its API, edits that change what they say."""

import json
from contextlib import nullcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.affinity import conversation_key
from gateway.asked import Request
from gateway.body_edits import apply_edits
from gateway.decision import Allowed, DecisionCore
from gateway.error_forms import ANTHROPIC_PATHS, in_form_of
from gateway.form_document import parse_form
from gateway.index import index_of
from gateway.paths import ENGINE_PATHS, Operation, public_path
from gateway.prompt_parts import PartTokens
from gateway.refusals import Reason, Refused
from gateway.request_document import MAX_DEPTH, BadDocument, parse_document
from gateway.token_estimate import BadField, Dialect, TokenEstimate, dialect_of, estimate

UPLOAD = "/v1/audio/transcriptions"
FORM = "multipart/form-data; boundary=abc"
JSON_PATHS = sorted(set(ENGINE_PATHS) - {UPLOAD})
TEXT = st.text(max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "source", "url", "format", "name"]), inner
        )
    ),
    max_leaves=10,
)
MEMBERS = st.sampled_from(
    [
        "messages", "input", "prompt", "system", "instructions", "query", "documents", "tools", "tool_choice", "text",
        "stream", "stream_options", "n", "best_of", "max_tokens", "max_completion_tokens", "max_output_tokens",
        "background", "previous_response_id", "response_format", "cache_salt", "priority", "suffix", "top_n",
    ]
)  # fmt: skip
DOCUMENTS = st.dictionaries(MEMBERS, VALUES, max_size=6)


@pytest.fixture(scope="module")
def core(world):
    arm = world.arm().model_copy(update={"serves": tuple(Operation)})
    snapshot = world.snapshot()
    first = snapshot.routes[0].model_copy(update={"arms": (arm,), "aliases": ("acme-alias",)})
    core = DecisionCore()
    core.replace(index_of(snapshot.model_copy(update={"routes": (first, *snapshot.routes[1:])})), 0.0)
    return core


def ask(core, world, path, body, **headers):
    return core.decide(Request("POST", path, {"authorization": f"Bearer {world.acme_key}", **headers}, body), world.now)


def check_error(decision, path):
    refused = in_form_of(decision, path)
    error = json.loads(refused.body)["error"]
    assert 400 <= refused.status <= 503
    assert set(error) == ({"type", "message"} if path in ANTHROPIC_PATHS else {"message", "type", "param", "code"})


@example({"messages": [{"role": "user", "content": [{"type": [], "text": "a"}]}]}, "/v1/chat/completions", "acme-chat")
@given(DOCUMENTS, st.sampled_from(JSON_PATHS), st.sampled_from(["acme-chat", "acme-alias", "nobody-chat"]))
def test_whatever_the_members_hold_it_is_decided_and_an_engine_gets_valid_json(core, world, document, path, model):
    body = json.dumps({"model": model, **document}).encode()
    decision = ask(core, world, path, body)
    if isinstance(decision, Refused):
        check_error(decision, path)
        return
    sent = json.loads(apply_edits(body, decision.admitted.edits))
    assert sent["model"] == "acme-chat"
    ours = {"model", "stream_options", "max_tokens", "max_output_tokens", "priority", "cache_salt"}
    assert {name: sent[name] for name in sent.keys() - ours} == {
        name: value for name, value in document.items() if name not in ours
    }


NESTED = {
    "lists": "[" * 997 + "]" * 997,
    "objects": '{"a":' * 400 + "1" + "}" * 400,
    "parts": '{"type":"text","content":[' * 200 + "]}" * 200,
    "places": '{"image_url":' * 129 + '"http://a"' + "}" * 129,
}


@pytest.mark.parametrize("member", ["messages", "stream_options", "cache_salt", "tools", "content"])
@pytest.mark.parametrize("value", NESTED.values(), ids=NESTED)
def test_what_is_nested_deeper_than_anybody_looks_is_refused(core, world, member, value):
    body = b'{"model":"acme-chat","stream":true,"%b":%b}' % (member.encode(), value.encode())
    decision = ask(core, world, "/v1/chat/completions", body)
    assert isinstance(decision, Refused)
    assert decision.reason is Reason.BAD_JSON
    assert decision.status == 400


@given(st.integers(1, 300), st.sampled_from(["[%s]", '{"a":%s}', '{"a":[%s],"b":{}}']))
def test_a_document_is_read_up_to_its_greatest_depth(times, shape):
    text = "1"
    for _ in range(times):
        text = shape.replace("%s", text)
    depth = 1 + times * (2 if shape.count("[") and shape.count("{") else 1)
    with nullcontext() if depth <= MAX_DEPTH else pytest.raises(BadDocument, match="nested deeper"):
        parse_document(f'{{"a":{text},"more":[]}}'.encode())


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("{}", '{"include_usage":true}'),
        ('{ "x" : 1e999 }', '{"include_usage":true, "x" : 1e999 }'),
        ('{"a": "}", "include_usage" : false , "b": [1.0]}', '{"a": "}", "include_usage" : true , "b": [1.0]}'),
        ("[1]", '{"include_usage":true}'),
        ("null", '{"include_usage":true}'),
    ],
)
def test_a_clients_own_options_of_a_stream_stay_as_it_wrote_them(core, world, stated, expected):
    body = '{"model":"acme-alias","messages":[],"stream_options": %s ,"stream":true}'
    decision = ask(core, world, "/v1/chat/completions", (body % stated).encode())
    sent = apply_edits((body % stated).encode(), decision.admitted.edits).decode()
    assert sent == (body % expected).replace("acme-alias", "acme-chat")
    assert decision.admitted.is_usage_injected


@given(st.binary(max_size=60), st.sampled_from(sorted(ENGINE_PATHS)), st.text(max_size=20) | st.just(FORM))
def test_whatever_the_bytes_it_is_refused_in_the_form_of_its_api(core, world, body, path, content_type):
    decision = ask(core, world, path, body, **{"content-type": content_type})
    assert isinstance(decision, Refused)
    check_error(decision, path)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
def test_whatever_the_target_it_is_a_path_or_none(target):
    path = public_path(target)
    assert path is None or path.method in {"GET", "POST"}


@given(DOCUMENTS, st.sampled_from(list(Dialect)))
def test_whatever_the_document_its_size_is_bounded_and_never_negative(document, dialect):
    size = estimate(parse_document(json.dumps(document).encode()), dialect)
    if isinstance(size, BadField):
        assert size.name in document
        return
    assert isinstance(size, TokenEstimate)
    assert size.input_tokens >= 0
    demand = size.demand(1000)
    assert 0 <= demand.output_tokens <= 1000 * max(1, size.sequences)


def test_every_operation_of_an_engine_has_a_dialect():
    assert {dialect_of(operation) for operation in ENGINE_PATHS.values()} == set(Dialect)


def upload(model, content=b"RIFF"):
    return (
        (
            f'--abc\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
            '--abc\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        ).encode()
        + content
        + b"\r\n--abc--\r\n"
    )


@given(st.sampled_from(["acme-chat", "acme-alias"]), st.binary(max_size=80).filter(lambda raw: b"--abc" not in raw))
def test_an_upload_reaches_the_engine_with_its_model_name_and_the_same_file(core, world, model, content):
    body = upload(model, content)
    decision = ask(core, world, UPLOAD, body, **{"content-type": FORM})
    assert isinstance(decision, Allowed)
    sent = apply_edits(body, decision.admitted.edits)
    assert sent == upload("acme-chat", content)


def test_a_sound_counts_by_its_length_and_counting_tokens_counts_nothing():
    long = parse_form(FORM, upload("m", b"\0" * 800_000))
    short = parse_form(FORM, upload("m"))
    assert estimate(long, Dialect.UPLOAD) == TokenEstimate(10_000, 0, None)
    assert estimate(short, Dialect.UPLOAD) == TokenEstimate(PartTokens().audio, 0, None)
    assert estimate({"prompt": "x" * 1000, "max_tokens": 5}, Dialect.NOTHING) == TokenEstimate(0, 0, None)


def key_of(**document):
    return conversation_key("acme", "acme-chat", document)


def test_the_turns_of_a_response_are_one_conversation_and_other_openings_are_others():
    first = [{"role": "user", "content": "hello"}]
    later = [*first, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "more"}]
    assert key_of(input=first) == key_of(input=later)
    assert key_of(input=first) != key_of(input=[{"role": "user", "content": "other"}])
    assert key_of(input="hello") != key_of(input="other")
    assert key_of(system="a", messages=first) == key_of(system="a", messages=later)


def test_ranks_and_uploads_are_spread_over_arms():
    assert key_of(query="a", documents=["x"]) != key_of(query="b", documents=["x"])
    one, other = (parse_form(FORM, upload("m", content)) for content in (b"one", b"two"))
    assert key_of(**one) != key_of(**other)
