"""The scaler that the program makes is the one that rendering gives."""

from dataclasses import replace

import pytest

from engines.catalogue import load
from fleet.cloud.scaling import Workload, owner_findings, scaler_findings
from infra.scaling import KedaScaler, KedaScalerArgs, has_own_scaler
from tests.infra.manifest_folders import pin_of, written
from tests.infra.recording import Recorded, Recording, record
from workloads import RenderGround, reading, render

GROUND = RenderGround()


def recorded(**scaling) -> Recording:
    manifest = pin_of(written(scaling={"managed_by": "pulumi", **scaling}))
    return record(lambda: KedaScaler("prod-chat", KedaScalerArgs(manifest, load(), GROUND)))


def the_scaler(recording: Recording) -> Recorded:
    (found,) = (item for item in recording.resources if item.is_custom)
    return found


@pytest.mark.parametrize("scaling", [{"max": 8}, {"max": 8, "idle": "scale-to-zero"}, {"min": 0, "max": 3}])
def test_it_says_what_rendering_says_and_breaks_no_rule(scaling):
    found = the_scaler(recorded(**scaling))
    rendered = render(pin_of(written(scaling=scaling)), load(), GROUND)
    (expected,) = (item for item in rendered if item["kind"] == "ScaledObject")
    assert found.inputs["spec"] == expected["spec"]
    assert found.inputs["metadata"]["name"] == expected["metadata"]["name"]
    assert found.inputs["kind"] == "ScaledObject"
    scaler = reading.scaler(found.inputs)
    assert scaler is not None
    assert list(scaler_findings(scaler)) == []


def test_the_deployment_beside_it_leaves_its_replicas_out():
    manifest = pin_of(written(scaling={"managed_by": "pulumi", "max": 8}))
    objects = {item["kind"]: item for item in render(manifest, load(), GROUND)}
    assert "ScaledObject" not in objects
    workload = reading.workload(objects["Deployment"])
    claim = reading.claim(the_scaler(recorded(max=8)).inputs)
    assert workload is not None
    assert claim is not None
    assert claim.workload == workload.id
    assert list(owner_findings([workload], [claim])) == []
    assert len(list(owner_findings([replace(workload, replicas=2)], [claim]))) == 1


def test_it_is_a_component_with_its_outputs():
    recording = recorded(max=8)
    component = recording.one("enginehouse:infra:KedaScaler")
    assert component.urn in recording.finished
    assert [item.urn for item in recording.children(component)] == [the_scaler(recording).urn]


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [({"max": 8, "managed_by": "pulumi"}, True), ({"max": 8}, False), ({"max": 1, "managed_by": "pulumi"}, False)],
)
def test_the_program_makes_a_scaler_where_it_is_asked_and_there_is_something_to_scale(scaling, expected):
    assert has_own_scaler(pin_of(written(scaling=scaling))) is expected


def test_the_value_of_a_workload_without_replicas_is_none():
    assert reading.workload({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {}}) == Workload(
        "default/Deployment/a", None
    )
