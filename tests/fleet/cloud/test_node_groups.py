"""Managed node groups: laws first, then the public bug reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.cloud import node_access, node_groups, node_images, node_sharing, purchase
from fleet.cloud.interfaces import efa_layout
from fleet.cloud.node_access import GuardedInterface
from fleet.cloud.node_groups import Scaling, Taint, TypePlaces

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
NUMBERS = st.integers(min_value=-2, max_value=6)
OWN = (node_groups, node_access, purchase, node_images, node_sharing)


def ids(findings):
    return [finding.rule.id for finding in findings]


def test_rules_of_nodes_have_ids_of_their_own_and_say_what_is_right():
    rules = [rule for module in OWN for rule in module.RULES]
    assert len({rule.id for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.id == rule.id.lower().replace("_", "-")
        assert rule.remedy
        assert rule.source


@given(low=NUMBERS, wanted=NUMBERS, high=NUMBERS)
def test_numbers_of_nodes_are_fine_exactly_when_they_are_in_order(low, wanted, high):
    in_order = 0 <= low <= wanted <= high and high >= 1
    assert (ids(node_groups.scaling_findings(Scaling(low, wanted, high))) == []) == in_order


@given(template=st.sampled_from([None, "p5.48xlarge"]), group=st.lists(INSTANCES, max_size=2))
def test_instance_types_stand_in_exactly_one_place(template, group):
    fine = (template is None) != (not group)
    assert (ids(node_groups.type_findings(TypePlaces(template, tuple(group)))) == []) == fine


@given(effect=st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]))
def test_a_taint_effect_in_the_spelling_of_kubernetes_gets_the_spelling_of_eks(effect):
    (finding,) = node_groups.taint_findings([Taint("nvidia.com/gpu", effect)])
    assert finding.rule is node_groups.TAINT_EFFECT
    assert finding.remedy.removeprefix("write ") in node_groups.TAINT_EFFECTS


def test_the_effects_of_eks_are_fine_and_nonsense_names_all_of_them():
    assert not list(node_groups.taint_findings([Taint("a", effect) for effect in node_groups.TAINT_EFFECTS]))
    (finding,) = node_groups.taint_findings([Taint("a", "Never")])
    assert "NO_SCHEDULE, NO_EXECUTE" in finding.sentence


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enginehouse.dev/pool", "h100"),
        ("vpc.amazonaws.com/efa.present", "true"),
        ("pool", ""),
        ("node.kubernetes.io/x", "1"),
        ("a" * 63, "b" * 63),
    ],
)
def test_legal_labels_pass(key, value):
    assert not list(node_groups.label_findings({key: value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enginehouse.dev/pool", "two words"),
        ("enginehouse.dev/pool", "-h100"),
        ("enginehouse.dev/pool", "b" * 64),
        ("Enginehouse.dev/pool", "h100"),
        ("/pool", "h100"),
        ("a/b/c", "h100"),
        ("kubernetes.io/pool", "h100"),
        ("deep.k8s.io/pool", "h100"),
        ("", "h100"),
    ],
)
def test_labels_that_kubernetes_refuses_are_found(key, value):
    assert ids(node_groups.label_findings({key: value})) == ["node-label"]


@given(name=st.text(alphabet="abcdefghijklmnop-_.", min_size=1, max_size=20))
def test_a_role_is_an_arn_and_never_a_name(name):
    assert ids(node_groups.role_findings(name)) == ["node-role-arn"]
    assert not list(node_groups.role_findings(f"arn:aws:iam::111122223333:role/{name}"))
    assert not list(node_groups.role_findings(f"arn:aws-cn:iam::111122223333:role/path/{name}"))
    assert ids(node_groups.role_findings(f"arn:aws:iam::111122223333:instance-profile/{name}")) == ["node-role-arn"]


@given(name=INSTANCES, strategy=st.sampled_from([None, "DEFAULT", "MINIMAL"]), spare=st.booleans())
def test_only_pools_with_spare_gpus_add_nodes_before_they_take_some_away(name, strategy, spare):
    found = ids(node_groups.update_findings(hardware.instance(name), strategy, has_spare=spare))
    assert found == ([] if spare or strategy == "MINIMAL" else ["update-strategy"])


def test_what_stands_beside_a_launch_template_is_found():
    assert ids(node_groups.template_disk_findings(100)) == ["disk-size-with-template"]
    assert ids(node_groups.template_access_findings(has_remote_access=True)) == ["remote-access-with-template"]
    assert not list(node_groups.template_disk_findings(None))
    assert not list(node_groups.template_access_findings(has_remote_access=False))
    assert ids(node_groups.template_field_findings({"iam_instance_profile", "user_data"})) == [
        "template-forbidden-field"
    ]


def test_a_version_beside_an_own_image_is_found_with_what_was_said():
    settings = {"ami_type": None, "version": "1.34", "release_version": None}
    (finding,) = node_groups.image_findings(has_image=True, settings=settings)
    assert "version 1.34" in finding.message
    assert not list(node_groups.image_findings(has_image=False, settings=settings))
    assert not list(node_groups.image_findings(has_image=True, settings=dict.fromkeys(settings)))


def test_two_autoscalers_are_one_too_many():
    for one, other in ((True, False), (False, True), (False, False)):
        assert not list(node_groups.autoscaler_findings(has_karpenter=one, has_cluster_autoscaler=other))
    found = node_groups.autoscaler_findings(has_karpenter=True, has_cluster_autoscaler=True)
    assert ids(found) == ["two-autoscalers"]


def test_gpu_nodes_keep_others_away_and_are_repaired():
    assert ids(node_groups.gpu_taint_findings([Taint("other", "NO_SCHEDULE")])) == ["gpu-taint"]
    assert not list(node_groups.gpu_taint_findings([Taint("nvidia.com/gpu", "NO_SCHEDULE", "true")]))
    assert ids(node_groups.repair_findings(is_enabled=False)) == ["node-repair"]
    assert not list(node_groups.repair_findings(is_enabled=True))


def guarded(shape, groups):
    return [GuardedInterface(item, frozenset(groups)) for item in efa_layout(shape)]


@given(name=INSTANCES)
def test_the_layout_of_every_instance_is_fine_with_both_groups_on_every_interface(name):
    interfaces = guarded(hardware.instance(name), {"sg-cluster", "sg-efa"})
    assert not list(node_access.cluster_group_findings("sg-cluster", template_groups=(), interfaces=interfaces))
    assert not list(node_access.efa_group_findings({"sg-efa"}, interfaces))


@given(name=INSTANCES, at=st.integers(min_value=0))
def test_one_interface_without_the_efa_group_is_enough(name, at):
    interfaces = guarded(hardware.instance(name), {"sg-cluster", "sg-efa"})
    at %= len(interfaces)
    interfaces[at] = GuardedInterface(interfaces[at].interface, frozenset({"sg-cluster"}))
    found = ids(node_access.efa_group_findings({"sg-efa"}, interfaces))
    assert found == (["efa-security-group-missing"] if interfaces[at].has_efa else [])


@given(name=INSTANCES)
def test_own_groups_without_the_clusters_are_found_on_interfaces_that_carry_ip_and_on_templates(name):
    interfaces = guarded(hardware.instance(name), {"sg-efa"})
    found = ids(node_access.cluster_group_findings("sg-cluster", template_groups=(), interfaces=interfaces))
    assert found == ["cluster-security-group-missing"]
    found = ids(node_access.cluster_group_findings("sg-cluster", template_groups={"sg-own"}, interfaces=()))
    assert found == ["cluster-security-group-missing"]


@given(name=INSTANCES)
def test_without_any_group_eks_attaches_the_clusters_itself(name):
    interfaces = guarded(hardware.instance(name), ())
    assert not list(node_access.cluster_group_findings("sg-cluster", template_groups=(), interfaces=interfaces))


def test_groups_in_both_places_are_found():
    for template, interfaces in ((0, 33), (1, 0), (0, 0)):
        assert not list(node_access.group_place_findings(template_groups=template, interfaces=interfaces))
    found = node_access.group_place_findings(template_groups=1, interfaces=33)
    assert ids(found) == ["security-groups-twice"]


@given(name=INSTANCES)
def test_groups_of_a_template_beside_interfaces_are_the_business_of_one_rule(name):
    interfaces = guarded(hardware.instance(name), {"sg-cluster"})
    assert not list(node_access.cluster_group_findings("sg-cluster", template_groups=["sg"], interfaces=interfaces))


@pytest.mark.parametrize(("tokens", "hops", "expected"), [
    ("required", 1, []),
    ("optional", 1, ["metadata-tokens"]),
    (None, 1, ["metadata-tokens"]),
    ("required", 2, ["metadata-hop-limit"]),
    ("required", None, ["metadata-hop-limit"]),
])  # fmt: skip
def test_the_metadata_service_is_closed_to_containers(tokens, hops, expected):
    found = [*node_access.token_findings(tokens), *node_access.hop_findings(hops)]
    assert ids(found) == expected
