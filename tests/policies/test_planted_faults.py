"""Each planted fault gives exactly the named policy and no other; the clean program gives none."""

import pytest

from tests.infra.stacks import VARIANTS
from tests.policies import (
    faults_of_access,
    faults_of_ground,
    faults_of_links,
    faults_of_nodes,
    faults_of_places,
    faults_of_storage,
    faults_of_workloads,
)
from tests.policies.edited import Program, program, recorded
from tests.policies.unknown_places import SEEN_AT_UPDATE

NEEDS_IDS = {"security-groups-twice", "cluster-security-group-missing", "efa-security-group-missing"}
"""Their faults are written with ids, which a preview does not have; test_unknown_values.py says what it does then."""
FAULTS = (
    *faults_of_nodes.FAULTS,
    *faults_of_links.FAULTS,
    *faults_of_storage.FAULTS,
    *faults_of_ground.FAULTS,
    *faults_of_access.FAULTS,
    *faults_of_workloads.FAULTS,
    *faults_of_places.FAULTS,
)


def found(server, changed: Program):
    """What the pack says about what was changed, and about the whole."""
    said = [*server.review_each(changed.changed, among=changed.resources), *server.review_stack(changed.resources)]
    return [item for item in said if not item.is_pending]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_clean_program_of_a_variant_gives_no_violation_and_leaves_nothing_unjudged(pack_of, variant):
    assert pack_of(variant).review(recorded(variant)) == []


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_gives_its_policy_and_no_other(pack_of, fault):
    changed = program(fault.variant)
    fault.change(changed)
    said = found(pack_of(fault.variant), changed)
    assert {item.policy for item in said} == {fault.policy}, "\n".join(item.message for item in said)
    assert all(item.level in ("mandatory", "advisory") for item in said)


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.policy not in NEEDS_IDS and not fault.name.endswith("by id")], ids=str
)
def test_a_preview_finds_a_planted_fault_or_leaves_it_to_the_update(pack_of, fault):
    changed = program(fault.variant, preview=True)
    fault.change(changed)
    server = pack_of(fault.variant)
    said = [*server.review_each(changed.changed, among=changed.resources), *server.review_stack(changed.resources)]
    assert fault.policy in {item.policy for item in said}
    assert {item.policy for item in said if not item.is_pending} <= {fault.policy}
    if fault.policy not in SEEN_AT_UPDATE:
        assert any(item.policy == fault.policy and not item.is_pending for item in said)


def test_relations_hold_by_ids_that_somebody_wrote_down(pack_of):
    changed = program()
    template = "LaunchTemplate h100-block-eu-central-1a-template"
    changed.put(template, "networkInterfaces.5.networkCardIndex", 40)
    group = "NodeGroup h100-block-eu-central-1a-nodes"
    changed.put(group, "launchTemplate.id", changed.id(template), of={"launchTemplate": []})
    assert {item.policy for item in pack_of("prod").review_stack(changed.resources)} == {"interface-index"}


def test_a_list_with_a_member_that_comes_from_nowhere_is_not_judged(pack_of):
    changed = program("staging")
    faults_of_links.UNKNOWN_SUBNET(changed)
    said = pack_of("staging").review_stack(changed.resources)
    assert ("efa-zones", True) in {(item.policy, item.is_pending) for item in said}


@pytest.mark.parametrize(
    "change",
    [
        *faults_of_links.CLEAN,
        *faults_of_storage.CLEAN,
        *faults_of_ground.CLEAN,
        *faults_of_access.CLEAN,
        *faults_of_workloads.CLEAN,
        *faults_of_places.CLEAN,
    ],
)
def test_what_looks_like_a_fault_and_is_none_gives_none(pack_of, change):
    changed = program()
    change(changed)
    assert found(pack_of("prod"), changed) == []


@pytest.mark.parametrize("change", faults_of_places.CLEAN_STAGING)
def test_what_looks_like_a_fault_of_staging_and_is_none_gives_none(pack_of, change):
    changed = program("staging")
    change(changed)
    assert found(pack_of("staging"), changed) == []
