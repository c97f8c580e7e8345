"""The recorder sees what mocks let through."""

import pulumi
import pulumi_aws as aws
import pytest
from pulumi_aws import ec2, eks

from tests.infra.recording import ProgramFault, record
from tests.infra.sdk_shapes import UNKNOWN


class Parts(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("enginehouse:test:Parts", name)
        self.vpc = ec2.Vpc(
            f"{name}-vpc", cidr_block="10.0.0.0/16", opts=pulumi.ResourceOptions(parent=self, protect=True)
        )
        self.register_outputs({"vpcId": self.vpc.id})


def subnet_program():
    parts = Parts("base")
    ec2.Subnet(
        "one", vpc_id=parts.vpc.id, cidr_block="10.0.0.0/24", opts=pulumi.ResourceOptions(ignore_changes=["cidr_block"])
    )
    pulumi.export("vpc", parts.vpc.id)
    pulumi.export("hidden", pulumi.Output.secret("s3cret"))
    pulumi.log.warn("look here")


def test_a_recording_holds_inputs_parents_dependencies_and_options():
    recording = record(subnet_program)
    subnet, vpc, parts = recording.one("Subnet"), recording.one("Vpc"), recording.one("Parts")
    assert subnet.inputs == {"vpcId": vpc.id, "cidrBlock": "10.0.0.0/24"}
    assert subnet.property_dependencies["vpcId"] == {vpc.urn}
    assert vpc.urn in subnet.depends_on
    assert subnet.options.ignore_changes == ("cidrBlock",)
    assert vpc.parent == parts.urn
    assert vpc.options.protect
    assert recording.children(parts) == (vpc,)
    assert not parts.is_custom
    assert parts.urn in recording.finished
    assert vpc.id.startswith("vpc-")
    assert vpc.outputs["arn"].startswith("arn:aws:ec2:")


def test_outputs_of_the_stack_and_warnings_are_kept_and_secrets_are_named():
    recording = record(subnet_program)
    assert recording.outputs == {"vpc": recording.one("Vpc").id, "hidden": "s3cret"}
    assert recording.secret_outputs == {"hidden"}
    assert recording.messages == (("warning", "look here"),)


def test_two_runs_give_the_same_recording():
    assert record(subnet_program) == record(subnet_program)


def test_what_the_cloud_computes_is_unknown_at_preview():
    recording = record(subnet_program, preview=True)
    assert recording.one("Subnet").inputs["vpcId"] == UNKNOWN
    assert recording.one("Vpc").id == ""
    assert recording.outputs["vpc"] == UNKNOWN


def test_a_program_reads_its_configuration():
    seen = []
    record(
        lambda: seen.append(pulumi.Config("enginehouse").require_object("stack")),
        config={"enginehouse:stack": {"a": 1}},
    )
    assert seen == [{"a": 1}]


def test_the_same_name_for_two_resources_of_a_type_is_a_fault():
    def program():
        ec2.Vpc("v", cidr_block="10.0.0.0/16")
        ec2.Vpc("v", cidr_block="10.1.0.0/16")

    with pytest.raises(ProgramFault, match="aws:ec2/vpc:Vpc 'v' is registered twice"):
        record(program)


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: pulumi.Output.from_input(value)])
def test_a_dict_where_the_sdk_has_a_class_is_a_fault(wrap):
    def program():
        config = wrap({"desired_size": 1, "max_size": 2, "min_sizes": 0})
        eks.NodeGroup("n", cluster_name="c", node_role_arn="r", subnet_ids=["s"], scaling_config=config)

    with pytest.raises(ProgramFault, match="NodeGroupScalingConfigArgs"):
        record(program)


def test_a_dict_in_a_list_of_objects_and_in_an_args_class_is_a_fault():
    def program():
        ec2.LaunchTemplate("lt", network_interfaces=[{"device_index": 0}])
        mapping = ec2.LaunchTemplateBlockDeviceMappingArgs(device_name="/dev/xvda", ebs={"volume_size": 20})
        ec2.LaunchTemplate("other", block_device_mappings=[mapping])

    with pytest.raises(ProgramFault) as caught:
        record(program)
    assert any("LaunchTemplateNetworkInterfaceArgs" in line for line in caught.value.problems)
    assert any("LaunchTemplateBlockDeviceMappingEbsArgs" in line for line in caught.value.problems)


def test_a_dict_of_free_keys_is_no_fault():
    assert record(lambda: ec2.Vpc("v", cidr_block="10.0.0.0/16", tags={"owner": "team"})).one("Vpc")


def test_a_property_that_the_sdk_lacks_is_a_fault():
    def program():
        eks.NodeGroup("n", cluster_name="c", node_role_arn="r", subnet_ids=["s"], scaling_config={"min_sizes": 0})

    with pytest.raises(ProgramFault, match=r"scalingConfig\.min_sizes: NodeGroupScalingConfigArgs has no property"):
        record(program)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ec2.Vpc("v", cidr_block=10),
        lambda: ec2.Vpc("v", cidr_block="10.0.0.0/16", enable_dns_support="yes"),
        lambda: eks.NodeGroup("n", cluster_name="c", node_role_arn="r", subnet_ids="s", scaling_config=None),
        lambda: ec2.LaunchTemplate("t", default_version=1.5),
    ],
)
def test_a_value_of_another_kind_is_a_fault(make):
    with pytest.raises((ProgramFault, TypeError), match=r"where the SDK takes|Missing required"):
        record(make)


def test_an_output_in_a_text_is_a_fault():
    def program():
        vpc = ec2.Vpc("v", cidr_block="10.0.0.0/16")
        ec2.Subnet("s", vpc_id=f"{vpc.id}", cidr_block="10.0.0.0/24")

    with pytest.raises(Exception, match="Calling __str__ on an Output"):
        record(program)


def test_a_look_up_is_a_fault():
    with pytest.raises(ProgramFault, match="getCallerIdentity"):
        record(lambda: pulumi.export("id", aws.get_caller_identity_output().account_id))


def test_an_error_of_the_program_comes_out_as_it_is():
    def program():
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        record(program)
    assert record(subnet_program).one("Vpc")
