"""Deployments through the API: what is stored, what is refused, and how a change is guarded."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from control_plane.errors import StaleVersion
from control_plane.records import Actor, Scope
from control_plane.services.preconditions import Precondition
from fleet.manifest import from_document


def test_a_pinned_manifest_is_created_and_read_back(world):
    answer = world.put(world.pinned())
    assert answer.status_code == 201
    assert answer.headers["etag"] == '"1"'
    assert answer.headers["location"] == "/v1/deployments/chat"
    read = world.get("/v1/deployments/chat").json()
    assert read == answer.json()
    assert read["metadata"]["generation"] == 1
    assert read["status"]["phase"] == "Pending"
    assert len(read["status"]["identity"]) == 32
    assert world.condition("chat")["status"] == "True"


def test_a_change_needs_the_version_that_it_replaces(world):
    world.put(world.pinned())
    assert world.put(world.pinned(scaling={"max": 2})).status_code == 428
    assert world.put(world.pinned(scaling={"max": 2}), etag='"7"').status_code == 412
    assert world.put(world.pinned(scaling={"max": 2}), etag='W/"1"').status_code == 412
    answer = world.put(world.pinned(scaling={"max": 2}), etag='"1"')
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert world.put(world.pinned(scaling={"max": 3}), etag="*").headers["etag"] == '"3"'


def test_the_same_manifest_again_changes_nothing(world):
    world.put(world.pinned())
    events = world.get("/v1/audit-events:head").json()
    answer = world.put(world.pinned(), etag='"1"')
    assert (answer.status_code, answer.headers["etag"]) == (200, '"1"')
    assert world.get("/v1/audit-events:head").json() == events


def test_what_was_read_can_be_sent_back(world):
    world.put(world.pinned())
    read = world.get("/v1/deployments/chat")
    assert world.put(read.json(), etag=read.headers["etag"]).headers["etag"] == '"1"'


def test_an_object_that_does_not_exist_has_no_version(world):
    assert world.put(world.pinned(), etag='"1"').status_code == 412
    assert world.put(world.pinned(), headers={"If-None-Match": "*"}).status_code == 201
    assert world.put(world.pinned(), headers={"If-None-Match": "*"}).status_code == 412


def test_a_name_that_was_deleted_never_gets_an_old_version_again(world):
    world.put(world.pinned())
    assert world.call("DELETE", "/v1/deployments/chat").status_code == 428
    assert world.call("DELETE", "/v1/deployments/chat", etag='"1"').status_code == 204
    assert world.get("/v1/deployments/chat").status_code == 404
    assert world.put(world.pinned()).headers["etag"] == '"2"'


def test_of_two_writers_exactly_one_wins(world):
    world.put(world.pinned())
    actor = Actor("race", Scope.OPERATOR)
    demand = Precondition(versions=frozenset({"1"}))

    def change(number: int) -> bool:
        manifest = from_document(world.pinned(scaling={"max": number}))
        try:
            world.assembly.house.deployments.put(manifest, demand, actor, is_dry_run=False)
        except StaleVersion:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(change, range(2, 18)))
    assert sum(won) == 1
    assert world.get("/v1/deployments/chat").headers["etag"] == '"2"'


def test_a_refused_manifest_names_its_violations(world):
    world.publish(world.record("GHSA-x", fixed="0.33.0"))
    answer = world.put(world.pinned(version="0.32.0"))
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert [item["rule"] for item in answer.json()["violations"] if item["severity"] == "mandatory"] == [
        "advisory-affected"
    ]
    assert world.get("/v1/deployments").json()["items"] == []


def test_a_written_manifest_is_refused_by_the_rule_of_the_four_pins(world):
    written = world.pinned()
    written["kind"] = "InferenceDeployment"
    del written["pin"], written["spec"]["engine"]
    answer = world.put(written)
    assert answer.status_code == 422
    assert {item["rule"] for item in answer.json()["violations"]} >= {"four-pins"}


def test_a_written_manifest_without_open_parts_is_still_not_a_pinned_one(world):
    written = world.pinned()
    written["kind"] = "InferenceDeployment"
    del written["pin"]
    answer = world.put(written)
    assert answer.status_code == 422
    assert "pin" in answer.json()["errors"][0]["message"]


def test_a_dry_run_plans_and_stores_nothing(world):
    before = world.get("/v1/audit-events:head").json()
    plan = world.put(world.pinned(), params={"dry_run": "true"}).json()
    assert (plan["kind"], plan["action"], plan["refused"]) == ("Plan", "create", False)
    assert plan["identity"]["before"] is None
    assert world.get("/v1/deployments").json()["items"] == []
    world.put(world.pinned())
    plan = world.put(world.pinned(scaling={"max": 5}), params={"dry_run": "true"}).json()
    assert plan["action"] == "replace"
    assert plan["changes"] == [{"pointer": "/spec/scaling/max", "before": 1, "after": 5}]
    assert plan["identity"]["before"] == plan["identity"]["after"]
    assert world.get("/v1/deployments/chat").headers["etag"] == '"1"'
    plan = world.call("DELETE", "/v1/deployments/chat", params={"dry_run": "true"}).json()
    assert plan["action"] == "delete"
    assert world.get("/v1/deployments/chat").status_code == 200
    assert world.get("/v1/audit-events:head").json()["sequence"] == before["sequence"] + 1


def test_a_dry_run_of_a_refused_manifest_says_so(world):
    world.publish(world.record("GHSA-x", fixed="0.33.0"))
    answer = world.put(world.pinned(version="0.32.0"), params={"dry_run": "true"})
    assert answer.status_code == 200
    assert answer.json()["refused"] is True
    assert answer.json()["violations"]


def test_an_environments_deployment_can_not_be_changed_by_the_api(world):
    manifest = from_document(world.pinned())
    adopter = Actor("system:adopter", Scope.SECURITY_ADMIN)
    service = world.assembly.house.deployments
    service.put(manifest, Precondition(), adopter, is_dry_run=False, managed_by="prod")
    assert world.get("/v1/deployments/chat").json()["metadata"]["managedBy"] == "prod"
    for answer in (
        world.put(world.pinned(scaling={"max": 2}), etag='"1"'),
        world.call("DELETE", "/v1/deployments/chat", etag='"1"'),
    ):
        assert answer.status_code == 409
        assert "environment 'prod'" in answer.json()["detail"]


def test_an_unknown_field_is_named_with_the_nearest(world):
    manifest = world.pinned()
    manifest["spec"]["scalling"] = {"max": 2}
    problem = world.put(manifest).json()
    assert problem["status"] == 422
    assert problem["errors"][0]["pointer"] == "/spec/scalling"
    assert "did you mean 'scaling'" in problem["errors"][0]["message"]


def test_the_name_in_the_body_is_that_of_the_address(world):
    answer = world.call("PUT", "/v1/deployments/other", json=world.pinned())
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/metadata/name"


@pytest.mark.parametrize("size", [1, 3, 500])
def test_pages_hold_every_deployment_once(world, size):
    names = [f"chat-{number}" for number in range(7)]
    for name in names:
        world.put(world.pinned(name))
    found, token = [], None
    while True:
        query = {"page_size": size} | ({"page_token": token} if token else {})
        page = world.get("/v1/deployments", params=query).json()
        assert len(page["items"]) <= size
        found += [item["metadata"]["name"] for item in page["items"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert found == names


def test_a_page_token_fits_its_own_list_alone(world):
    for name in ("a", "b"):
        world.put(world.pinned(name))
    token = world.get("/v1/deployments", params={"page_size": 1}).json()["next_page_token"]
    assert world.get("/v1/tenants", params={"page_token": token}).status_code == 400
    for bad in ("nonsense", "é", token[:-2], "bnVsbA", "W10"):
        answer = world.get("/v1/deployments", params={"page_token": bad})
        assert answer.status_code == 400
        assert "page_token" in answer.json()["detail"]


def test_the_basic_view_leaves_the_long_parts_out(world):
    world.publish(world.record("GHSA-y", severity=None))
    world.put(world.pinned())
    full = world.get("/v1/deployments").json()["items"][0]
    basic = world.get("/v1/deployments", params={"view": "basic"}).json()["items"][0]
    assert full["status"]["residuals"]
    assert set(full) - set(basic) == {"spec", "pin"}
    for part in ("metadata", "status"):
        assert basic[part].items() <= full[part].items()
