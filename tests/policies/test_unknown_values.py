"""A policy that misses its deciding value says so, names the place, and never passes in silence."""

import pytest

from tests.infra.stacks import VARIANTS
from tests.policies.edited import program, recorded
from tests.policies.faults_of_places import UNKNOWN_ZONE_OF_BLOCK
from tests.policies.unknown_places import PLACES, SEEN_AT_UPDATE, of_pod


@pytest.fixture(scope="module")
def limited(pack_of):
    """The pack of prod with a limit on everything that can be limited."""
    server = pack_of("prod")
    wide = {
        "region-allowed": {"regions": ["eu-central-1"]},
        "instance-type-allowed": {"instance_types": ["p5.*", "g6.*", "m7i.*"]},
        "image-registry-allowed": {"image_registries": ["invented.invalid"]},
        "cost-limit": {"max_usd_per_hour": 100_000},
    }
    server.configure(wide)
    yield server
    server.configure()


def test_every_policy_has_its_deciding_value(pack_of):
    assert {policy.name for policy in pack_of("prod").info().policies} == set(PLACES)


@pytest.mark.parametrize("policy", PLACES)
def test_a_policy_that_misses_its_value_says_so_and_does_not_pass(limited, policy):
    changed = program()
    PLACES[policy](changed)
    said = [*limited.review_each(changed.changed, among=changed.resources), *limited.review_stack(changed.resources)]
    own = [item for item in said if item.policy == policy]
    assert own, [item.message for item in said]
    assert all(item.is_pending and item.level == "advisory" for item in own)
    assert all(": not judged yet: ." in item.message for item in own)
    assert {item.policy for item in said if not item.is_pending} == set()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_clean_preview_has_no_violation_and_leaves_only_ids_for_the_update(pack_of, variant):
    said = pack_of(variant).review(recorded(variant, preview=True))
    assert {item.policy for item in said if not item.is_pending} == set(), [item.message for item in said]
    assert {item.policy for item in said} <= SEEN_AT_UPDATE


def test_a_block_whose_zone_only_the_update_knows_is_left_to_it(pack_of):
    changed = program()
    UNKNOWN_ZONE_OF_BLOCK(changed)
    said = [item for item in pack_of("prod").review_stack(changed.resources) if item.policy == "reservation-zone"]
    assert [item.is_pending for item in said] == [True]


@pytest.mark.parametrize(
    ("path", "is_pending"), [("image", True), ("env", False), ("args.0", False), ("resources", False)]
)
def test_an_image_that_is_not_known_may_be_an_autoscaler_and_another_value_is_none(pack_of, path, is_pending):
    changed = program()
    of_pod(f"spec.template.spec.containers.0.{path}")(changed)
    said = pack_of("prod").review_stack(changed.resources)
    assert any(item.policy == "two-autoscalers" and item.is_pending for item in said) is is_pending


def test_what_could_be_judged_is_reported_beside_what_could_not(pack_of):
    changed = program()
    PLACES["volume-unencrypted"](changed)
    changed.put("LaunchTemplate system-template", "blockDeviceMappings.0.ebs.encrypted", "false")
    said = pack_of("prod").review_each(changed.changed, among=changed.resources)
    assert [(item.policy, item.is_pending) for item in said] == [
        ("volume-unencrypted", True),
        ("volume-unencrypted", False),
    ]
