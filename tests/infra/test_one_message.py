"""One mistake of a stack is told once, not by everything that follows from it; and what the program says is its own."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.hardware import instance_types
from fleet.sharing import SharingWay
from infra.autoscaling import scaled_labels
from infra.gpu_sharing import OWN_LABELS
from infra.pool_checks import ACCELERATOR_LABEL
from infra.stack_checks import problems
from infra.stack_config import StackConfig
from tests.infra.changed_places import with_value_at
from tests.infra.stacks import DEV, H100_MIG, PROD, STAGING, WITHOUT_LUSTRE, ZONES, config_of, pool

TODAY = date(2030, 1, 1)
PLUGIN = "nvidia.com/device-plugin.config"
ELSEWHERE = ["us-east-1a", "us-east-1b"]
ONE = {
    "a region that is misspelt": (PROD, {"region": "eu-centrall-1"}, "region", "did you mean 'eu-central-1'"),
    "a region that there is not": (PROD, {"region": "eu-middle-9"}, "region", "take one such as"),
    "the zones of another region": (PROD, {"network__zones": ELSEWHERE}, "network.zones", "us-east-1a, us-east-1b"),
    "one zone and others": (
        PROD, {"pools__0__zones": [ZONES[1]]}, "pools.h100-block.zones", "give one of the two",
    ),
    "an older Kubernetes": (PROD, {"cluster__kubernetes": "1.20"}, "cluster.kubernetes", 'set it to "1.36"'),
    "a newer Kubernetes": (STAGING, {"cluster__kubernetes": "1.99"}, "cluster.kubernetes", "take releases that begin"),
    "a label of the program": (DEV, {"pools__0__labels": {PLUGIN: "own"}}, f"pools.l4.labels.{PLUGIN}", "leave it out"),
    "EFA for one node": (WITHOUT_LUSTRE, {"pools__0__max_nodes": 1}, "pools.h100-block.efa", "2 or more"),
    "a system type twice": (
        DEV, {"system_nodes__instance_types": ["m7i.xlarge"] * 2}, "system_nodes.instance_types", "each type once",
    ),
}  # fmt: skip


def told(config, fields):
    """What is wrong with a stack that has other values in some places, named as ``pools__0__zone``."""
    content = config_of(config)["enginehouse:stack"]
    for name, value in fields.items():
        path = [int(part) if part.isdigit() else part for part in name.split("__")]
        content = with_value_at(content, path, value)
    return problems(StackConfig.model_validate(content), today=TODAY)


@pytest.mark.parametrize("name", ONE)
def test_a_mistake_is_one_message(name):
    config, fields, key, words = ONE[name]
    (found,) = told(config, fields)
    assert found.key == key
    assert words in found.sentence


def test_one_node_with_efa_may_talk_to_a_file_system():
    assert told(PROD, {"pools__0__max_nodes": 1}) == []


def test_a_release_alone_is_told_by_its_own_key_whatever_the_cluster_has():
    fields = {"cluster__kubernetes": "1.35", "pools__0__image__release": "1.35.1-20300101"}
    assert {item.key for item in told(DEV, fields)} == {"system_nodes.release", "pools.l4-shared.image.release"}


@given(
    name=st.sampled_from(sorted(instance_types())),
    way=st.sampled_from([SharingWay.EXCLUSIVE, SharingWay.MPS, SharingWay.TIME_SLICING]),
    efa=st.booleans(),
    family=st.sampled_from(["al2023", "bottlerocket"]),
)
def test_every_label_that_the_program_sets_is_known_as_its_own(name, way, efa, family):
    shares = {"time_slices": 2} if way in (SharingWay.MPS, SharingWay.TIME_SLICING) else {}
    image = {"family": family, "release": "1.36.0-20300101"}  # invented
    found = pool(name="x", instance_type=name, sharing=way.value, efa=efa, image=image, **shares)
    assert all(set(scaled_labels(item)) <= OWN_LABELS | {ACCELERATOR_LABEL} for item in (found, H100_MIG))
