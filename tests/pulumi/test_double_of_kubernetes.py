"""The double of the Kubernetes provider: server-side apply, ConfigMaps as it is told, kinds that must exist."""

import json

import pytest

from tests.pulumi.direct import Provider, Refused
from tests.pulumi.doubles import wire
from tests.pulumi.doubles.kubernetes_double import KubernetesDouble

MAP = "kubernetes:core/v1:ConfigMap"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
SCALED = "kubernetes:keda.sh/v1alpha1:ScaledObject"
RELEASE = "kubernetes:helm.sh/v3:Release"
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "chat", "namespace": "fleet"},
    "data": {"a": "1"},
}
SERVED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat", "namespace": "fleet"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "chat"}},
        "template": {"metadata": {"labels": {"app": "chat"}}, "spec": {"containers": [{"name": "engine"}]}},
    },
}
SCALING = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "chat", "namespace": "fleet"},
    "spec": {"maxReplicaCount": 3},
}
KEDA = {
    "chart": "keda",
    "version": "0.0.0-invented",
    "namespace": "keda",
    "repositoryOpts": {"repo": "https://x.example"},
}


@pytest.fixture
def journal(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DOUBLES_JOURNAL", str(tmp_path / "journal.jsonl"))


@pytest.fixture
def cluster(journal) -> Provider:
    return Provider(KubernetesDouble(), {"kubeconfig": "{}", "enableConfigMapMutable": "true"})


@pytest.mark.parametrize(
    ("token", "inputs", "reason"),
    [
        (MAP, {**CONFIG, "data": {"a": 1}}, "data.a is 1 and must be a string"),
        (MAP, {**CONFIG, "kind": "Configmap"}, "kind is 'Configmap'; allowed: ConfigMap"),
        (MAP, {**CONFIG, "datas": {}}, "datas is no property here; the nearest is data"),
        (MAP, {**CONFIG, "metadata": {"labels": {"a": True}}}, "metadata.labels.a is True and must be a string"),
        (DEPLOYMENT, {**SERVED, "spec": {"replicas": 1}}, "spec.selector is required and missing"),
        (DEPLOYMENT, {**SERVED, "spec": {**SERVED["spec"], "replica": 1}}, "spec.replica is no property here"),
        (SCALED, {**SCALING, "apiVersion": "keda.sh/v1"}, "apiVersion is 'keda.sh/v1' in a resource of type"),
        (SCALED, {**SCALING, "metadata": {"label": {}}}, "metadata.label is no property here"),
        (RELEASE, {"version": "1.0.0"}, "chart is required and missing"),
        (RELEASE, {**KEDA, "timeout": "5m"}, "timeout is '5m' and must be a whole number"),
        (RELEASE, {"chart": "keda"}, "chart 'keda' has no repository"),
    ],
)
def test_what_the_sdk_or_the_cluster_would_refuse_is_refused(cluster, token, inputs, reason) -> None:
    failures = cluster.failures(token, inputs)
    assert any(reason in failure for failure in failures), failures


def test_client_side_apply_is_refused(journal) -> None:
    double = Provider(KubernetesDouble(), {"kubeconfig": "{}", "enableServerSideApply": "false"})
    assert any("server-side apply only" in failure for failure in double.failures(MAP, CONFIG))


def test_two_clusters_have_objects_and_kinds_of_their_own(journal) -> None:
    one, other = (Provider(KubernetesDouble(), {"kubeconfig": kubeconfig(name)}) for name in ("one", "other"))
    for double, name in ((one, "of-one"), (other, "of-other")):
        double.create(MAP, CONFIG, name)
    with pytest.raises(Refused, match="AlreadyExists"):
        one.create(MAP, CONFIG, "again")
    one.create(RELEASE, one.check(RELEASE, KEDA), "keda")
    one.create(SCALED, SCALING, "scaled")
    with pytest.raises(Refused, match="NotFound"):
        other.create(SCALED, SCALING, "scaled-there")


def kubeconfig(name: str) -> str:
    """As the program writes it, of one cluster."""
    return json.dumps({"clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}]})


def test_a_type_of_no_group_is_refused(cluster) -> None:
    with pytest.raises(Refused, match="pulumi_kubernetes has no resource kubernetes:apps/v1:Deploymint"):
        cluster.failures("kubernetes:apps/v1:Deploymint", SERVED)


def test_a_config_map_changes_in_place_where_the_provider_is_told_so(cluster) -> None:
    changed = {**CONFIG, "data": {"a": "2"}}
    found = cluster.diff(MAP, CONFIG, changed)
    assert list(found.changed) == ["data.a"]
    assert found.replaces == ()


def test_a_config_map_is_replaced_where_it_is_not(journal) -> None:
    double = Provider(KubernetesDouble(), {"kubeconfig": "{}"})
    assert double.diff(MAP, CONFIG, {**CONFIG, "data": {"a": "2"}}).replaces == ("data",)


def test_another_name_or_namespace_is_another_object(cluster) -> None:
    renamed = {**CONFIG, "metadata": {"name": "other", "namespace": "fleet"}}
    assert cluster.diff(MAP, CONFIG, renamed).replaces == ("metadata",)


def test_a_deployment_rolls_in_place_but_keeps_its_selector(cluster) -> None:
    assert cluster.diff(DEPLOYMENT, SERVED, {**SERVED, "spec": {**SERVED["spec"], "replicas": 2}}).replaces == ()
    other = {**SERVED, "spec": {**SERVED["spec"], "selector": {"matchLabels": {"app": "new"}}}}
    assert cluster.diff(DEPLOYMENT, SERVED, other).replaces == ("spec",)


def test_a_custom_resource_needs_the_chart_that_brings_its_kind(cluster) -> None:
    with pytest.raises(Refused, match=r"group keda\.sh, which does not exist"):
        cluster.create(SCALED, SCALING)
    cluster.create(RELEASE, cluster.check(RELEASE, KEDA), "keda")
    id_, _ = cluster.create(SCALED, SCALING)
    assert id_ == "fleet/chat"


def test_the_state_of_a_release_is_unknown_at_preview(cluster) -> None:
    _, before = cluster.create(RELEASE, {**KEDA, "name": "keda"}, preview=True)
    assert before["status"] is wire.UNKNOWN
    _, after = cluster.create(RELEASE, {**KEDA, "name": "keda"})
    assert after["status"]["status"] == "deployed"


def test_an_object_gets_what_the_server_fills_in(cluster) -> None:
    id_, outputs = cluster.create(MAP, CONFIG)
    assert id_ == "fleet/chat"
    assert outputs["metadata"]["uid"]
    changed = cluster.update(MAP, id_, outputs, CONFIG, {**CONFIG, "data": {"b": "2"}})
    assert changed["data"] == {"b": "2"}
    assert changed["metadata"]["uid"] == outputs["metadata"]["uid"]


def test_an_object_without_a_name_gets_one_and_keeps_it(cluster) -> None:
    unnamed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "fleet"}}
    first = cluster.check(MAP, unnamed)
    assert first["metadata"]["name"].startswith("x-")
    assert cluster.check(MAP, unnamed, first) == first


def test_two_objects_of_one_name_are_refused(cluster) -> None:
    cluster.create(MAP, CONFIG)
    with pytest.raises(Refused, match="AlreadyExists"):
        cluster.create(MAP, CONFIG, "again")
