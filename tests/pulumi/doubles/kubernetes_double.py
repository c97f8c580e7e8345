"""The provider for Kubernetes as the engine sees it: server-side apply into a cluster that is a list of names.

Which cluster it is says the address in the kubeconfig, so stacks of one state have a cluster each.
"""

import json
from collections.abc import Iterator

from pulumi.runtime.proto import provider_pb2_grpc

from tests.pulumi.doubles import wire
from tests.pulumi.doubles.provider_double import Properties, ProviderDouble, hex_of
from tests.pulumi.doubles.sdk_types import NotInSdk, ResourceType, resource_type
from tests.pulumi.doubles.serving import serve
from tests.pulumi.doubles.value_check import Failure

RELEASE = "kubernetes:helm.sh/v3:Release"
DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
# API groups that a chart brings with it; a custom resource of another group has no kind yet.
CHART_GROUPS = {
    "keda": ["keda.sh"],
    "kueue": ["kueue.x-k8s.io"],
    "lws": ["leaderworkerset.x-k8s.io"],
    "karpenter": ["karpenter.sh", "karpenter.k8s.aws"],
    "gpu-operator": ["nvidia.com", "nfd.k8s-sigs.io"],
}


class KubernetesDouble(ProviderDouble):
    """A cluster."""

    package = "pulumi_kubernetes"

    def identity_settings(self) -> set[str]:
        return {"kubeconfig", "context", "cluster", "clusterIdentifier", "namespace"}

    def type_of(self, token: str) -> ResourceType:
        try:
            return resource_type(self.package, token)
        except NotInSdk:
            if not is_custom(token):
                raise
            return _custom()

    def with_names(self, token: str, name: str, news: Properties, olds: Properties, seed: bytes) -> Properties:
        made = f"{name}-{hex_of(seed.hex(), name, length=8)}"
        if token == RELEASE:
            return {**news, "name": news.get("name") or olds.get("name") or made}
        metadata = news.get("metadata", {})
        if metadata is wire.UNKNOWN or metadata.get("name") or metadata.get("generateName"):
            return news
        old = olds.get("metadata", {}).get("name")
        return {**news, "metadata": {**metadata, "name": old or made}}

    def further_failures(self, token: str, inputs: Properties) -> Iterator[Failure]:
        if self.settings.get("enableServerSideApply") is False:
            yield "metadata", "can't be applied: this double knows server-side apply only (enableServerSideApply)"
        if token == RELEASE and "repositoryOpts" not in inputs and "://" not in str(inputs.get("chart")):
            yield "chart", f"{inputs.get('chart')!r} has no repository: neither repositoryOpts.repo nor a chart URL"
        if is_custom(token) and inputs.get("apiVersion") != token.split(":")[1]:
            yield "apiVersion", f"is {inputs.get('apiVersion')!r} in a resource of type {token}"

    def computed(self, token: str, name: str, inputs: Properties, number: int | None) -> Properties:
        if token == RELEASE:
            status = {"name": inputs["name"], "namespace": inputs.get("namespace", "default"), "status": "deployed"}
            return {"status": wire.UNKNOWN if number is None else status}
        if number is None:
            return {}
        filled = {"namespace": "default", "uid": hex_of(token, name, number, length=32), "resourceVersion": "1"}
        if not is_namespaced(inputs):
            del filled["namespace"]
        return {"metadata": {**filled, **inputs["metadata"]}}

    def touched(self, token: str, inputs: Properties, outputs: Properties, number: int | None) -> Properties:
        if token == RELEASE or number is None:
            return outputs
        return {**outputs, "metadata": {**outputs["metadata"], "resourceVersion": str(number + 1)}}

    def id_of(self, token: str, urn: str, inputs: Properties, number: int) -> str:
        if token == RELEASE:
            return f"{inputs.get('namespace', 'default')}/{inputs['name']}"
        metadata = inputs["metadata"]
        place = f"{metadata.get('namespace', 'default')}/" if is_namespaced(inputs) else ""
        return f"{place}{metadata['name']}"

    def unique_name(self, token: str, inputs: Properties) -> str:
        return f"{self._cluster()} {self.id_of(token, '', inputs, 0)}".strip() if inputs else ""

    def deletes_first(self, token: str, inputs: Properties) -> bool:
        """With a name of its own an object can't stand beside its successor."""
        return bool(inputs.get("metadata", {}).get("name"))

    def needs(self, token: str, inputs: Properties) -> Iterator[str]:
        if is_custom(token):
            yield self._group(token.split(":")[1].split("/")[0])

    def offers(self, token: str, inputs: Properties) -> list[str]:
        if token == RELEASE:
            chart = str(inputs.get("chart", "")).rsplit("/", 1)[-1]
            return [self._group(group) for group in CHART_GROUPS.get(chart, ())]
        if token == DEFINITION and inputs:
            return [self._group(inputs["spec"]["group"])]
        return []

    def _group(self, name: str) -> str:
        """An API group of this cluster."""
        return " ".join(("group", name, self._cluster())).strip()

    def _cluster(self) -> str:
        """The address of the cluster."""
        clusters = json.loads(self.settings.get("kubeconfig") or "{}").get("clusters") or [{}]
        return str(clusters[0].get("cluster", {}).get("server", ""))


def is_custom(token: str) -> bool:
    """Whether a type is none of the SDK's, but one that a cluster may learn."""
    if "." not in token.split(":")[1].split("/")[0]:
        return False
    try:
        resource_type("pulumi_kubernetes", token)
    except NotInSdk:
        return True
    return False


def _custom() -> ResourceType:
    """An object of which only the head is known."""
    known = resource_type("pulumi_kubernetes", "kubernetes:core/v1:ConfigMap")
    head = {"apiVersion": ("string", True), "kind": ("string", True), "spec": ("any", False)}
    return ResourceType({**head, "metadata": (known.inputs["metadata"][0], True)}, {}, known.objects)


CLUSTER_KINDS = {
    "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "PersistentVolume", "PriorityClass",
    "RuntimeClass", "StorageClass", "ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass", "DeviceClass",
    "CSIDriver",
}  # fmt: skip


def is_namespaced(inputs: Properties) -> bool:
    """Whether an object stands in a namespace."""
    return inputs.get("kind") not in CLUSTER_KINDS


def main() -> None:
    serve(lambda server: provider_pb2_grpc.add_ResourceProviderServicer_to_server(KubernetesDouble(), server))
