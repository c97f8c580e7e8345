"""User data over every instance and kind of image, read back as a node reads it."""

import email
import tomllib
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fleet import hardware
from infra.stack_config import NodeImage, Preload
from infra.user_data import EFA_HUGE_PAGES, encoded, pulls_in_parallel, user_data
from tests.infra.stacks import pool

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
SNAPSHOT = "snap-0123456789abcdef0"  # invented


def a_pool(name="g6.xlarge", family="al2023", **fields):
    preload = Preload(parallel_pull=fields.pop("parallel", True), data_volume_snapshot=fields.pop("snapshot", None))
    image = NodeImage(family=family, release="1.36.0-20300101")  # invented
    return pool(name="x", instance_type=name, image=image, preload=preload, **fields)


POOLS = st.builds(
    a_pool,
    INSTANCES,
    st.sampled_from(["al2023", "bottlerocket"]),
    efa=st.booleans(),
    parallel=st.booleans(),
    snapshot=st.sampled_from([None, SNAPSHOT]),
)


def parts(text):
    """Type -> text of a MIME document's parts."""
    message = email.message_from_string(text)
    assert message.get_content_type() == "multipart/mixed"
    return {part.get_content_type(): part.get_payload() for part in message.get_payload()}


def node_config(text):
    return YAML(typ="safe").load(parts(text)["application/node.eks.aws"])


@given(found=POOLS)
def test_user_data_is_text_that_its_reader_takes(found):
    text = user_data(found)
    if text is None:
        return
    assert b64decode(encoded(text)).decode() == text
    if found.image.family == "bottlerocket":
        assert tomllib.loads(text)["settings"]
    else:
        assert set(parts(text)) <= {"application/node.eks.aws", "text/x-shellscript"}


@given(found=POOLS)
def test_every_instance_with_local_disks_makes_one_of_them_and_no_other_does(found):
    text = user_data(found) or ""
    mounts = "ephemeral-storage" in text or "RAID0" in text
    assert mounts == (found.instance.local_storage is not None)


@given(found=POOLS)
def test_huge_pages_are_for_efa_alone(found):
    assert (str(EFA_HUGE_PAGES) in (user_data(found) or "")) == found.efa


@given(found=POOLS)
def test_the_images_of_a_snapshot_stay_visible(found):
    text = user_data(found) or ""
    if found.preload.data_volume_snapshot:
        assert not pulls_in_parallel(found)
        assert "/var/lib/containerd" not in text
        assert "soci" not in text


def test_al2023_makes_one_disk_and_pulls_in_parallel():
    assert node_config(user_data(a_pool("p5.48xlarge"))) == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "instance": {"localStorage": {"strategy": "RAID0"}},
            "featureGates": {"FastImagePull": True},
        },
    }


def test_al2023_sets_huge_pages_before_the_kubelet_counts_them():
    script = parts(user_data(a_pool("p5.48xlarge", efa=True)))["text/x-shellscript"]
    assert script.startswith("#!/bin/bash\n")
    assert f"vm.nr_hugepages = {EFA_HUGE_PAGES}" in script
    assert "sysctl --load=" in script


def test_bottlerocket_says_the_same_as_settings():
    settings = tomllib.loads(user_data(a_pool("p5.48xlarge", "bottlerocket", efa=True)))["settings"]
    assert settings["kernel"]["sysctl"] == {"vm.nr_hugepages": str(EFA_HUGE_PAGES)}
    assert settings["container-runtime"] == {"snapshotter": "soci"}
    disks = settings["bootstrap-commands"]["local-disks"]
    assert disks["commands"][0] == ["apiclient", "ephemeral-storage", "init"]
    assert disks["commands"][1][4:] == [
        "/var/lib/containerd",
        "/var/lib/soci-snapshotter",
        "/var/lib/kubelet",
        "/var/log/pods",
    ]


@pytest.mark.parametrize("way", ["time-slicing", "mps"])
def test_bottlerocket_shares_gpus_by_its_own_plugin_under_the_name_that_pods_ask_for(way):
    text = user_data(a_pool("g6.xlarge", "bottlerocket", sharing=way, time_slices=4))
    plugin = tomllib.loads(text)["settings"]["kubelet-device-plugins"]["nvidia"]
    assert plugin["device-sharing-strategy"] == way
    assert plugin[way]["replicas"] == 4
    assert plugin[way]["rename-by-default"] is True


def test_bottlerocket_leaves_gpus_to_the_dra_driver():
    text = user_data(a_pool("p5.48xlarge", "bottlerocket", allocation="dra"))
    assert tomllib.loads(text)["settings"]["kubelet-device-plugins"]["nvidia"] == {"enabled": False}


def test_shares_that_nobody_states_are_an_error_with_the_key():
    with pytest.raises(ValueError, match="pool x: sharing 'mps' needs time_slices"):
        user_data(a_pool("g6.xlarge", "bottlerocket", sharing="mps"))


@pytest.mark.parametrize("family", ["al2023", "bottlerocket"])
def test_a_node_that_needs_nothing_gets_nothing(family):
    found = a_pool("g6.xlarge", family, parallel=False)
    found.__dict__["instance"] = found.instance.model_copy(update={"local_storage": None})  # every known one has disks
    assert user_data(found) is None
