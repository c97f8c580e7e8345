"""Pods are found wherever an object of whatever kind tells of them; a patch is judged by what it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud.objects import object_findings
from fleet.cloud.scaling import Claim, owner_findings, scaler_findings
from workloads import reading
from workloads.pod_places import MAX_DEPTH, pod_places
from workloads.pod_reading import host_path, pod_owners

KEYS = st.text(alphabet="abcdefgh", min_size=1, max_size=6)
STEPS = st.lists(st.one_of(KEYS, st.just(0)), max_size=8)
CONTAINER = {"name": "one", "image": "busybox"}


def nested(steps, inner):
    for step in reversed(steps):
        inner = [inner] if step == 0 else {step: inner}
    return inner


@given(KEYS, STEPS)
def test_a_pod_is_found_however_deep_it_stands(kind, steps):
    item = {"kind": kind, "metadata": {"name": "a"}, "spec": nested(steps, {"containers": [CONTAINER]})}
    (found,) = pod_owners(item)
    assert [container.image for container in found.containers] == ["busybox"]


@given(st.integers(MAX_DEPTH + 1, 300))
def test_what_is_deeper_than_any_object_ends_the_search(depth):
    item = {"kind": "Thing", "spec": nested(["a"] * depth, {"containers": [CONTAINER]})}
    assert list(pod_places(item)) == []


@pytest.mark.parametrize("kind", ["Deployment", "Thing", "Pod"])
def test_what_stands_in_metadata_and_status_makes_no_pods(kind):
    inner = {"spec": {"containers": [CONTAINER]}}
    assert pod_owners({"kind": kind, "metadata": inner, "status": inner, "spec": {}}) == ()


@given(st.dictionaries(KEYS, st.text(max_size=4), max_size=3))
def test_a_patch_is_not_blamed_for_what_it_leaves_out(others):
    container = {"name": "one", "env": [{"name": name, "value": value} for name, value in others.items()]}
    item = {
        "kind": "DeploymentPatch",
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    (found,) = pod_owners(item)
    assert list(object_findings(found)) == []
    assert found.id == "default/Deployment/a"


@pytest.mark.parametrize(
    ("stated", "rule"),
    [
        ({"image": "busybox"}, "image-digest"),
        ({"securityContext": {"privileged": True}}, "pod-privileged"),
        ({"securityContext": {"runAsUser": 0}}, "pod-root"),
        ({"securityContext": {"readOnlyRootFilesystem": False}}, "pod-writable-root"),
    ],
)
def test_a_patch_is_blamed_for_what_it_says(stated, rule):
    pod = {"containers": [{"name": "one", **stated}]}
    (found,) = pod_owners({"kind": "DaemonSetPatch", "spec": {"template": {"spec": pod}}})
    assert [item.rule.id for item in object_findings(found)] == [rule]


@pytest.mark.parametrize(
    ("value", "is_on"), [("true", True), ("FALSE", False), (False, False), ("maybe", True), (1, True)]
)
def test_flags_in_text_are_read_and_what_can_t_be_read_counts_against(value, is_on):
    spec = {"hostNetwork": value, "containers": [{**CONTAINER, "securityContext": {"privileged": value}}]}
    (found,) = pod_owners({"kind": "Pod", "spec": spec})
    assert (found.host_namespaces == ("hostNetwork",)) == is_on
    assert found.containers[0].is_privileged == is_on


@pytest.mark.parametrize(
    ("user", "is_safe"), [(7, True), ("7", True), (0, False), ("0", False), (0.0, False), ("x", False)]
)
def test_a_user_that_can_t_be_read_may_be_root(user, is_safe):
    rights = {"runAsNonRoot": True, "runAsUser": user}
    (found,) = pod_owners({"kind": "Pod", "spec": {"containers": [CONTAINER], "securityContext": rights}})
    assert found.containers[0].is_not_root == is_safe


def test_a_volume_of_a_node_is_told_with_and_without_its_path():
    assert host_path({"spec": {"hostPath": {"path": "/x"}}}) == "/x"
    assert host_path({"spec": {"hostPath": None}}) == ""
    assert host_path({"spec": {"csi": {}}}) is None


NUMBER = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 200), st.floats(), st.text(max_size=3), st.just([]), st.just({})
)


@given(NUMBER, NUMBER, NUMBER, NUMBER)
def test_counts_of_any_kind_are_read_or_said_to_be_none(smallest, largest, idle, fallback):
    spec = {
        "minReplicaCount": smallest,
        "maxReplicaCount": largest,
        "idleReplicaCount": idle,
        "fallback": {"replicas": fallback},
    }
    found = reading.scaler({"kind": "ScaledObject", "metadata": {"name": "a"}, "spec": spec})
    rules = {item.rule.id for item in scaler_findings(found)}
    stated = (smallest, largest, idle, fallback)
    is_odd = any(isinstance(item, bool | str | list | dict) for item in stated)
    assert "keda-range" in rules or not is_odd


@given(NUMBER)
def test_replicas_of_any_kind_beside_a_scaler_have_two_owners(replicas):
    found = reading.workload({"kind": "Thing", "metadata": {"name": "a"}, "spec": {"replicas": replicas}})
    claim = Claim("default/ScaledObject/a", "default/Thing/a")
    said = list(owner_findings([] if found is None else [found], [claim]))
    assert len(said) == (replicas is not None)
