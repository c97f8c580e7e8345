"""Who reaches a deployment's pods, and whom they reach."""

from fleet.cloud.labels import DEPLOYMENT_LABEL
from fleet.manifest import PinnedManifest
from workloads.container import PORT, EngineFacts
from workloads.ground import NodeLocalWeights, RenderGround
from workloads.names import KubernetesObject, metadata, selector

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
METADATA_ADDRESS = "169.254.169.254/32"
"""Of the instance's own credentials: no pod asks there."""
IDENTITY_ADDRESS = "169.254.170.23/32"
"""Of the EKS Pod Identity agent, over HTTP: there pods that read the bucket get their credentials."""


def service(pinned: PinnedManifest, ground: RenderGround) -> KubernetesObject:
    """One name for all replicas; gateways choose among the pods themselves."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(pinned, ground.namespace),
        "spec": {
            "type": "ClusterIP",
            "selector": selector(pinned.name),
            "ports": [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def network_policy(pinned: PinnedManifest, engine: EngineFacts, ground: RenderGround) -> KubernetesObject:
    """Requests from the gateway and scrapes come in; names are asked for, and weights only where no volume has them.

    What engines say of the prompts that they hold is the tenants' data: the gateways' own pods hear it and no others.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(pinned, ground.namespace),
        "spec": {
            "podSelector": {"matchLabels": {DEPLOYMENT_LABEL: pinned.name}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [_namespace(ground.gateway_namespace)], "ports": [_tcp(PORT)]},
                {"from": [_namespace(ground.metrics_namespace)], "ports": [_tcp(engine.metrics_port)]},
                *_kv_ingress(engine, ground),
            ],
            "egress": _egress(ground),
        },
    }


def _kv_ingress(engine: EngineFacts, ground: RenderGround) -> list[KubernetesObject]:
    if not engine.kv_ports:
        return []
    gateways = _namespace(ground.gateway_namespace) | {"podSelector": {"matchLabels": dict(ground.gateway_labels)}}
    return [{"from": [gateways], "ports": [_tcp(port) for port in engine.kv_ports]}]


def _egress(ground: RenderGround) -> list[KubernetesObject]:
    names: KubernetesObject = {
        "to": [_namespace("kube-system")],
        "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")],
    }
    if not isinstance(ground.weights, NodeLocalWeights):
        return [names]
    anywhere = {"ipBlock": {"cidr": "0.0.0.0/0", "except": [METADATA_ADDRESS]}}  # S3 has no addresses of its own
    agent = {"ipBlock": {"cidr": IDENTITY_ADDRESS}}
    return [names, {"to": [anywhere], "ports": [_tcp(443)]}, {"to": [agent], "ports": [_tcp(80)]}]


def _namespace(name: str) -> KubernetesObject:
    return {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: name}}}


def _tcp(port: int) -> KubernetesObject:
    return {"protocol": "TCP", "port": port}
