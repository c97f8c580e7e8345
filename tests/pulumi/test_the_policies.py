"""`pulumi preview --policy-pack` on the real engine: planted faults stop the first preview, each by its own policy."""

import json

import pytest

from tests.pulumi.checkout import Checkout
from tests.pulumi.engine import Outcome
from tests.pulumi.planted_faults import FAULTS, LIMITS, faulty

pytestmark = [pytest.mark.pulumi, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def outcome(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A first preview of the stack with all of it."""
    limits = tmp_path_factory.mktemp("limits") / "limits.json"
    limits.write_text(json.dumps(LIMITS), encoding="utf-8")
    return faulty(checkout).preview(*checkout.judged, "--policy-pack-config", str(limits))


def mandatory(outcome: Outcome) -> list[tuple[str, str]]:
    """What is refused: each policy with its message."""
    return sorted((item.policy, item.message) for item in outcome.violations if item.level == "mandatory")


def test_each_planted_fault_is_refused_at_the_first_preview_by_its_policy_and_no_other(outcome: Outcome) -> None:
    assert [policy for policy, _ in mandatory(outcome.refused())] == sorted(FAULTS)


@pytest.mark.parametrize("policy", FAULTS)
def test_the_message_names_what_is_wrong_and_where(policy: str, outcome: Outcome) -> None:
    (message,) = [message for other, message in mandatory(outcome) if other == policy]
    assert FAULTS[policy].says in message


def test_what_is_computed_from_other_resources_is_never_a_pass(outcome: Outcome) -> None:
    pending = [item for item in outcome.violations if "not judged yet" in item.message]
    assert pending
    assert {item.level for item in pending} == {"advisory"}
