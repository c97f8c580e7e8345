"""Pools of GPU nodes: how numbers and zones are shared out, and what each variant registers."""

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.cloud import node_groups, node_images, purchase
from fleet.cloud.labels import POOL_LABEL
from fleet.cloud.node_groups import Scaling, Taint
from fleet.sharing import ways_of
from infra.gpu_pool import AMI_TYPES, GpuPool, GpuPoolArgs
from infra.gpu_sharing import Announcer, announcer, node_labels, plugin_configs
from infra.node_role import POLICIES, NodeRole, NodeRoleArgs
from infra.stack_config import NodeImage
from infra.zone_groups import zone_groups
from tests.infra.recording import ProgramFault, record
from tests.infra.sdk_shapes import UNKNOWN
from tests.infra.stacks import H100, H100_BLOCK, H100_MIG, IMAGE, L4, L4_SHARED, RESERVATION, ZONES, pool

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
COUNTS = st.integers(min_value=0, max_value=9)
SUBNETS = {zone: f"subnet-{zone}" for zone in ZONES}


RECORDED = {}


def recorded(found, *, has_lustre=False, preview=False, zones=ZONES):
    """What a pool registers; the same pool is registered once."""
    key = found.model_dump_json(), has_lustre, preview, zones
    if key not in RECORDED:
        RECORDED[key] = newly_recorded(found, has_lustre, preview, zones)
    return RECORDED[key]


def newly_recorded(found, has_lustre, preview, zones):
    def program():
        role = NodeRole("prod-nodes", NodeRoleArgs())
        args = GpuPoolArgs(
            pool=found,
            cluster_name="prod",
            kubernetes="1.36",
            vpc_id="vpc-1",
            subnet_ids={zone: SUBNETS[zone] for zone in zones},
            cluster_security_group_id="sg-cluster",
            node_role_arn=role.arn,
            has_lustre=has_lustre,
            tags={"owner": "platform"},
            wait_for=role.attachments,
        )
        GpuPool(f"prod-{found.name}", args)

    return record(program, preview=preview)


def groups(recording):
    """By name: resources are registered side by side, in no order."""
    return [item.inputs for item in sorted(recording.of("NodeGroup"), key=lambda item: item.name)]


@given(low=COUNTS, wanted=COUNTS, high=st.integers(min_value=1, max_value=9), efa=st.booleans())
def test_the_numbers_of_a_pool_are_shared_out_whole_and_in_order(low, wanted, high, efa):
    low, wanted = min(low, high), min(wanted, high)
    found = pool(name="x", instance_type="p5.48xlarge", efa=efa, min_nodes=low, desired_nodes=wanted, max_nodes=high)
    parts = zone_groups(found, ZONES)
    for part in parts:
        assert not list(node_groups.scaling_findings(part.scaling))
        assert not list(purchase.efa_zone_findings(part.zones, has_efa=efa))
    total = Scaling(*(sum(getattr(part.scaling, key) for part in parts) for key in ("min", "desired", "max")))
    assert total == Scaling(low, max(low, wanted), high)
    assert len({part.suffix for part in parts}) == len(parts)


@given(name=INSTANCES)
def test_labels_of_every_instance_in_every_way_of_sharing_are_legal(name):
    shape = pool(name="x", instance_type=name)
    for way in ways_of(shape.gpu):
        profile = shape.gpu.mig_profiles[-1].name if way == "mig" else None
        shares = 4 if way in ("mps", "time-slicing") else None
        found = shape.model_copy(update={"sharing": way, "mig_profile": profile, "time_slices": shares, "efa": True})
        assert not list(node_groups.label_findings(node_labels(found)))


def test_own_labels_stay_and_never_win_over_the_fleets():
    found = pool(name="x", instance_type="g6.xlarge", labels={"team": "a", POOL_LABEL: "other"})
    assert node_labels(found)["team"] == "a"
    assert node_labels(found)[POOL_LABEL] == "x"


def test_a_plain_pool_is_one_group_over_all_zones():
    (inputs,) = groups(recorded(L4))
    assert inputs["capacityType"] == "SPOT"
    assert inputs["amiType"] == "AL2023_x86_64_NVIDIA"
    assert inputs["releaseVersion"] == IMAGE["release"]
    assert inputs["version"] == "1.36"
    assert inputs["subnetIds"] == list(SUBNETS.values())
    assert inputs["scalingConfig"] == {"minSize": 0, "desiredSize": 0, "maxSize": 6}
    assert inputs["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
    assert inputs["nodeRepairConfig"] == {"enabled": True}
    assert not {"instanceTypes", "diskSize", "remoteAccess"} & set(inputs)


def test_the_groups_number_of_nodes_is_the_files_and_the_role_comes_first():
    recording = recorded(L4)
    group = recording.one("NodeGroup")
    assert group.options.ignore_changes == ()
    assert {item.urn for item in recording.of("RolePolicyAttachment")} <= group.depends_on
    assert not list(node_groups.role_findings(group.inputs["nodeRoleArn"]))


@given(before=COUNTS, after=COUNTS, wanted=COUNTS, efa=st.booleans())
def test_a_minimum_that_is_raised_is_never_above_what_the_update_wants(before, after, wanted, efa):
    # "Minimum capacity 2 can't be greater than desired size 1": EKS of an update that raises the one alone.
    shape = pool(name="x", instance_type="p5.48xlarge", efa=efa, max_nodes=9, desired_nodes=wanted, min_nodes=before)
    for part in zone_groups(shape.model_copy(update={"min_nodes": after}), ZONES):
        assert part.scaling.min <= part.scaling.desired


def test_the_group_follows_its_template_by_version():
    recording = recorded(L4)
    group, template = recording.one("NodeGroup"), recording.one("LaunchTemplate")
    assert group.inputs["launchTemplate"]["id"] == template.id
    assert group.inputs["launchTemplate"]["version"] == str(template.outputs["latestVersion"])
    assert template.urn in group.property_dependencies["launchTemplate"]


def test_everything_of_a_pool_hangs_under_it():
    recording = recorded(H100)
    parent = recording.one("GpuPool")
    assert parent.name == "prod-h100"
    assert parent.urn in recording.finished
    own = [item for item in recording.resources if item.parent == parent.urn]
    assert sorted(item.type.rsplit(":", 1)[-1] for item in own) == [
        "LaunchTemplate",
        "NodeGroup",
        "PlacementGroup",
        "SecurityGroup",
        "SecurityGroupEgressRule",
        "SecurityGroupIngressRule",
    ]


def test_efa_traffic_goes_to_its_own_group_in_and_out():
    recording = recorded(H100)
    group = recording.one("SecurityGroup")
    for kind in ("SecurityGroupIngressRule", "SecurityGroupEgressRule"):
        rule = recording.one(kind)
        assert rule.inputs["securityGroupId"] == rule.inputs["referencedSecurityGroupId"] == group.id
        assert rule.inputs["ipProtocol"] == "-1"
        assert rule.urn in recording.one("NodeGroup").depends_on
    interfaces = recording.one("LaunchTemplate").inputs["networkInterfaces"]
    assert all(item["securityGroups"] == ["sg-cluster", group.id] for item in interfaces)


def test_a_pool_with_efa_in_several_zones_has_a_group_and_a_placement_for_each():
    found = pool(name="wide", instance_type="p5.48xlarge", efa=True, placement_group=True, max_nodes=5)
    recording = recorded(found)
    assert {item.name for item in recording.of("NodeGroup")} == {f"prod-wide-{zone}-nodes" for zone in ZONES}
    assert [item["subnetIds"] for item in groups(recording)] == [[subnet] for subnet in SUBNETS.values()]
    assert [item["scalingConfig"]["maxSize"] for item in groups(recording)] == [2, 2, 1]
    assert len(recording.of("PlacementGroup")) == 3
    assert len(recording.of("SecurityGroup")) == 1


@pytest.mark.parametrize("found", [
    H100_BLOCK.model_copy(update={"placement_group": True}),
    pool(name="x", instance_type="g6.xlarge", placement_group=True),
    pool(name="x", instance_type="p5.48xlarge", efa=True, zone=ZONES[0]),
])  # fmt: skip
def test_no_placement_group_beside_a_reservation_without_efa_or_unasked(found):
    assert not recorded(found).of("PlacementGroup")


def test_a_capacity_block_is_bought_and_placed_as_its_reservation_says():
    recording = recorded(H100_BLOCK)
    (inputs,), template = groups(recording), recording.one("LaunchTemplate").inputs
    target = template["capacityReservationSpecification"]["capacityReservationTarget"]["capacityReservationId"]
    buying = purchase.Buying(inputs["capacityType"], template["instanceMarketOptions"]["marketType"], target)
    assert buying == purchase.Buying("CAPACITY_BLOCK", "capacity-block", RESERVATION)
    assert not [*purchase.target_findings(buying), *purchase.market_findings(buying)]
    assert inputs["subnetIds"] == [SUBNETS[ZONES[0]]]


@pytest.mark.parametrize("has_lustre", [True, False])
def test_nodes_keep_other_pods_away_and_wait_for_lustre_where_there_is_one(has_lustre):
    (inputs,) = groups(recorded(L4, has_lustre=has_lustre))
    taints = [Taint(item["key"], item["effect"], item.get("value", "")) for item in inputs["taints"]]
    assert not [*node_groups.taint_findings(taints), *node_groups.gpu_taint_findings(taints)]
    waits = Taint("fsx.csi.aws.com/agent-not-ready", "NO_EXECUTE")
    assert (waits in taints) == has_lustre


@pytest.mark.parametrize("family", sorted(AMI_TYPES))
def test_gpu_nodes_have_an_image_with_the_driver_and_a_pinned_release(family):
    image = NodeImage(family=family, release="1.36.0-20300101")  # invented
    (inputs,) = groups(recorded(pool(name="x", instance_type="g6f.large", image=image)))
    assert not list(node_images.ami_type_findings(inputs["amiType"]))
    assert not list(node_images.driver_findings(inputs["amiType"], gpus=hardware.instance("g6f.large").gpus))
    assert not list(node_images.release_findings(inputs["releaseVersion"], has_image=False))


def test_another_release_changes_the_group_and_nothing_else():
    newer = L4.model_copy(update={"image": NodeImage(release="1.36.0-20300202")})  # invented
    before, after = recorded(L4), recorded(newer)
    assert {item.urn for item in before.resources} == {item.urn for item in after.resources}
    changed = [item.name for item in after.resources if item != before.by_urn(item.urn)]
    assert changed == ["prod-l4-nodes"]
    one, other = before.one("NodeGroup").inputs, after.one("NodeGroup").inputs
    assert {key for key in one if one[key] != other[key]} == {"releaseVersion"}


def test_a_preview_knows_everything_but_ids():
    recording = recorded(H100, preview=True)
    (inputs,) = groups(recording)
    assert inputs["launchTemplate"]["id"] == UNKNOWN
    assert inputs["capacityType"] == "ON_DEMAND"
    assert len(recording.one("LaunchTemplate").inputs["networkInterfaces"]) == 33


@pytest.mark.parametrize(("found", "message"), [
    (pool(name="x", instance_type="g6.xlarge", image={}), "image.release is not filled in"),
    (pool(name="x", instance_type="g6.xlarge", max_nodes=None), "max_nodes is None"),
    (pool(name="x", instance_type="g6.xlarge", max_nodes=0), "max_nodes is 0"),
    (pool(name="x", instance_type="g6.xlarge", zones=["us-east-1a"]), "no subnet in us-east-1a"),
    (pool(name="x", instance_type="p5.48xlarge", reservation_id=RESERVATION), "has one zone and the pool"),
])  # fmt: skip
def test_a_pool_that_can_not_be_built_says_why(found, message):
    with pytest.raises(ValueError, match=message):
        recorded(found)


def test_the_role_has_two_policies_and_is_for_instances():
    recording = record(lambda: NodeRole("prod-nodes", NodeRoleArgs()))
    assert "ec2.amazonaws.com" in recording.one("Role").inputs["assumeRolePolicy"]
    arns = {item.inputs["policyArn"] for item in recording.of("RolePolicyAttachment")}
    assert arns == {f"arn:aws:iam::aws:policy/{name}" for name in POLICIES}


def test_two_pools_of_one_name_are_a_fault():
    def twice():
        for _ in range(2):
            NodeRole("same", NodeRoleArgs(), pulumi.ResourceOptions())

    with pytest.raises(ProgramFault, match="registered twice"):
        record(twice)


@pytest.mark.parametrize(("found", "who"), [
    (L4, Announcer.CHART),
    (L4_SHARED, Announcer.CHART),
    (H100_MIG, Announcer.OPERATOR),
    (H100.model_copy(update={"allocation": "dra"}), Announcer.DRA),
    (pool(name="b", instance_type="g6.xlarge", image={**IMAGE, "family": "bottlerocket"}), Announcer.IMAGE),
])  # fmt: skip
def test_exactly_one_tells_the_cluster_of_a_nodes_gpus(found, who):
    labels = node_labels(found)
    assert announcer(found) is who
    assert ("nvidia.com/device-plugin.config" in labels) == (who is Announcer.CHART)
    assert ("nvidia.com/gpu.deploy.operands" in labels) == (who is not Announcer.OPERATOR)


def test_shared_pools_choose_their_configuration_by_label():
    assert node_labels(L4_SHARED)["nvidia.com/device-plugin.config"] == "time-slicing-4"
    configs = plugin_configs([L4, L4_SHARED, H100_MIG])
    assert list(configs) == ["exclusive", "time-slicing-4"]
    assert "replicas: 4" in configs["time-slicing-4"]
    assert "renameByDefault: true" in configs["time-slicing-4"]


def test_mps_nodes_ask_for_the_control_daemon_and_mig_nodes_for_their_cut():
    mps = L4_SHARED.model_copy(update={"sharing": ways_of(L4.gpu)[1]})
    assert mps.sharing == "mps"
    assert node_labels(mps)["nvidia.com/mps.capable"] == "true"
    assert node_labels(H100_MIG)["nvidia.com/mig.config"] == "all-1g.10gb"
