"""The drift command: node groups and templates on moto, the file system by a double, against the stack's file."""

import json
from functools import cache
from itertools import count
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from ruamel.yaml import YAML

from fleet.cloud.interfaces import efa_layout
from fleet.cloud.labels import POOL_LABEL
from infra.cloud_client import CloudClosed
from infra.drift import Clients, drift, main
from infra.lustre_wish import file_system_of
from tests.infra.moto_gaps import FILE_SYSTEM, REGION, association, file_system_answer, refusing
from tests.infra.stacks import H100, L4, LUSTRE, NODE_LOCAL, config_of, stack

NUMBERS = count()
STACK = stack("staging", pools=[H100, L4], weights=NODE_LOCAL)
ONE_POOL = stack("staging", pools=[L4], weights=NODE_LOCAL)
ROLE = "arn:aws:iam::111122223333:role/nodes"


@pytest.fixture(scope="module")
def aws():
    """moto, which reads the cloud's partitions anew for every role's ARN unless they are kept."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("moto.eks.utils.Session", cache(boto3.Session))
        yield boto3.client("ec2", region_name=REGION), boto3.client("eks", region_name=REGION)


class Lustre:
    """FSx with one file system, as the program makes it unless told otherwise."""

    def __init__(self, events=("NEW", "CHANGED"), **changes):
        wish = file_system_of(LUSTRE)
        plain = {"StorageCapacity": wish.capacity_gib, "PerUnitStorageThroughput": wish.mb_per_second_per_tib}
        self.answer, self.events = file_system_answer(**plain | changes), events

    def describe_file_systems(self, **request):
        assert request == {"FileSystemIds": [FILE_SYSTEM]}
        return self.answer

    def describe_data_repository_associations(self, **_request):
        return {"Associations": [association("/weights", "s3://weights-1/", self.events)]}


def built(aws, *pools, layouts=None, releases=None) -> tuple[dict, Clients]:
    """A cluster of moto with a node group for each pool, and the outputs of its stack."""
    ec2, eks = aws
    cluster = f"cluster-{next(NUMBERS)}"
    eks.create_cluster(name=cluster, roleArn=ROLE, resourcesVpcConfig={"subnetIds": ["subnet-1", "subnet-2"]})
    for pool in pools:
        layout = (layouts or {}).get(pool.name, efa_layout(pool.instance) if pool.efa else ())
        _group(ec2, eks, cluster, pool, layout, (releases or {}).get(pool.name, pool.image.release))
    _group(ec2, eks, cluster, None, (), "any")
    outputs = {"cluster_name": cluster, "lustre": {"file_system_id": FILE_SYSTEM}, "weights_bucket": "weights-1"}
    return outputs, Clients(ec2, eks, Lustre())


def _group(ec2, eks, cluster, pool, layout, release):
    """``pool`` = None: the system nodes, which carry no pool's label."""
    name = pool.name if pool else "system"
    asked = [{"NetworkCardIndex": item.card, "DeviceIndex": item.device, "InterfaceType": item.type} for item in layout]
    data = {"InstanceType": pool.instance_type if pool else "m7i.xlarge", "NetworkInterfaces": asked}
    made = ec2.create_launch_template(LaunchTemplateName=f"{cluster}-{name}", LaunchTemplateData=data)
    eks.create_nodegroup(
        clusterName=cluster,
        nodegroupName=name,
        nodeRole=ROLE,
        subnets=["subnet-1"],
        launchTemplate={"id": made["LaunchTemplate"]["LaunchTemplateId"], "version": "1"},
        releaseVersion=release,
        labels={POOL_LABEL: pool.name} if pool else {},
    )


def test_a_cluster_as_it_was_asked_for_has_no_drift(aws):
    outputs, cloud = built(aws, H100, L4)
    assert list(drift(STACK, outputs, cloud)) == []


def test_an_interface_that_is_gone_is_told_with_its_group(aws):
    outputs, cloud = built(aws, H100, L4, layouts={"h100": efa_layout(H100.instance)[:-1]})
    assert list(drift(STACK, outputs, cloud)) == ["node group h100: card 31 device 0 is nothing, should be efa-only"]


def test_interfaces_on_a_pool_without_efa_are_told(aws):
    outputs, cloud = built(aws, L4, layouts={"l4": efa_layout(L4.instance)})
    assert list(drift(ONE_POOL, outputs, cloud)) == ["node group l4: card 0 device 0 is interface, should be nothing"]


def test_another_release_is_told(aws):
    outputs, cloud = built(aws, L4, releases={"l4": "1.36.0-20290101"})  # invented
    assert list(drift(ONE_POOL, outputs, cloud)) == [
        f"node group l4: the image release is 1.36.0-20290101, should be {L4.image.release}"
    ]


def test_a_pool_that_nobody_has_built_is_told(aws):
    outputs, cloud = built(aws)
    assert list(drift(ONE_POOL, outputs, cloud)) == ["pool l4: no node group carries its label"]


@pytest.mark.parametrize(
    ("fsx", "sentences"),
    [
        (Lustre(), []),
        (Lustre(StorageCapacity=7200), ["capacity is 7200 GiB, should be 4800 GiB"]),
        (
            Lustre(events=("NEW", "CHANGED", "DELETED")),
            [
                "link /weights is s3://weights-1 imports CHANGED DELETED NEW, "
                "should be s3://weights-1 imports CHANGED NEW"
            ],
        ),
    ],
)
def test_the_file_system_and_its_link_are_looked_at(aws, fsx, sentences):
    outputs, cloud = built(aws, L4)
    config = stack("staging", pools=[L4], weights=LUSTRE)
    found = list(drift(config, outputs, Clients(cloud.ec2, cloud.eks, fsx)))
    assert found == [f"file system {FILE_SYSTEM}: {sentence}" for sentence in sentences]


def files(tmp_path: Path, config, outputs: object) -> list[str]:
    """A stack's file and its outputs, as arguments of the command."""
    stack_file, outputs_file = tmp_path / "Pulumi.x.yaml", tmp_path / "outputs.json"
    with stack_file.open("w", encoding="utf-8") as handle:
        YAML(typ="safe", pure=True).dump({"config": config_of(config)}, handle)
    outputs_file.write_text(outputs if isinstance(outputs, str) else json.dumps(outputs), encoding="utf-8")
    return ["--stack-file", str(stack_file), "--outputs", str(outputs_file)]


@pytest.mark.parametrize(("release", "code"), [(L4.image.release, 0), ("1.36.0-20290101", 1)])
def test_the_command_exits_with_1_exactly_when_something_differs(aws, tmp_path, capsys, release, code):
    config = stack("staging", pools=[L4])
    outputs, cloud = built(aws, L4, releases={"l4": release})
    assert main(files(tmp_path, config, outputs), connect=lambda _: cloud) == code
    assert ("the image release is" in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ("[", "they are no JSON"),
        ("[]", "they lack cluster_name"),
        ({"cluster_name": "c", "lustre": None}, "they lack lustre, weights_bucket"),
    ],
)
def test_outputs_that_lack_something_are_told_and_nobody_is_asked(tmp_path, capsys, outputs, words):
    arguments = files(tmp_path, stack("staging", weights=LUSTRE), outputs)
    assert main(arguments, connect=lambda _: pytest.fail("asked")) == 2
    assert words in capsys.readouterr().err


def test_a_cluster_that_is_not_there_and_a_cloud_that_is_closed_are_told(tmp_path, capsys):
    arguments = files(tmp_path, stack("staging", pools=[L4]), {"cluster_name": "none"})
    with refusing("eks", "list_nodegroups", "ResourceNotFoundException", "No cluster found") as eks:  # moto crashes
        assert main(arguments, connect=lambda _: Clients(eks, eks, Lustre())) == 1
    assert "list_nodegroups(clusterName=none): ResourceNotFoundException: No cluster" in capsys.readouterr().err

    def closed(_region):
        raise CloudClosed("AWS can't be asked: Unable to locate credentials")

    assert main(arguments, connect=closed) == 1
    assert capsys.readouterr().err == "AWS can't be asked: Unable to locate credentials\n"
