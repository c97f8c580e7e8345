"""Charts: only what the pools need, with versions, on the nodes that are meant."""

import pytest
from ruamel.yaml import YAML

from fleet.cloud.node_images import operator_findings
from infra import autoscaler
from infra.charts import DRA_DRIVER, Charts, ChartsArgs, wanted
from infra.gpu_pool import AMI_TYPES
from infra.gpu_sharing import ANNOUNCER_LABEL, node_labels
from infra.stack_config import Versions
from infra.versions import CHARTS
from tests.infra.recording import record
from tests.infra.stacks import B300_BLOCK, H100, H100_MIG, IMAGE, L4, L4_SHARED, VARIANTS, pool

DRA = H100.model_copy(update={"allocation": "dra", "efa": False})
BOTTLEROCKET = pool(name="b", instance_type="g6.xlarge", image={**IMAGE, "family": "bottlerocket"})


def recorded(*pools, versions=None):
    args = ChartsArgs(pools, versions or Versions())
    recording = record(lambda: Charts("prod", args))
    return {item.inputs["name"]: item.inputs for item in recording.of("Release")}


@pytest.mark.parametrize(("pools", "names"), [
    ([BOTTLEROCKET], set()),
    ([L4], {"nvidia-device-plugin"}),
    ([L4, H100], {"nvidia-device-plugin", "aws-efa-k8s-device-plugin"}),
    ([H100_MIG], {"gpu-operator"}),
    ([H100_MIG, L4_SHARED], {"gpu-operator", "nvidia-device-plugin"}),
    ([DRA], {DRA_DRIVER}),
])  # fmt: skip
def test_pools_get_the_charts_that_they_need_and_no_others(pools, names):
    assert set(recorded(*pools)) == {"keda", "kueue"} | names


def test_every_chart_that_is_listed_is_installed_for_somebody():
    assert {*recorded(L4, H100, H100_MIG, DRA), autoscaler.NAME} == set(CHARTS)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_release_has_a_version_a_namespace_and_one_source(variant):
    for name, inputs in recorded(*VARIANTS[variant].pools).items():
        assert inputs["version"] == CHARTS[name].version
        assert inputs["namespace"] != "default"
        assert inputs["chart"].startswith("oci://") != ("repositoryOpts" in inputs)


def test_the_stacks_own_version_comes_first():
    versions = Versions(charts={"keda": "9.9.9", DRA_DRIVER: "8.8.8"})  # invented
    found = recorded(DRA, versions=versions)
    assert found["keda"]["version"] == "9.9.9"
    assert found[DRA_DRIVER]["version"] == "8.8.8"


@pytest.mark.parametrize("found", [L4, L4_SHARED, H100, H100_MIG, DRA, BOTTLEROCKET])
def test_a_node_is_chosen_by_one_announcer_at_most(found):
    label = node_labels(found)[ANNOUNCER_LABEL]
    charts = recorded(L4, H100_MIG, DRA, found)
    selectors = [
        charts["nvidia-device-plugin"]["values"]["nodeSelector"][ANNOUNCER_LABEL],
        charts["gpu-operator"]["values"]["node-feature-discovery"]["worker"]["nodeSelector"][ANNOUNCER_LABEL],
        charts[DRA_DRIVER]["values"]["kubeletPlugin"]["nodeSelector"][ANNOUNCER_LABEL],
    ]
    assert len(set(selectors)) == 3
    assert selectors.count(label) == (0 if found is BOTTLEROCKET else 1)


def test_the_operator_installs_nothing_that_the_ami_has():
    values = recorded(H100_MIG)["gpu-operator"]["values"]
    installs = {part: values[part]["enabled"] for part in ("driver", "toolkit")}
    assert not list(operator_findings(AMI_TYPES.values(), installs=installs))
    assert values["mig"] == {"strategy": "mixed"}


def test_the_efa_plugin_knows_the_pools_instances_however_new():
    values = recorded(B300_BLOCK)["aws-efa-k8s-device-plugin"]["values"]
    assert values["supportedInstanceLabels"]["values"] == ["p6-b300.48xlarge"]


def test_configurations_of_the_device_plugin_are_yaml_that_pools_name():
    config = recorded(L4, L4_SHARED)["nvidia-device-plugin"]["values"]["config"]
    assert config["default"] in config["map"]
    for found in (L4, L4_SHARED):
        assert node_labels(found)["nvidia.com/device-plugin.config"] in config["map"]
    shared = YAML(typ="safe").load(config["map"]["time-slicing-4"])
    assert shared["sharing"]["timeSlicing"] == {
        "renameByDefault": True,
        "failRequestsGreaterThanOne": True,
        "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
    }


def test_kueue_and_keda_have_two_of_what_others_wait_for():
    found = {item.chart: item.values for item in wanted([L4])}
    assert found["kueue"] == {"controllerManager": {"replicas": 2}}
    assert found["keda"]["operator"] == {"replicaCount": 2}


def test_slices_on_demand_switch_their_gate_on():
    dynamic = DRA.model_copy(update={"sharing": "dynamic-slices"})
    dynamic = dynamic.model_validate({**DRA.model_dump(mode="json", exclude_none=True), "sharing": "dynamic-slices"})
    assert recorded(dynamic)[DRA_DRIVER]["values"]["featureGates"] == {"DynamicMIG": True}
    assert "featureGates" not in recorded(DRA)[DRA_DRIVER]["values"]
