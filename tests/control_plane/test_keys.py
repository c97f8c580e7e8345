"""API keys: scopes by model, and rotation with an overlap in which the old one goes on."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.records import EndingKey, StoredKey
from control_plane.services.keys import MOST_ENDING, _ending
from fleet.api_keys import KEY_MARK, is_same, is_well_formed

SNAPSHOT = "/v1/gateway/snapshot"
NOW = 1_000
MOMENTS = st.integers(NOW - 50, NOW + 200)
EARLIER = st.lists(MOMENTS, max_size=MOST_ENDING)


@pytest.fixture
def tenant(world):
    world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}})
    world.put(world.pinned())
    return "acme"


def make(world, **more):
    return world.call("POST", "/v1/keys", json={"tenant": "acme", "name": "one", **more})


def rotate(world, seconds, etag='"1"', **more):
    return world.call("POST", "/v1/keys/one/rotate", json={"overlap_seconds": seconds}, etag=etag, **more)


def keys_of(world):
    return world.get(SNAPSHOT).json()["keys"]


@given(expires=st.none() | st.integers(NOW + 1, NOW + 200), ends=EARLIER, overlap=st.integers(0, 100))
def test_nothing_that_was_rotated_outlives_its_overlap_or_its_own_end(expires, ends, overlap):
    earlier = tuple(EndingKey(number, "p", str(number), end) for number, end in enumerate(ends))
    key = StoredKey("one", "acme", "p", "current", "", expires, "", generation=9, ending=earlier)
    going_on = _ending(key, NOW, NOW + overlap)
    stated = {"current": expires, **{item.sha256: item.ends_unix_seconds for item in earlier}}
    for item in going_on:
        own = stated[item.sha256]
        assert NOW < item.ends_unix_seconds <= NOW + overlap
        assert own is None or item.ends_unix_seconds <= own
    assert (overlap == 0) <= (going_on == ())
    generations = [item.generation for item in going_on]
    assert not generations or generations[0] == 9


def test_a_rotated_key_is_shown_once_and_the_old_one_goes_on_for_the_overlap(world, tenant):
    first = make(world, models=["chat"], pins_arms=True).json()
    answer = rotate(world, 3600)
    second = answer.json()
    assert (answer.status_code, answer.headers["etag"], second["metadata"]["generation"]) == (200, '"2"', 2)
    assert is_well_formed(second["key"], KEY_MARK)
    assert second["key"] != first["key"]
    assert second["spec"] == first["spec"] == {"tenant": "acme", "models": ["chat"], "pins_arms": True}
    (ending,) = second["status"]["ending"]
    assert (ending["generation"], ending["ends"]) == (1, "2030-01-01T13:00:00Z")
    assert "key" not in world.get("/v1/keys/one").json()
    new, old = keys_of(world)
    assert is_same(second["key"], new["sha256"])
    assert is_same(first["key"], old["sha256"])
    assert new["expires_unix_seconds"] is None
    assert old["expires_unix_seconds"] == int(world.clock.now().timestamp()) + 3600
    assert new["id"] == old["id"] == "one"
    assert new["models"] == old["models"] == ["chat"]
    assert new["pins_arms"] is old["pins_arms"] is True


def test_an_overlap_of_nothing_ends_every_earlier_generation(world, tenant):
    make(world)
    rotate(world, 3600)
    assert len(keys_of(world)) == 2
    assert rotate(world, 0, etag='"2"').json()["status"]["ending"] == []
    assert len(keys_of(world)) == 1


def test_a_rotation_names_the_generation_that_it_saw(world, tenant):
    make(world)
    assert world.call("POST", "/v1/keys/one/rotate", json={}).status_code == 428
    assert rotate(world, 60).status_code == 200
    assert rotate(world, 60).status_code == 412
    assert world.call("POST", "/v1/keys/two/rotate", json={}, etag='"1"').status_code == 404


def test_a_dry_run_rotates_nothing_and_shows_no_key(world, tenant):
    make(world)
    before = keys_of(world)
    plan = rotate(world, 60, params={"dry_run": "true"}).json()
    assert (plan["kind"], plan["action"]) == ("Plan", "replace")
    assert "key" not in plan
    assert keys_of(world) == before


def test_generations_in_use_are_bounded(world, tenant):
    make(world)
    for generation in range(1, MOST_ENDING + 1):
        assert rotate(world, 3600, etag=f'"{generation}"').status_code == 200
    answer = rotate(world, 3600, etag=f'"{MOST_ENDING + 1}"')
    assert answer.status_code == 409
    assert "overlap of 0 seconds" in answer.json()["detail"]
    world.clock.forward(hours=2)
    assert rotate(world, 3600, etag=f'"{MOST_ENDING + 1}"').status_code == 200


def test_a_key_that_has_expired_is_not_rotated(world, tenant):
    make(world, expires="2030-01-01T12:00:10Z")
    world.clock.forward(seconds=10)
    assert rotate(world, 60).status_code == 409


def test_the_audit_log_names_a_rotation_and_holds_no_key(world, tenant):
    first = make(world).json()["key"]
    second = rotate(world, 60, params={"reason": "it stood in a log"}).json()["key"]
    log = world.get("/v1/audit-events").text
    last = world.get("/v1/audit-events").json()["items"][-1]
    assert (last["action"], last["name"], last["reason"]) == ("key.rotate", "one", "it stood in a log")
    assert first not in log
    assert second not in log


def test_a_key_for_a_mistyped_model_is_refused_with_the_nearest_name(world, tenant):
    answer = make(world, models=["chatt"])
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["pointer"] == "/models/0"
    assert "did you mean 'chat'" in problem["message"]
    assert world.get("/v1/keys").json()["items"] == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5, deadline=None)
@given(seconds=st.integers(max_value=-1) | st.integers(min_value=90 * 86_400 + 1))
def test_an_overlap_is_bounded(world, seconds):
    assert rotate(world, seconds).status_code == 422


def test_a_name_that_was_deleted_never_gets_an_old_etag_again(world, tenant):
    make(world)
    rotate(world, 0)
    assert world.call("DELETE", "/v1/keys/one", etag='"2"').status_code == 204
    assert make(world).headers["etag"] == '"3"'
