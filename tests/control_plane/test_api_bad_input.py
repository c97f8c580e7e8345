"""Bad input: every answer is a problem that says what is wrong, and none is a 500."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.api.bodies import MAX_BODY_BYTES, parse_object
from control_plane.errors import BadRequest

JSON = {"Content-Type": "application/json"}
PATH = "/v1/tenants/acme"
ANY_TEXT = st.text(st.characters(codec=None), max_size=20)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def world(module_world, tmp_path_factory):
    """One for all: what is refused changes nothing."""
    return module_world(tmp_path_factory.mktemp("bad-input"))


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"[]", 400, "expected an object"),
        (b"\xff\xfe", 400, "UTF-8"),
        (b'{"a": NaN}', 400, "NaN"),
        (b'{"a": 1, "a": 2}', 400, "twice"),
        (b'{"a": "\\u0000"}', 400, "NUL"),
        (b'{"a\\u0000": 1}', 400, "NUL"),
        (b'{"a": "\\ud800"}', 400, "surrogate"),
        (b'{"a": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        (b'{"a": ' + b"[" * 50 + b"]" * 50 + b"}", 400, "nested"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "nested"),
        (b'{"a": "' + b"x" * MAX_BODY_BYTES + b'"}', 413, "1000000 bytes"),
        (b'{"metadata": {"name": "acme"}, "spec": {"tokens_per_minute": 1e999}}', 422, "tokens_per_minute"),
        (b'{"metadata": {"name": "acme"}, "spec": {"tokens_per_minute": -1}}', 422, "tokens_per_minute"),
        (b'{"metadata": {"name": "acme"}, "spec": {"tokens_per_minut": 1}}', 422, "did you mean 'tokens_per_minute'"),
    ],
)
def test_a_body_that_can_not_be_kept_is_refused_with_its_reason(world, body, status, words):
    answer = world.call("PUT", PATH, content=body, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_a_body_that_comes_in_pieces_is_limited_too(world):
    answer = world.call("PUT", PATH, content=iter([b'{"a": "', *[b"x" * 100_000] * 11]), headers=JSON)
    assert answer.status_code == 413


def test_a_body_must_say_that_it_is_json(world):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = world.call("PUT", PATH, content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert "application/json" in answer.json()["detail"]


@given(value=ANY_JSON)
def test_parsing_gives_an_object_or_a_reason(value):
    raw = json.dumps(value).encode()
    try:
        found = parse_object(raw)
    except BadRequest as error:
        found, reason = None, str(error)
    assert found == json.loads(raw) if found is not None else reason.isprintable()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec", "pin", "x"]), ANY_JSON))
def test_no_document_makes_the_server_fail(world, value):
    for kind in (None, "PinnedInferenceDeployment"):
        document = value | ({"kind": kind} if kind else {})
        answer = world.call("PUT", "/v1/deployments/chat", content=json.dumps(document).encode(), headers=JSON)
        assert answer.status_code in (400, 422)
        assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/v1/nothing", 404, "no such address"),
        ("/v1/deployments/none", 404, "'none'"),
        ("/v1/deployments/UPPER", 422, "name"),
        ("/v1/deployments/a%00b", 422, "name"),
        ("/v1/deployments/%ff", 422, "name"),
        ("/v1/deployments?page_size=0", 422, "page_size"),
        ("/v1/deployments?page_size=501", 422, "page_size"),
        ("/v1/deployments?page_sise=5", 422, "did you mean 'page_size'"),
        ("/v1/advisories/CVE-0000-0000", 404, "CVE-0000-0000"),
        ("/v1/advisories?severity=huge", 422, "severity"),
        ("/v1/engines/vlm", 404, "did you mean 'vllm'"),
        ("/v1/pins/groq", 404, "groq"),
        ("/v1/gateway/snapshot?wait_seconds=31", 422, "wait_seconds"),
        ("/v1/gateway/snapshot?wait_seconds=nan", 422, "wait_seconds"),
        ("/v1/audit-events?page_token=x", 400, "page_token"),
    ],
)
def test_an_address_or_query_that_is_wrong_is_named(world, path, status, words):
    answer = world.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("PATCH", "/v1/deployments", "GET"), ("OPTIONS", "/v1/tenants/a", "DELETE, GET, PUT"), ("PUT", "/livez", "GET")],
)
def test_a_method_that_an_address_does_not_take_names_those_that_it_does(world, method, path, allowed):
    answer = world.call(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    assert answer.json()["detail"].endswith(allowed)


@pytest.mark.parametrize("tag", ["1", '"1', "x y", '"1" "2"', '"', "W/1"])
def test_an_if_match_that_is_no_list_of_etags_is_refused(world, tag):
    answer = world.put(world.pinned(), etag=tag)
    assert answer.status_code == 400
    assert "ETag" in answer.json()["detail"]


def test_a_request_id_of_the_client_comes_back_and_a_strange_one_does_not(world):
    assert world.get("/livez", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert world.get("/livez", headers={"X-Request-Id": "a b\tc"}).headers["x-request-id"] != "a b\tc"


def test_the_reason_of_a_change_is_plain_text(world):
    body = {"metadata": {"name": "acme"}}
    assert world.call("PUT", PATH, json=body, params={"reason": "a\0b"}).status_code == 400
    assert world.call("PUT", PATH, json=body, params={"reason": "café ☕"}).status_code == 201
    assert world.get("/v1/audit-events").json()["items"][-1]["reason"] == "café ☕"
