"""What a route takes: operations that its engines have, and no field that reaches a closed path."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import ClosedPath
from gateway.asked import Request
from gateway.closed_fields import CLOSABLE
from gateway.decision import Allowed, DecisionCore
from gateway.index import index_of
from gateway.paths import ENGINE_PATHS, Operation
from gateway.refusals import Reason
from gateway.telemetry import Telemetry

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
FORM = {"content-type": "multipart/form-data; boundary=abc"}


def upload(model="acme-chat"):
    return (
        f'--abc\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
        '--abc\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--abc--\r\n'
    ).encode()


def core_of(world, serves=(), closed=()):
    snapshot = world.snapshot(closed_paths=tuple(ClosedPath(path=path, reference=said) for path, said in closed))
    arms = tuple(
        world.arm(name=f"arm-{number}").model_copy(update={"serves": words}) for number, words in enumerate(serves)
    )
    if arms:
        first = snapshot.routes[0].model_copy(update={"arms": arms})
        snapshot = snapshot.model_copy(update={"routes": (first, *snapshot.routes[1:])})
    core = DecisionCore()
    core.replace(index_of(snapshot), 0.0)
    return core


def ask(core, world, path, **members):
    document = {"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, **members}
    headers = {"authorization": f"Bearer {world.acme_key}"}
    if ENGINE_PATHS[path] is Operation.TRANSCRIPTION:
        return core.decide(Request("POST", path, headers | FORM, upload()), world.now)
    return core.decide(Request("POST", path, headers, json.dumps(document).encode()), world.now)


@pytest.mark.parametrize("path", ENGINE_PATHS)
def test_an_arm_that_says_nothing_has_chats_completions_and_embeddings(world, path):
    decision = ask(core_of(world), world, path)
    if ENGINE_PATHS[path] in {Operation.CHAT, Operation.COMPLETION, Operation.EMBEDDING}:
        assert isinstance(decision, Allowed)
    else:
        assert (decision.reason, decision.status) == (Reason.NOT_SERVED, 404)
        assert "chat, completion, embedding" in decision.message


@given(st.lists(st.sets(st.sampled_from(list(ENGINE_PATHS.values())), min_size=1), min_size=1, max_size=3), st.data())
def test_a_request_goes_to_an_arm_that_serves_it_or_nowhere(world, serves, data):
    path = data.draw(st.sampled_from(list(ENGINE_PATHS)))
    core = core_of(world, tuple(tuple(words) for words in serves))
    decision = ask(core, world, path)
    having = {f"arm-{number}" for number, words in enumerate(serves) if ENGINE_PATHS[path] in words}
    if having:
        assert decision.deployment in having
    else:
        assert decision.reason is Reason.NOT_SERVED


def test_a_closed_field_is_refused_with_its_place_and_the_reference_alone(world):
    core = core_of(world, closed=[("structured-output", "R-17"), ("structured-output", "R-18"), ("lora", "R-19")])
    decision = ask(core, world, CHAT, response_format={"type": "json_schema", "json_schema": {}})
    assert (decision.reason, decision.status) == (Reason.CLOSED_FIELD, 400)
    error = json.loads(decision.body)["error"]
    assert error["param"] == "/response_format"
    assert "R-17" in error["message"]
    assert isinstance(ask(core, world, CHAT), Allowed)


def test_a_closed_field_of_one_route_is_open_on_another(world):
    core = core_of(world, closed=[("tool-parser", "R-1")])
    assert ask(core, world, CHAT, tools=[{"type": "function"}]).reason is Reason.CLOSED_FIELD
    assert isinstance(ask(core, world, CHAT, tools=[{"type": "function"}], model="both-chat"), Allowed)


def test_sound_is_closed_with_the_other_media_and_a_format_of_text_is_no_grammar(world):
    path, serves = "/v1/audio/transcriptions", [("transcription",)]
    closed = ask(core_of(world, serves, [("multimodal", "R-2")]), world, path)
    assert (closed.reason, json.loads(closed.body)["error"]["param"]) == (Reason.CLOSED_FIELD, "/file")
    assert isinstance(ask(core_of(world, serves, [("structured-output", "R-1")]), world, path), Allowed)


@given(st.sampled_from(sorted(CLOSABLE)))
def test_a_plain_chat_passes_whatever_is_closed(world, path):
    assert isinstance(ask(core_of(world, closed=[(path, "R-1")]), world, CHAT), Allowed)


def test_an_answer_in_the_background_or_kept_by_an_engine_is_refused(world):
    core = core_of(world, serves=[("responses",)])
    for name, value in (("background", True), ("previous_response_id", "resp_1")):
        decision = ask(core, world, "/v1/responses", **{name: value})
        assert (decision.reason, json.loads(decision.body)["error"]["param"]) == (Reason.BAD_FIELD, name)
    assert isinstance(ask(core, world, "/v1/responses", background=False, previous_response_id=None), Allowed)


@pytest.mark.parametrize("path", sorted(set(ENGINE_PATHS) - {"/v1/audio/transcriptions"}))
@pytest.mark.parametrize(
    "name",
    ["kv_transfer_params", "bootstrap_host", "disaggregated_params", "lora_path", "routed_dp_rank", "session_params"],
)
def test_words_between_engines_are_no_clients(world, path, name):
    core = core_of(world, serves=[tuple(Operation)])
    decision = ask(core, world, path, **{name: {"remote_host": "10.0.0.1", "remote_block_ids": [1]}})
    assert (decision.reason, decision.status) == (Reason.BAD_FIELD, 400)
    assert name in decision.message
    assert isinstance(ask(core, world, path, **{name: None}), Allowed)


def test_the_metric_tells_operators_what_the_client_is_not_told(world):
    telemetry = Telemetry()
    core = core_of(world, closed=[("tool-parser", "R-1")])
    telemetry.decided(ask(core, world, CHAT, tools=[{"type": "function"}]), 0.0)
    labels = {"model": "acme-chat", "path": "tool-parser", "reference": "R-1"}
    name = "enginehouse_gateway_closed_field_refusals_total"
    assert telemetry.registry.get_sample_value(name, labels) == 1


def test_the_key_may_come_as_anthropics_header(world):
    core = core_of(world, serves=[("messages",)])
    body = json.dumps({"model": "acme-chat", "messages": [], "max_tokens": 5}).encode()
    by_header = Request("POST", MESSAGES, {"x-api-key": world.acme_key}, body)
    assert isinstance(core.decide(by_header, world.now), Allowed)
    both = Request("POST", MESSAGES, {"x-api-key": world.acme_key, "authorization": "Bearer eh-wrong"}, body)
    assert core.decide(both, world.now).reason is Reason.INVALID_KEY
    assert "x-api-key" in core.decide(by_header, world.now).headers_to_remove
