"""A mistake is found in an object of any kind, however it is written; what only looks like one is none."""

import pytest

from policies.adapter import Check
from policies.kubernetes_objects import EVERY_TYPE
from policies.pack import checks_by_rule
from tests.policies.edited import program
from tests.policies.faults_of_kinds import ROWS


@pytest.mark.parametrize(("policy", "change"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_mistake_is_found_in_every_kind_and_by_no_other_policy(pack_of, policy, change):
    changed = program()
    change(changed)
    server = pack_of("prod")
    said = [*server.review_each(changed.changed, among=changed.resources), *server.review_stack(changed.resources)]
    assert [item.message for item in said if item.is_pending] == []
    assert {item.policy for item in said} == ({policy} if policy else set()), [item.message for item in said]


def test_what_looks_at_every_kind_looks_at_each_object_by_itself():
    by_rule = checks_by_rule().values()
    everywhere = [checks for checks in by_rule if any(item.types is EVERY_TYPE for item in of(checks))]
    assert everywhere
    assert all(len(of(checks)) == len(checks) for checks in everywhere)


def of(checks):
    """The checks on single resources."""
    return [item for item in checks if isinstance(item, Check) and not item.relates]
