"""Each planted fault gives exactly the named policy and no other; the clean program gives none."""

import pytest

from tests.infra.stacks import VARIANTS
from tests.policies import faults_of_ground, faults_of_nodes, faults_of_workloads
from tests.policies.edited import Program, program, recorded

FAULTS = (*faults_of_nodes.FAULTS, *faults_of_ground.FAULTS, *faults_of_workloads.FAULTS)


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


@pytest.mark.parametrize("change", [*faults_of_ground.CLEAN, *faults_of_workloads.CLEAN])
def test_what_looks_like_a_fault_and_is_none_gives_none(pack_of, change):
    changed = program()
    change(changed)
    assert found(pack_of("prod"), changed) == []
