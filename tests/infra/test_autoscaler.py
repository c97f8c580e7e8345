"""Cluster Autoscaler: which groups it gets, what it knows of nodes that are not there, and that it may no more."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_aws import eks

from fleet import hardware
from fleet.cloud.identity import document_findings, statements_of
from fleet.cloud.labels import POOL_LABEL, gpu_resource
from fleet.cloud.node_groups import LUSTRE_TAINT_KEY, label_findings
from fleet.sharing import SharingWay, ways_of
from infra.autoscaler import NAME, Autoscaler, AutoscalerArgs, ScaledGroup, autoscaler_document
from infra.autoscaling import (
    ACCELERATOR_LABEL,
    RESOURCE_TAG,
    is_scaled,
    is_system_scaled,
    node_template,
    scaled_labels,
    stays_empty,
)
from tests.infra.built import built
from tests.infra.recording import record
from tests.infra.stacks import DEV, H100, H100_BLOCK, L4, L4_SHARED, LUSTRE, MIG, ZONES, pool, stack

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
DRA = pool(name="claims", instance_type="g6.xlarge", allocation="dra")
FIXED = pool(name="fixed", instance_type="g6.xlarge", min_nodes=2, max_nodes=2)
WIDE = H100.model_copy(update={"name": "wide", "zone": None, "zones": ZONES, "min_nodes": 2, "max_nodes": 5})
EVERYTHING = stack(
    "prod", pools=[L4, L4_SHARED, WIDE, H100_BLOCK, DRA, FIXED], weights=LUSTRE, autoscaler="cluster-autoscaler"
)
SCALED = {"l4", "l4-shared", "wide"}


def the_release(recording):
    (found,) = (item for item in recording.of("Release") if item.inputs["name"] == NAME)
    return found


def scaling_group(group):
    return group.outputs["resources"][0]["autoscalingGroups"][0]["name"]


def limits(recording):
    """Auto Scaling group -> the least and the most of its nodes, as the chart is told them."""
    groups = the_release(recording).inputs["values"]["autoscalingGroups"]
    return {item["name"]: (item["minSize"], item["maxSize"]) for item in groups}


def test_blocks_claims_and_pools_of_a_fixed_size_are_left_alone():
    assert {item.name for item in EVERYTHING.pools if is_scaled(item, EVERYTHING)} == SCALED
    without = EVERYTHING.model_copy(update={"autoscaler": "none"})
    assert not any(is_scaled(item, without) for item in without.pools)
    assert stays_empty(EVERYTHING) == ("h100-block", "claims")
    assert stays_empty(without) == ("l4", "h100-block", "claims")


def test_every_group_of_a_scaled_pool_is_named_with_its_limits_and_no_other():
    recording = built(EVERYTHING)
    found = limits(recording)
    for group in recording.of("NodeGroup"):
        is_known = any(f"-{name}-" in group.name for name in (*SCALED, "system"))
        assert (scaling_group(group) in found) == is_known, group.name
    wide = [found[scaling_group(group)] for group in recording.of("NodeGroup") if "-wide-" in group.name]
    assert [sum(part) for part in zip(*wide, strict=True)] == [2, 5]


def test_a_scaled_group_has_no_minimum_that_eks_could_refuse_and_keeps_its_number():
    recording = built(EVERYTHING)
    for group in recording.of("NodeGroup"):
        scaling, is_known = group.inputs["scalingConfig"], scaling_group(group) in limits(recording)
        assert group.options.ignore_changes == (("scalingConfig.desiredSize",) if is_known else ()), group.name
        if is_known:
            assert scaling["minSize"] == ("-system-" in group.name), group.name  # one node runs the autoscaler
            assert scaling["maxSize"] == limits(recording)[scaling_group(group)][1]
    (fixed,) = (item for item in recording.of("NodeGroup") if "-fixed-" in item.name)
    assert fixed.inputs["scalingConfig"] == {"minSize": 2, "desiredSize": 2, "maxSize": 2}


def test_a_minimum_that_is_raised_changes_the_autoscaler_and_no_node_group():
    before = built(MIG)
    raised = MIG.pools[1].model_copy(update={"min_nodes": 3})
    after = built(MIG.model_copy(update={"pools": (MIG.pools[0], raised)}))
    changed = [item for item in after.resources if item.inputs != before.by_urn(item.urn).inputs]
    by_kind = {item.type.rsplit(":", 1)[-1]: item.inputs for item in changed}
    assert set(by_kind) == {"Release", "NodeGroup"}
    assert by_kind["NodeGroup"]["scalingConfig"] == {"minSize": 0, "desiredSize": 3, "maxSize": 6}  # desired: ignored
    assert (3, 6) in limits(after).values()


def chart_of(kubernetes):
    """The chart alone, of one small group."""

    def program():
        group = eks.NodeGroup(
            "nodes",
            cluster_name="x",
            node_role_arn="arn:role",
            node_group_name="x",
            subnet_ids=["subnet-a"],
            scaling_config=eks.NodeGroupScalingConfigArgs(min_size=0, desired_size=0, max_size=1),
        )
        groups = [ScaledGroup(group, 0, 1)]
        Autoscaler("x", AutoscalerArgs("x", kubernetes, EVERYTHING.region, groups, EVERYTHING.versions))

    return the_release(record(program)).inputs["values"]


def test_the_chart_knows_the_region_the_image_and_what_new_nodes_begin_with():
    values = chart_of("1.36")
    assert values["awsRegion"] == EVERYTHING.region
    assert values["image"] == {"tag": "v1.36.0"}
    assert values["extraArgs"] == {"enforce-node-group-min-size": True, "startup-taint": LUSTRE_TAINT_KEY}
    assert "image" not in chart_of("1.39")  # the chart's own


def test_the_pod_has_the_role_before_it_starts():
    recording = built(EVERYTHING)
    identity = next(item for item in recording.of("PodIdentityAssociation") if item.inputs["serviceAccount"] == NAME)
    release = the_release(recording)
    assert identity.inputs["namespace"] == release.inputs["namespace"]
    assert release.inputs["values"]["rbac"]["serviceAccount"]["name"] == NAME
    assert identity.urn in release.depends_on
    (policy,) = (item for item in recording.of("RolePolicy") if "-scaling-" in item.name)
    assert policy.urn in identity.depends_on


def test_the_role_may_change_its_groups_and_no_others():
    recording = built(EVERYTHING)
    (policy,) = (item for item in recording.of("RolePolicy") if "-scaling-" in item.name)
    document = json.loads(policy.inputs["policy"])
    look, groups, scale = document["Statement"]
    assert list(document_findings("identity", statements_of(document))) == []
    assert all(":Describe" in action for action in look["Action"])
    assert {arn.rsplit("/", 1)[-1] for arn in scale["Resource"]} == set(limits(recording))
    own = {item.outputs["arn"] for item in recording.of("NodeGroup") if scaling_group(item) in limits(recording)}
    assert set(groups["Resource"]) == own
    key = f"aws:ResourceTag/k8s.io/cluster-autoscaler/enginehouse-{EVERYTHING.environment}"
    assert scale["Condition"] == {"StringEquals": {key: "owned"}}


@given(names=st.lists(st.from_regex(r"[a-z][a-z0-9-]{1,30}", fullmatch=True), min_size=1, max_size=5, unique=True))
def test_the_document_names_each_group_once_in_its_partition(names):
    groups = [(f"arn:aws-cn:eks:cn-north-1:111122223333:nodegroup/x/{name}/1", f"eks-{name}") for name in names]
    scale = json.loads(autoscaler_document("x", groups))["Statement"][2]["Resource"]
    assert len(scale) == len(names)
    assert all(arn.startswith("arn:aws-cn:autoscaling:cn-north-1:111122223333:autoScalingGroup:*:") for arn in scale)


@given(name=INSTANCES, efa=st.booleans())
def test_a_node_that_is_not_there_has_what_pods_ask_for_on_every_instance(name, efa):
    shape = pool(name="x", instance_type=name)
    shape = shape.model_copy(update={"efa": efa and shape.instance.supports_efa})
    for way in set(ways_of(shape.gpu)) - {SharingWay.DYNAMIC_SLICES}:
        profile = shape.gpu.mig_profiles[-1] if way is SharingWay.MIG else None
        cut = 4 if way in (SharingWay.MPS, SharingWay.TIME_SLICING) else None
        found = shape.model_copy(update={"sharing": way, "mig_profile": profile and profile.name, "time_slices": cut})
        tags = {key.removeprefix(RESOURCE_TAG): amount for key, amount in node_template(found).items()}
        parts = cut or (profile.per_gpu if profile else 1)
        assert tags[gpu_resource(way, found.mig_profile)] == str(shape.instance.gpus * parts)
        assert tags["nvidia.com/gpu"] == "0" or way is SharingWay.EXCLUSIVE
        assert tags.get("vpc.amazonaws.com/efa") == (str(shape.instance.max_efa_interfaces) if found.efa else None)
        assert ("hugepages-2Mi" in tags) == found.efa
        # A label that stands for nvidia.com/gpu keeps a node unready as long as nobody announces that.
        assert (ACCELERATOR_LABEL in scaled_labels(found)) == (way is SharingWay.EXCLUSIVE)
        assert not list(label_findings(scaled_labels(found)))


@pytest.mark.parametrize("config", [EVERYTHING, MIG])
def test_groups_carry_their_template_as_tags(config):
    recording = built(config)
    for found in config.pools:
        for group in (item for item in recording.of("NodeGroup") if item.inputs["labels"][POOL_LABEL] == found.name):
            is_known = scaling_group(group) in limits(recording)
            assert group.inputs.get("tags") == (dict(node_template(found)) if is_known else None)
            assert (group.inputs["labels"] == scaled_labels(found)) or not is_known


def test_it_is_not_installed_where_nobody_asks_for_it_or_nothing_has_room():
    assert NAME not in {item.inputs["name"] for item in built(DEV).of("Release")}
    system = DEV.system_nodes.model_copy(update={"max_nodes": DEV.system_nodes.min_nodes})
    full = DEV.model_copy(update={"autoscaler": "cluster-autoscaler", "pools": (FIXED,), "system_nodes": system})
    assert not is_system_scaled(full)
    assert not is_scaled(FIXED, full)


def test_a_preview_registers_the_same():
    preview, up = (built(MIG, preview=is_preview).resources for is_preview in (True, False))
    assert [item.urn for item in preview] == [item.urn for item in up]
