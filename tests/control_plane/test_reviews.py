"""Reviews of everything: conditions, events and proposals after advisories change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.services.reviews import as_member, compliance, plain, review_key
from fleet.manifest import from_document
from fleet.severity import Severity

OWN_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "served_name": st.sampled_from(["a", "b"]),
        "scaling": st.fixed_dictionaries({"max": st.integers(1, 5)}),
        "access": st.fixed_dictionaries({"tenants": st.lists(st.sampled_from(["acme", "globex"]), unique=True)}),
        "objectives": st.fixed_dictionaries({"requests_per_second": st.floats(1, 9)}),
    },
)


@given(first=OWN_PARTS, second=OWN_PARTS)
def test_deployments_that_differ_in_what_no_rule_sees_share_a_review(world_maker, first, second):
    one, two = (from_document(world_maker(name, **parts)) for name, parts in (("a", first), ("b", second)))
    assert review_key(one) == review_key(two)
    assert one.identity == two.identity


@given(first=OWN_PARTS, second=OWN_PARTS)
def test_a_proposal_for_one_member_becomes_that_of_another(world_maker, first, second):
    proposal, member = (
        plain(from_document(world_maker(name, version=version, **parts)))
        for name, version, parts in (("a", "0.33.0", first), ("b", "0.32.0", second))
    )
    wanted = plain(from_document(world_maker("b", version="0.33.0", **second)))
    assert as_member(proposal, member) == wanted


@pytest.mark.parametrize("change", [{"workload": "batch"}, {"features": {"lora": ["x"]}}, {"canary": {"engine": {}}}])
def test_what_a_rule_can_see_makes_another_review(world_maker, change):
    assert review_key(from_document(world_maker("a", **change))) != review_key(from_document(world_maker("a")))


def test_the_moment_of_a_condition_moves_with_its_status_alone():
    bad = [{"severity": "mandatory", "message": "m", "advisory": "GHSA-x"}]
    first = compliance([], before=None, generation=1, now="1")
    second = compliance([{"severity": "advisory", "message": "n"}], before=first, generation=2, now="2")
    third = compliance(bad, before=second, generation=2, now="3")
    assert [item.last_transition for item in (first, second, third)] == ["1", "1", "3"]
    assert [item.reason for item in (first, second, third)] == ["Reviewed", "ReviewedWithResiduals", "AdvisoryAffected"]


def test_an_advisory_marks_the_affected_deployments_and_proposes_a_version(world):
    world.put(world.pinned("old", version="0.32.0", scaling={"max": 3}))
    world.put(world.pinned("twin", version="0.32.0", access={"tenants": ["globex"]}))
    world.put(world.pinned("new"))
    world.publish(world.record("GHSA-x", fixed="0.33.0"))
    for name in ("old", "twin"):
        condition = world.condition(name)
        assert (condition["status"], condition["reason"]) == ("False", "AdvisoryAffected")
        assert "GHSA-x" in condition["message"]
    assert world.condition("new")["status"] == "True"
    assert world.get("/v1/deployments/old").json()["status"]["proposal"] is None
    assert world.assembly.house.proposals.work() == 1  # both share a review
    for name in ("old", "twin"):
        read = world.get(f"/v1/deployments/{name}")
        proposal = read.json()["status"]["proposal"]["manifest"]
        assert proposal["spec"]["engine"]["version"] == "0.33.0"
        taken = world.put(proposal, etag=read.headers["etag"])
        assert taken.status_code == 200
        assert taken.json()["spec"]["access"] == read.json()["spec"]["access"]
        assert world.condition(name)["status"] == "True"


def test_each_change_of_a_condition_is_one_audit_event(world):
    world.put(world.pinned("old", version="0.32.0"))
    world.publish(world.record("GHSA-x", fixed="0.33.0"))
    world.assembly.watch.look()
    world.assembly.house.inspector.review_everything()
    world.publish()
    events = world.get("/v1/audit-events").json()["items"]
    about = [item["action"] for item in events if item["name"] == "old"]
    assert about == ["deployment.create", "deployment.not-compliant", "deployment.compliant"]
    assert [item["actor"] for item in events if item["name"] == "old"][1] == "system:review"
    assert world.assembly.house.audit.verify() is None


def test_a_new_deployment_is_refused_before_the_stored_ones_are_reviewed(world):
    world.feed.data = world.feed.data.model_copy(update={"advisories": ()})
    world.assembly.sync.look()
    world.publish(world.record("GHSA-x"))
    assert world.put(world.pinned()).status_code == 422


def test_without_an_acceptable_version_the_reason_is_told(world):
    world.put(world.pinned())
    world.publish(world.record("GHSA-x"))
    world.assembly.house.proposals.work()
    status = world.get("/v1/deployments/chat").json()["status"]
    assert status["proposal"] is None
    assert "no version" in status["noProposalReason"]


def test_a_lost_feed_keeps_its_last_data_and_shows_in_readiness(world):
    world.publish(world.record("GHSA-x"))
    world.feed.problem = "the folder is gone"
    world.assembly.sync.look()
    world.assembly.watch.look()
    ready = world.get("/readyz", scope=None)
    assert ready.status_code == 200
    check = next(item for item in ready.json()["checks"] if item["type"] == "AdvisoryFeedReachable")
    assert check["status"] == "False"
    assert "the folder is gone" in check["message"]
    assert world.put(world.pinned()).status_code == 422
    world.feed.problem = None
    world.assembly.sync.look()
    world.assembly.watch.look()
    checks = world.get("/readyz", scope=None).json()["checks"]
    assert all(item["status"] == "True" for item in checks)


def test_residuals_are_shown_and_do_not_refuse(world):
    world.publish(world.record("GHSA-x", severity=None), world.record("GHSA-y", severity=Severity.LOW))
    world.put(world.pinned())
    status = world.get("/v1/deployments/chat").json()["status"]
    assert {item["advisory"] for item in status["residuals"]} == {"GHSA-x", "GHSA-y"}
    assert status["violations"] == []
    assert world.condition("chat")["reason"] == "ReviewedWithResiduals"


def test_a_deployment_that_was_replaced_during_a_review_keeps_its_own_condition(world):
    world.put(world.pinned(version="0.32.0"))
    inspector = world.assembly.house.inspector
    store = world.assembly.store
    with store.read() as unit:
        old = unit.deployments.subjects()
    world.put(world.pinned(), etag="*")
    found = {old[0].review_key: ({"severity": "mandatory", "message": "old", "advisory": "x"},)}
    changes = inspector._store_conditions(world.assembly.house.facts.current(), old, found)
    assert changes == []
    assert world.condition("chat")["status"] == "True"
