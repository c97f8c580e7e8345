"""Objects that anybody wrote become the values that rules judge, with Kubernetes' and KEDA's own defaults."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud.objects import object_findings
from fleet.cloud.scaling import scaler_findings
from fleet.node_pools import NodePool
from fleet.sharing import SharingWay
from workloads import reading
from workloads.pod_reading import pod_owners

POD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")
IMAGE = "invented.invalid/one@sha256:" + "1" * 64
POD = {
    "containers": [
        {"name": "engine", "image": IMAGE, "resources": {"limits": {"memory": "1Gi", "nvidia.com/mig-1g.10gb": 1.0}}}
    ]
}


def owner(kind, pod, **head):
    template = {"metadata": head, "spec": pod}
    spec = {"jobTemplate": {"spec": {"template": template}}} if kind == "CronJob" else {"template": template}
    item = {"kind": kind, "metadata": {"name": "one", "namespace": "prod", **head}}
    (found,) = pod_owners(item | (template if kind == "Pod" else {"spec": spec}), [])
    return found


@pytest.mark.parametrize("kind", POD_KINDS)
def test_every_kind_that_makes_pods_is_read(kind):
    found = owner(kind, POD)
    assert found.id.endswith(f"/{kind}/one") or kind == "Pod"
    assert [item.image for item in found.containers] == [IMAGE]


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "ScaledObject", ""])
def test_other_kinds_make_no_pods(kind):
    assert pod_owners({"kind": kind}) == ()


def test_the_pod_s_rights_hold_for_a_container_that_says_nothing():
    rights = {"runAsNonRoot": True, "runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}}
    (found,) = owner("Deployment", {**POD, "securityContext": rights}).containers
    assert (found.is_not_root, found.has_seccomp) == (True, True)
    container = {**POD["containers"][0], "securityContext": {"runAsUser": 0}}
    (found,) = owner("Deployment", {"containers": [container], "securityContext": rights}).containers
    assert not found.is_not_root


@pytest.mark.parametrize(
    "choice",
    [
        {"nodeSelector": {"enginehouse.dev/pool": "h100"}},
        {"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "enginehouse.dev/pool", "operator": "In", "values": ["h100"]},
                                    {"key": "enginehouse.dev/pool", "operator": "NotIn", "values": ["l4"]},
                                ]
                            }
                        ]
                    }
                }
            }
        },
    ],
)
def test_the_gpus_are_those_of_the_nodes_that_a_pod_names(choice):
    pools = [NodePool(name="h100", instance_type="p5.48xlarge"), NodePool(name="l4", instance_type="g6.xlarge")]
    item = {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"spec": {**POD, **choice}}}}
    (found,) = pod_owners(item, pools)
    assert [model.name for model in found.gpus] == ["H100"]


def test_sharing_and_isolation_are_read_from_labels():
    found = owner(
        "Deployment", POD, labels={"enginehouse.dev/isolation": "hardware", "enginehouse.dev/gpu-sharing": "mps"}
    )
    assert (found.sharing, found.needs_isolation) == (SharingWay.MPS, True)
    assert owner("Deployment", POD, labels={"enginehouse.dev/gpu-sharing": "by-luck"}).sharing is None


def test_host_access_is_read():
    pod = {
        **POD,
        "hostNetwork": True,
        "volumes": [{"name": "d", "hostPath": {"path": "/dev"}}, {"name": "t", "emptyDir": {}}],
    }
    found = owner("DaemonSet", pod)
    assert (found.host_paths, found.host_namespaces) == (("/dev",), ("hostNetwork",))


def test_a_bare_scaled_object_has_keda_s_defaults():
    item = {"kind": "ScaledObject", "metadata": {"name": "one"}, "spec": {"triggers": [{"type": "prometheus"}]}}
    found = reading.scaler(item)
    assert found is not None
    assert (found.smallest, found.largest, found.idle, found.fallback_replicas) == (0, 100, None, None)
    (trigger,) = found.triggers
    assert (trigger.metric_type, trigger.ignores_null, trigger.metric_name) == ("AverageValue", True, None)


@pytest.mark.parametrize("value", ["false", " false ", False])
def test_ignore_null_values_is_off_however_it_is_written(value):
    trigger = {"type": "prometheus", "metadata": {"ignoreNullValues": value}}
    found = reading.scaler({"kind": "ScaledObject", "spec": {"triggers": [trigger]}})
    assert found is not None
    assert not found.triggers[0].ignores_null


def test_a_scaler_claims_a_deployment_of_its_own_namespace():
    head = {"name": "one", "namespace": "prod"}
    hpa = {
        "kind": "HorizontalPodAutoscaler",
        "metadata": head,
        "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "x"}},
    }
    assert reading.claim(hpa).workload == "prod/StatefulSet/x"
    keda = {"kind": "ScaledObject", "metadata": head, "spec": {"scaleTargetRef": {"name": "x"}}}
    assert reading.claim(keda).workload == "prod/Deployment/x"
    assert reading.claim({"kind": "Service"}) is None


def test_replicas_arrive_as_numbers_of_any_kind():
    item = {"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 3.0}}
    assert reading.workload(item).replicas == 3
    assert reading.workload({"kind": "Job"}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["containers", "securityContext", "env", "volumes", "hostPath", "limits", "name", "triggers"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from([*POD_KINDS, "ScaledObject"]), JSON, JSON)
def test_an_object_of_any_content_is_read_without_a_fault(kind, spec, pod):
    item = {"kind": kind, "metadata": spec, "spec": {"template": {"spec": pod}, "triggers": spec}}
    for owner in pod_owners(item):
        assert list(object_findings(owner)) is not None
    found = reading.scaler(item)
    assert found is None or list(scaler_findings(found)) is not None
