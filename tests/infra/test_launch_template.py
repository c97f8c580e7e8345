"""Launch templates of every instance, judged by the rules that the pack asks."""

import pulumi
import pytest

from fleet import hardware
from fleet.cloud.interfaces import Interface, interface_findings
from fleet.cloud.node_access import GuardedInterface, cluster_group_findings, efa_group_findings
from infra.launch_template import TAGGED, TemplateArgs, launch_template
from infra.stack_config import NodeImage, Preload
from infra.user_data import PULL_MIB_PER_SECOND
from tests.infra.recording import record
from tests.infra.stacks import H100_BLOCK, RESERVATION, pool

TAGS = {"owner": "platform"}


def inputs_of(found, *, placement=None, extra=()):
    """The template of a pool as the cloud gets it."""
    args = TemplateArgs(
        pool=found,
        cluster_security_group_id="sg-cluster",
        efa_security_group_id="sg-efa" if found.efa else None,
        placement_group=placement,
        tags=TAGS,
        extra_security_group_ids=extra,
    )
    recording = record(lambda: launch_template("pool-template", args, pulumi.ResourceOptions()))
    return recording.one("LaunchTemplate").inputs


def interfaces(inputs):
    return [
        GuardedInterface(
            Interface(
                item["networkCardIndex"],
                item["deviceIndex"],
                item["interfaceType"],
                "associatePublicIpAddress" in item,
            ),
            frozenset(item["securityGroups"]),
        )
        for item in inputs.get("networkInterfaces", ())
    ]


@pytest.fixture(scope="module")
def of_every_instance():
    """Instance type -> the template of a pool of it with EFA, all of one program."""

    def program():
        for name in hardware.instance_types():
            args = TemplateArgs(pool(name="x", instance_type=name, efa=True), "sg-cluster", "sg-efa", None, TAGS)
            launch_template(name, args, pulumi.ResourceOptions())

    return {item.name: item.inputs for item in record(program).of("LaunchTemplate")}


def test_the_interfaces_of_every_instance_break_no_rule(of_every_instance):
    assert of_every_instance.keys() == set(hardware.instance_types())
    for name, inputs in of_every_instance.items():
        found = interfaces(inputs)
        assert not list(interface_findings(hardware.instance(name), [x.interface for x in found], wants_efa=True))
        assert not list(cluster_group_findings("sg-cluster", template_groups=(), interfaces=found))
        assert not list(efa_group_findings({"sg-efa"}, found))
        assert "vpcSecurityGroupIds" not in inputs
        assert inputs["instanceType"] == name


def test_p5_has_33_interfaces_and_b300_17():
    assert len(interfaces(inputs_of(pool(name="x", instance_type="p5.48xlarge", efa=True)))) == 33
    found = interfaces(inputs_of(pool(name="x", instance_type="p6-b300.48xlarge", efa=True)))
    assert [item.interface.type for item in found] == ["interface"] + ["efa-only"] * 16
    assert {item.interface.card for item in found if item.has_efa} == set(range(1, 17))


def test_without_efa_there_are_neither_interfaces_nor_groups_unless_some_are_asked_for():
    inputs = inputs_of(pool(name="x", instance_type="p5.48xlarge"))
    assert not {"networkInterfaces", "vpcSecurityGroupIds"} & set(inputs)
    inputs = inputs_of(pool(name="x", instance_type="p5.48xlarge"), extra=("sg-extra",))
    assert inputs["vpcSecurityGroupIds"] == ["sg-cluster", "sg-extra"]


def test_the_metadata_service_wants_tokens_and_ends_at_the_node():
    metadata = inputs_of(pool(name="x", instance_type="g6.xlarge"))["metadataOptions"]
    assert metadata == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}


def test_instances_volumes_and_interfaces_are_tagged():
    specifications = inputs_of(pool(name="x", instance_type="g6.xlarge"))["tagSpecifications"]
    assert [item["resourceType"] for item in specifications] == list(TAGGED)
    assert all(item["tags"]["owner"] == "platform" for item in specifications)


def test_a_capacity_block_has_market_type_and_target_and_on_demand_neither():
    inputs = inputs_of(H100_BLOCK)
    assert inputs["instanceMarketOptions"] == {"marketType": "capacity-block"}
    target = {"capacityReservationId": RESERVATION}
    assert inputs["capacityReservationSpecification"] == {"capacityReservationTarget": target}
    plain = inputs_of(pool(name="x", instance_type="p5.48xlarge", purchase="on-demand"))
    assert not {"instanceMarketOptions", "capacityReservationSpecification"} & set(plain)


def test_an_on_demand_reservation_has_a_target_and_no_market_and_spot_is_not_the_templates_to_say():
    inputs = inputs_of(pool(name="x", instance_type="p5.48xlarge", reservation_id=RESERVATION))
    assert "instanceMarketOptions" not in inputs
    assert (
        inputs["capacityReservationSpecification"]["capacityReservationTarget"]["capacityReservationId"] == RESERVATION
    )
    assert "instanceMarketOptions" not in inputs_of(pool(name="x", instance_type="g6.xlarge", purchase="spot"))


def test_the_root_volume_is_encrypted_and_fast_enough_for_parallel_pulls():
    (disk,) = inputs_of(pool(name="x", instance_type="g6.xlarge", root_volume_gib=300))["blockDeviceMappings"]
    assert disk == {
        "deviceName": "/dev/xvda",
        "ebs": {
            "volumeType": "gp3",
            "volumeSize": 300,
            "throughput": PULL_MIB_PER_SECOND,
            "encrypted": "true",
            "deleteOnTermination": "true",
        },
    }


def test_bottlerocket_takes_its_images_from_a_snapshot():
    image = NodeImage(family="bottlerocket", release="1.99.0-00000000")  # invented
    preload = Preload(data_volume_snapshot="snap-0123456789abcdef0")
    found = pool(name="x", instance_type="g6.xlarge", image=image, preload=preload)
    system, data = inputs_of(found)["blockDeviceMappings"]
    assert system["deviceName"] == "/dev/xvda"
    assert {disk["ebs"]["encrypted"] for disk in (system, data)} == {"true"}
    assert data["ebs"]["snapshotId"] == "snap-0123456789abcdef0"
    assert "throughput" not in data["ebs"]


def test_a_placement_group_is_named_where_there_is_one():
    assert inputs_of(pool(name="x", instance_type="p5.48xlarge"), placement="near")["placement"] == {
        "groupName": "near"
    }
    assert "placement" not in inputs_of(pool(name="x", instance_type="p5.48xlarge"))


def test_a_template_holds_nothing_that_eks_sets_itself():
    inputs = inputs_of(H100_BLOCK)
    refused = {"iamInstanceProfile", "hibernationOptions", "instanceInitiatedShutdownBehavior", "imageId"}
    assert not refused & set(inputs)
    assert not any("subnetId" in item for item in inputs["networkInterfaces"])
