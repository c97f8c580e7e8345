"""Waivers, triage entries, tenants and keys: one life for all of them, and what each one does."""

from datetime import timedelta

import pytest

from control_plane.records import Scope

ADMIN = Scope.SECURITY_ADMIN


def waiver(identity: str, /, **changes):
    spec = {"identity": identity, "advisory": "GHSA-x", "owner": "ann", "reason": "tested", "expires": "2030-01-31"}
    return {"metadata": {"name": "one"}, "spec": {key: value for key, value in (spec | changes).items() if value}}


def triage(**changes):
    spec = {
        "package": "vllm",
        "advisory": "GHSA-x",
        "status": "not_affected",
        "owner": "ann",
        "reason": "not compiled in",
        "reference": "ticket 7",
        "expires": "2030-01-31",
    }
    return {"metadata": {"name": "one"}, "spec": spec | changes}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tenants/one", {"metadata": {"name": "one"}, "spec": {"tokens_per_minute": 5}}),
        ("/v1/waivers/one", waiver("0" * 32)),
        ("/v1/triage/one", triage()),
    ],
)
def test_an_object_lives_from_creation_to_deletion(world, path, body):
    made = world.call("PUT", path, json=body, scope=ADMIN)
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    assert world.get(path).json() == made.json()
    listed = world.get(path.rsplit("/", 1)[0]).json()
    assert listed["items"] == [made.json()]
    assert world.call("PUT", path, json=body, scope=ADMIN).status_code == 428
    same = world.call("PUT", path, json=made.json(), scope=ADMIN, etag='"1"')
    assert (same.status_code, same.headers["etag"]) == (200, '"1"')
    plan = world.call("DELETE", path, scope=ADMIN, params={"dry_run": "true"})
    assert plan.json()["action"] == "delete"
    assert world.call("DELETE", path, scope=ADMIN, etag='"9"').status_code == 412
    assert world.call("DELETE", path, scope=ADMIN, etag='"1"', params={"reason": "over"}).status_code == 204
    assert world.get(path).status_code == 404
    last = world.get("/v1/audit-events").json()["items"][-1]
    assert (last["action"].split(".")[1], last["reason"], last["after"]) == ("delete", "over", None)
    assert world.call("PUT", path, json=body, scope=ADMIN).headers["etag"] == '"2"'


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"expires": "2029-12-31"}, "/spec/expires"),
        ({"expires": "2031-01-01"}, "/spec/expires"),
        ({"rule": "advisory-affected", "advisory": None}, "/spec/rule"),
        ({"rule": "four-pins", "advisory": None}, "/spec/rule"),
        ({"rule": "advisory-agee", "advisory": None}, "/spec/rule"),
        ({"rule": "advisory-age"}, "/spec"),
        ({"advisory": None}, "/spec"),
        ({"owner": "  "}, "/spec/owner"),
        ({"identity": "chat"}, "/spec/identity"),
        ({"expires": "soon"}, "/spec/expires"),
    ],
)
def test_a_waiver_that_would_do_nothing_is_not_kept(world, changes, pointer):
    answer = world.call("PUT", "/v1/waivers/one", json=waiver("0" * 32, **changes), scope=ADMIN)
    assert answer.status_code == 422
    assert pointer in [item["pointer"] for item in answer.json()["errors"]]
    assert world.get("/v1/waivers").json()["items"] == []


def test_a_mistyped_rule_is_named_with_the_nearest(world):
    body = waiver("0" * 32, rule="advisory-agee", advisory=None)
    problem = world.call("PUT", "/v1/waivers/one", json=body, scope=ADMIN).json()
    assert "did you mean 'advisory-age'" in problem["errors"][0]["message"]


def test_a_waiver_excuses_its_identity_until_it_ends(world):
    world.put(world.pinned(version="0.32.0"))
    identity = world.get("/v1/deployments/chat").json()["status"]["identity"]
    world.publish(world.record("GHSA-x", fixed="0.33.0"))
    assert world.condition("chat")["status"] == "False"
    assert world.put(world.pinned(version="0.32.0", scaling={"max": 2}), etag="*").status_code == 422
    world.call("PUT", "/v1/waivers/one", json=waiver(identity), scope=ADMIN)
    assert world.put(world.pinned(version="0.32.0", scaling={"max": 2}), etag="*").status_code == 200
    world.assembly.watch.look()
    assert world.condition("chat")["status"] == "True"
    world.clock.forward(days=31)
    world.assembly.watch.look()
    assert world.condition("chat")["status"] == "False"


def test_a_deleted_waiver_stops_holding(world):
    world.put(world.pinned(version="0.32.0"))
    identity = world.get("/v1/deployments/chat").json()["status"]["identity"]
    world.call("PUT", "/v1/waivers/one", json=waiver(identity), scope=ADMIN)
    world.publish(world.record("GHSA-x", fixed="0.33.0"))
    assert world.condition("chat")["status"] == "True"
    world.call("DELETE", "/v1/waivers/one", scope=ADMIN, etag='"1"')
    world.assembly.watch.look()
    assert world.condition("chat")["status"] == "False"


def test_a_triage_entry_silences_its_residual(world):
    world.publish(world.record("GHSA-x", severity=None))
    world.put(world.pinned())
    before = world.get("/v1/deployments/chat").json()["status"]["residuals"]
    assert [item["advisory"] for item in before] == ["GHSA-x"]
    world.call("PUT", "/v1/triage/one", json=triage(status="accepted"), scope=ADMIN)
    world.assembly.watch.look()
    after = world.get("/v1/deployments/chat").json()["status"]["residuals"]
    assert "triaged accepted by ann" in after[0]["message"]


def test_a_key_needs_a_tenant_and_holds_it_in_place(world):
    answer = world.call("POST", "/v1/keys", json={"tenant": "acme"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/tenant"
    world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}})
    first = world.call("POST", "/v1/keys", json={"tenant": "acme"}).json()
    assert first["metadata"]["name"].startswith("acme-")
    again = world.call("POST", "/v1/keys", json={"tenant": "acme", "name": first["metadata"]["name"]})
    assert again.status_code == 409
    answer = world.call("DELETE", "/v1/tenants/acme", etag='"1"')
    assert answer.status_code == 409
    assert first["metadata"]["name"] in answer.json()["detail"]
    assert world.call("DELETE", f"/v1/keys/{first['metadata']['name']}", etag='"1"').status_code == 204
    assert world.call("DELETE", "/v1/tenants/acme", etag='"1"').status_code == 204


def test_a_key_ends_in_the_future_or_never(world):
    world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}})
    past = (world.clock.now() - timedelta(seconds=1)).isoformat()
    assert world.call("POST", "/v1/keys", json={"tenant": "acme", "expires": past}).status_code == 422
    made = world.call("POST", "/v1/keys", json={"tenant": "acme", "expires": "2031-01-01T00:00:00Z"})
    assert made.json()["spec"]["expires"] == "2031-01-01T00:00:00Z"
    snapshot = world.get("/v1/gateway/snapshot").json()
    assert snapshot["keys"][0]["expires_unix_seconds"] == 1924992000


def test_keys_are_listed_by_tenant(world):
    for tenant in ("acme", "globex"):
        world.call("PUT", f"/v1/tenants/{tenant}", json={"metadata": {"name": tenant}})
        world.call("POST", "/v1/keys", json={"tenant": tenant, "name": f"{tenant}-key"})
    found = world.get("/v1/keys", params={"tenant": "globex"}).json()["items"]
    assert [item["metadata"]["name"] for item in found] == ["globex-key"]
