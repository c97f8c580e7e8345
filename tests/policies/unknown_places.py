"""For each policy the property that decides: while it is unknown, the policy must say so and must not pass."""

from collections.abc import Mapping

from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.fault import Change, add, all_of, chart, put
from tests.policies.faults_of_ground import (
    CLUSTER,
    FILE_SYSTEM,
    LINK,
    NODE_ROLE,
    POD_ROLE,
    READ_POLICY,
    REPOSITORY,
    service,
)
from tests.policies.faults_of_nodes import H100, H100_TEMPLATE, L4, L4_TEMPLATE, PLUGIN, placed
from tests.policies.faults_of_storage import UNKNOWN_TYPE_OF_RESERVATION
from tests.policies.faults_of_workloads import DEPLOYMENT, MAP, SCALER, alone, deployed, scaled, served

SEEN_AT_UPDATE = {
    "role-arn",
    "node-role-arn",
    "iam-trust-everyone",
    "iam-document-unreadable",
    "iam-action-wildcard",
    "iam-resource-wildcard",
    "cluster-security-group-missing",
    "efa-security-group-missing",
    "lustre-link-bucket",
    "bucket-public",
}
"""What a preview of the program can't judge everywhere: ids, ARNs, and the documents that name them."""


def at(name: str, path: str) -> Change:
    """The value at a place is not known."""
    return put(name, path, UNKNOWN)


def keyless(name: str, path: str, prop: str) -> Change:
    """The value at a place is not known, and no resource of the stack gives it."""
    return put(name, path, UNKNOWN, of={prop: []})


def of_pod(path: str) -> Change:
    """A value of a Deployment is not known."""
    return all_of(deployed, at(DEPLOYMENT, path))


def of_scaler(path: str) -> Change:
    """A value of a ScaledObject is not known."""
    return all_of(scaled, at(SCALER, path))


def of_map(path: str) -> Change:
    """A value of a manifest's ConfigMap is not known."""
    return all_of(served, at(MAP, path))


_ENGINE = "spec.template.spec.containers.0"
_EFA_OUT = "SecurityGroupEgressRule h100-block-efa-out"
_HTTPS = "SecurityGroupIngressRule network-endpoints-https"
_LUSTRE_IN = "SecurityGroupIngressRule lustre-access-self-all-in"
_SUBNET = "Subnet network-private-eu-central-1a"
_CRD = {"metadata": {"name": "x"}, "spec": {"group": UNKNOWN, "names": {"kind": "X"}}}
_CRD_KIND = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
_RESERVATION = "capacityReservationSpecification.capacityReservationTarget.capacityReservationId"

NODES: Mapping[str, Change] = {
    "efa-interface-count": at(H100_TEMPLATE, "networkInterfaces"),
    "efa-on-instance-without": at(H100_TEMPLATE, "networkInterfaces.3.interfaceType"),
    "interface-index": at(H100_TEMPLATE, "networkInterfaces.3.networkCardIndex"),
    "interface-primary": at(H100_TEMPLATE, "networkInterfaces.0.deviceIndex"),
    "efa-only-public-ip": at(H100_TEMPLATE, "networkInterfaces.1.associatePublicIpAddress"),
    "security-groups-twice": at(H100_TEMPLATE, "vpcSecurityGroupIds"),
    "cluster-security-group-missing": at(H100_TEMPLATE, "networkInterfaces.0.securityGroups"),
    "efa-security-group-missing": at(H100_TEMPLATE, "networkInterfaces.5.securityGroups.0"),
    "metadata-tokens": at(L4_TEMPLATE, "metadataOptions"),
    "metadata-hop-limit": at(L4_TEMPLATE, "metadataOptions.httpPutResponseHopLimit"),
    "disk-size-with-template": at(L4, "diskSize"),
    "remote-access-with-template": at(L4, "remoteAccess"),
    "instance-type-places": keyless(L4, "launchTemplate.id", "launchTemplate"),
    "version-with-image": at(L4_TEMPLATE, "imageId"),
    "template-forbidden-field": at(L4_TEMPLATE, "iamInstanceProfile"),
    "scaling-order": at(L4, "scalingConfig.maxSize"),
    "taint-effect": at(L4, "taints.0.effect"),
    "gpu-taint": at(L4, "taints"),
    "node-label": at(L4, "labels"),
    "node-role-arn": at(L4, "nodeRoleArn"),
    "update-strategy": at(H100, "updateConfig"),
    "node-repair": at(L4, "nodeRepairConfig.enabled"),
    "two-autoscalers": at(PLUGIN, "chart"),
    "instance-type-unknown": at(L4_TEMPLATE, "instanceType"),
    "template-version-unpinned": keyless(L4, "launchTemplate.version", "launchTemplate"),
}
IMAGES: Mapping[str, Change] = {
    "ami-type": at(L4, "amiType"),
    "ami-without-driver": at(L4, "amiType"),
    "ami-al2-ended": at(L4, "version"),
    "ami-release-unpinned": at(L4, "releaseVersion"),
    "gpu-operator-driver": all_of(chart("gpu-operator"), at("Release gpu-operator", "values.driver")),
    "device-plugin-twice": at(PLUGIN, "values"),
    "cuda-driver": of_map("data"),
    "image-preload": at(L4_TEMPLATE, "blockDeviceMappings.0.ebs.snapshotId"),
    "mig-without-hardware": at(L4, "labels|nvidia.com/mig.config"),
    "mig-profile": at(L4_TEMPLATE, "instanceType"),
    "mig-on-bottlerocket": at(L4, "labels"),
    "gpu-shares": at(PLUGIN, "values.config.map.exclusive"),
    "dynamic-slices-allocation": all_of(
        chart("dra-driver-nvidia-gpu", {"featureGates": {}}),
        at("Release dra-driver-nvidia-gpu", "values.featureGates.DynamicMIG"),
    ),
}
CAPACITY: Mapping[str, Change] = {
    "capacity-block-target": at(H100_TEMPLATE, _RESERVATION),
    "capacity-block-market": at(H100_TEMPLATE, "instanceMarketOptions.marketType"),
    "capacity-block-instance-type": at(H100_TEMPLATE, "instanceType"),
    "reservation-zone": at(_SUBNET, "availabilityZone"),
    "reservation-with-spot": at(L4, "capacityType"),
    "reservation-instance-type": UNKNOWN_TYPE_OF_RESERVATION,
    "purchase-not-sold": at(H100, "capacityType"),
    "placement-group-zones": all_of(placed(L4_TEMPLATE), at(_SUBNET, "availabilityZone")),
    "placement-group-with-reservation": all_of(placed(L4_TEMPLATE), at(L4_TEMPLATE, _RESERVATION)),
    "placement-group-strategy": all_of(placed(L4_TEMPLATE), at("PlacementGroup together", "strategy")),
    "efa-zones": at(_SUBNET, "availabilityZone"),
}
NETWORK: Mapping[str, Change] = {
    "subnet-too-small": at(_SUBNET, "cidrBlock"),
    "nodes-in-public-subnet": at(_SUBNET, "mapPublicIpOnLaunch"),
    "cluster-endpoint-open": all_of(
        put(CLUSTER, "vpcConfig.endpointPublicAccess", True), at(CLUSTER, "vpcConfig.publicAccessCidrs")
    ),
    "cluster-endpoint-not-private": at(CLUSTER, "vpcConfig.endpointPrivateAccess"),
    "security-group-open": at(_HTTPS, "cidrIpv4"),
    "efa-security-group-self": at(_EFA_OUT, "ipProtocol"),
}
DATA: Mapping[str, Change] = {
    "lustre-deployment": at(FILE_SYSTEM, "deploymentType"),
    "lustre-capacity": at(FILE_SYSTEM, "storageCapacity"),
    "lustre-throughput": at(FILE_SYSTEM, "perUnitStorageThroughput"),
    "lustre-efa-capacity": at(FILE_SYSTEM, "efaEnabled"),
    "lustre-efa": at(FILE_SYSTEM, "metadataConfiguration"),
    "lustre-metadata": at(FILE_SYSTEM, "metadataConfiguration.iops"),
    "lustre-version": at(FILE_SYSTEM, "fileSystemTypeVersion"),
    "lustre-import-path": at(FILE_SYSTEM, "deploymentType"),
    "lustre-link-path": at(LINK, "fileSystemPath"),
    "lustre-link-bucket": at(LINK, "dataRepositoryPath"),
    "lustre-link-events": at(LINK, "s3.autoImportPolicy.events"),
    "lustre-weights-read-only": at(LINK, "s3"),
    "lustre-link-support": at(FILE_SYSTEM, "copyTagsToBackups"),
    "lustre-ports": at(_LUSTRE_IN, "ipProtocol"),
    "lustre-efa-traffic": keyless(FILE_SYSTEM, "securityGroupIds", "securityGroupIds"),
    "lustre-driver-missing": at("Addon add-ons-aws-fsx-csi-driver", "addonName"),
    "lustre-startup-taint": at(L4, "taints.1.key"),
    "volume-unencrypted": at(L4_TEMPLATE, "blockDeviceMappings.0.ebs.encrypted"),
    "data-without-own-key": keyless(FILE_SYSTEM, "kmsKeyId", "kmsKeyId"),
    "cluster-secrets-unencrypted": at(CLUSTER, "encryptionConfig"),
    "bucket-public": at("BucketPublicAccessBlock weights-private", "blockPublicAcls"),
    "bucket-unversioned": at("BucketVersioning weights-versions", "versioningConfiguration"),
    "key-rotation": at("Key logs-key", "enableKeyRotation"),
    "repository-mutable-tags": at(REPOSITORY, "imageTagMutability"),
    "repository-unscanned": at(REPOSITORY, "imageScanningConfiguration"),
}
IDENTITY: Mapping[str, Change] = {
    "iam-document-unreadable": at(READ_POLICY, "policy"),
    "iam-action-wildcard": at(READ_POLICY, "policy"),
    "iam-resource-wildcard": at(READ_POLICY, "policy"),
    "iam-admin-policy": at("RolePolicyAttachment node-AmazonEKSWorkerNodePolicy", "policyArn"),
    "iam-trust-everyone": at(NODE_ROLE, "assumeRolePolicy"),
    "pod-identity-trust": at(POD_ROLE, "assumeRolePolicy"),
    "role-arn": at(CLUSTER, "roleArn"),
    "cluster-creator-admin": at(CLUSTER, "accessConfig"),
    "admin-api-public": all_of(service("ClusterIP"), at("Service control-plane", "spec.type")),
}
WORKLOADS: Mapping[str, Change] = {
    "manifest-unreadable": of_map("data"),
    "manifest-refused": of_map("data|manifest.yaml"),
    "manifest-advised": of_map("data|manifest.yaml"),
    "image-digest": of_pod(f"{_ENGINE}.image"),
    "efa-single-node": of_pod(f"{_ENGINE}.resources"),
    "mig-on-gpu-without": of_pod(f"{_ENGINE}.resources.limits"),
    "gpu-isolation-nodes": all_of(alone, at(PLUGIN, "values.config.map")),
    "gpu-isolation": of_pod("metadata.labels"),
    "pod-probes": of_pod(f"{_ENGINE}.startupProbe"),
    "pod-limits": of_pod(f"{_ENGINE}.resources.limits.memory"),
    "pod-privileged": of_pod(f"{_ENGINE}.securityContext"),
    "pod-root": of_pod("spec.template.spec.securityContext"),
    "pod-seccomp": of_pod("spec.template.spec.securityContext.seccompProfile"),
    "pod-host-access": of_pod("spec.template.spec.hostNetwork"),
    "pod-writable-root": of_pod(f"{_ENGINE}.securityContext.readOnlyRootFilesystem"),
    "pod-plain-secret": of_pod(f"{_ENGINE}.env"),
}
SCALING: Mapping[str, Change] = {
    "keda-metric-type": of_scaler("spec.triggers.0.metricType"),
    "keda-one-series": of_scaler("spec.triggers.0.metadata.query"),
    "keda-null-values": of_scaler("spec.triggers.0.metadata.ignoreNullValues"),
    "keda-metric-known": of_scaler("spec.triggers.0.metadata.query"),
    "keda-metric-name": of_scaler("spec.triggers.0.metadata.metricName"),
    "keda-fallback": of_scaler("spec.fallback"),
    "keda-wake-up": of_scaler("spec.minReplicaCount"),
    "keda-name-length": of_scaler("metadata.name"),
    "keda-range": of_scaler("spec.maxReplicaCount"),
    "replicas-one-owner": all_of(scaled, of_pod("spec.replicas")),
    "crd-apart": all_of(
        add("kubernetes:helm.sh/v4:Chart", "keda", {"chart": "keda"}),
        add(_CRD_KIND, "x", _CRD, parent="Chart keda"),
    ),
}
LIMITS: Mapping[str, Change] = {
    "region-allowed": at("aws aws", "region"),
    "instance-type-allowed": at(L4_TEMPLATE, "instanceType"),
    "image-registry-allowed": of_pod(f"{_ENGINE}.image"),
    "cost-limit": at(L4, "scalingConfig.maxSize"),
    "tags-present": at("Vpc network-vpc", "tags"),
}
PLACES = {**NODES, **IMAGES, **CAPACITY, **NETWORK, **DATA, **IDENTITY, **WORKLOADS, **SCALING, **LIMITS}
