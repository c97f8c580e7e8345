"""Faults of the network, of data at rest, of Lustre and of identity."""

import json

from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.edited import Program
from tests.policies.fault import Fault, add, all_of, chart, drop, put, remove
from tests.policies.faults_of_nodes import CLUSTER

FILE_SYSTEM, LINK = "LustreFileSystem lustre-file-system", "DataRepositoryAssociation lustre-link"
REPOSITORY = "Repository *"
BUCKET = "Bucket weights-bucket"
READ_POLICY = "Policy weights-read"
NODE_ROLE = "Role node-role"
POD_ROLE = "Role node-add-ons-vpc-cni-role"
CNI = "Addon node-add-ons-vpc-cni"
_EVERYBODY = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}
_GITHUB = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"


def rewritten(name: str, prop: str, edit):
    """Change the statements of a document; one that names what is not known yet stays unknown as a whole."""

    def change(program: Program) -> None:
        stated = program.get(name, prop)
        if stated != UNKNOWN:
            document = json.loads(stated)
            edit(document["Statement"])
            stated = json.dumps(document)
        program.put(name, prop, stated)

    return change


def statement(name: str, prop: str, **fields):
    """Write some fields into the first statement of a document."""
    return rewritten(name, prop, lambda statements: statements[0].update(fields))


def service(kind: str, **annotations: str):
    """A Service before the control plane."""
    labels = {"app.kubernetes.io/component": "control-plane"}
    head = {"name": "control-plane", "namespace": "enginehouse", "labels": labels, "annotations": annotations}
    spec = {"type": kind, "selector": labels, "ports": [{"port": 443}]}
    return add("kubernetes:core/v1:Service", "control-plane", {"metadata": head, "spec": spec})


INGRESS = {
    "metadata": {"name": "admin", "annotations": {"alb.ingress.kubernetes.io/scheme": "internet-facing"}},
    "spec": {
        "rules": [{"http": {"paths": [{"backend": {"service": {"name": "control-plane", "port": {"number": 443}}}}]}}]
    },
}
NETWORK = (
    Fault("subnet of 59 addresses", "subnet-too-small",
          put("Subnet network-private-eu-central-1a", "cidrBlock", "10.0.0.0/26")),


    Fault("nodes with public addresses", "nodes-in-public-subnet",
          put("Subnet network-private-eu-central-1b", "mapPublicIpOnLaunch", True)),
    Fault("public endpoint for everybody", "cluster-endpoint-open",
          put(CLUSTER, "vpcConfig.endpointPublicAccess", True)),
    Fault("public endpoint for half the internet", "cluster-endpoint-open",
          all_of(put(CLUSTER, "vpcConfig.endpointPublicAccess", True),
                 put(CLUSTER, "vpcConfig.publicAccessCidrs", ["0.0.0.0/1"]))),
    Fault("endpoint without private access", "cluster-endpoint-not-private",
          put(CLUSTER, "vpcConfig.endpointPrivateAccess", False)),
    Fault("security group open to the world", "security-group-open",
          put("SecurityGroupIngressRule network-endpoints-https", "cidrIpv4", "0.0.0.0/0")),
    Fault("EFA group without egress to itself", "efa-security-group-self",
          remove("SecurityGroupEgressRule h100-block-efa-out")),
    Fault("EFA group with egress to the world instead", "efa-security-group-self",
          all_of(drop("SecurityGroupEgressRule h100-block-efa-out", "referencedSecurityGroupId"),
                 put("SecurityGroupEgressRule h100-block-efa-out", "cidrIpv4", "0.0.0.0/0"))),
)  # fmt: skip
LUSTRE = (
    Fault("deployment type that there is not", "lustre-deployment", put(FILE_SYSTEM, "deploymentType", "PERSISTENT_3")),
    Fault("1300 GiB", "lustre-capacity", put(FILE_SYSTEM, "storageCapacity", 1300)),
    Fault("PERSISTENT_2 without throughput", "lustre-throughput", drop(FILE_SYSTEM, "perUnitStorageThroughput")),
    Fault("PERSISTENT_1 with 1000", "lustre-throughput",
          all_of(put(FILE_SYSTEM, "deploymentType", "PERSISTENT_1"), drop(FILE_SYSTEM, "metadataConfiguration"),
                 put(FILE_SYSTEM, "perUnitStorageThroughput", 1000)), "b300"),
    Fault("333 MB/s", "lustre-throughput", put(FILE_SYSTEM, "perUnitStorageThroughput", 333)),
    Fault("EFA at half its capacity", "lustre-efa-capacity", put(FILE_SYSTEM, "storageCapacity", 4800)),
    Fault("EFA without metadata configuration", "lustre-efa", drop(FILE_SYSTEM, "metadataConfiguration")),
    Fault("5000 metadata IOPS", "lustre-metadata", put(FILE_SYSTEM, "metadataConfiguration.iops", 5000)),
    Fault("Lustre 2.12 with metadata configuration", "lustre-version",
          put(FILE_SYSTEM, "fileSystemTypeVersion", "2.12")),
    Fault("import path on PERSISTENT_2", "lustre-import-path", put(FILE_SYSTEM, "importPath", "s3://weights")),
    Fault("folder without a slash", "lustre-link-path", put(LINK, "fileSystemPath", "weights")),
    Fault("a bucket's bare name", "lustre-link-bucket", put(LINK, "dataRepositoryPath", "weights")),
    Fault("an event that there is not", "lustre-link-events",
          put(LINK, "s3.autoImportPolicy.events", ["NEW", "MOVED"])),
    Fault("deletions reach the file system", "lustre-weights-read-only",
          put(LINK, "s3.autoImportPolicy.events", ["NEW", "CHANGED", "DELETED"])),
    Fault("the file system writes to the bucket", "lustre-weights-read-only",
          put(LINK, "s3.autoExportPolicy", {"events": ["NEW"]})),
    Fault("tags copied to backups", "lustre-link-support", put(FILE_SYSTEM, "copyTagsToBackups", True)),
    Fault("988 shut among the servers", "lustre-ports",
          remove("SecurityGroupIngressRule lustre-access-self-988-in"), "b300"),
    Fault("1021-1023 in place of 1018-1023", "lustre-ports",
          put("SecurityGroupIngressRule lustre-access-self-1018-1023-in", "fromPort", 1021), "b300"),
    Fault("EFA file system without egress to itself", "lustre-efa-traffic",
          remove("SecurityGroupEgressRule lustre-access-self-all-out")),
)  # fmt: skip
DRIVER = (
    Fault("no driver for the file system", "lustre-driver-missing", remove("Addon add-ons-aws-fsx-csi-driver")),
    Fault("nodes that don't wait for the driver", "lustre-startup-taint", drop("NodeGroup l4-nodes", "taints.1")),
)  # fmt: skip
DATA = (
    Fault("a volume in the clear", "volume-unencrypted",
          put("LaunchTemplate l4-template", "blockDeviceMappings.0.ebs.encrypted", "false")),
    Fault("a repository without a key", "data-without-own-key", drop(REPOSITORY, "encryptionConfigurations")),
    Fault("a file system without a key", "data-without-own-key", drop(FILE_SYSTEM, "kmsKeyId")),
    Fault("a bucket without a key", "data-without-own-key",
          remove("BucketServerSideEncryptionConfiguration weights-encrypted")),
    Fault("secrets of the cluster in the clear", "cluster-secrets-unencrypted", drop(CLUSTER, "encryptionConfig")),
    Fault("public ACLs not blocked", "bucket-public",
          put("BucketPublicAccessBlock weights-private", "blockPublicAcls", False)),
    Fault("everybody reads weights", "bucket-public",
          rewritten("BucketPolicy weights-encrypted-transport", "policy", lambda found: found.append(_EVERYBODY))),
    Fault("versions suspended", "bucket-unversioned",
          put("BucketVersioning weights-versions", "versioningConfiguration.status", "Suspended")),
    Fault("a key that never rotates", "key-rotation", put("Key logs-key", "enableKeyRotation", False)),
    Fault("tags that can be moved", "repository-mutable-tags", put(REPOSITORY, "imageTagMutability", "MUTABLE")),
    Fault("images not scanned", "repository-unscanned",
          put(REPOSITORY, "imageScanningConfiguration.scanOnPush", False)),
)  # fmt: skip
IDENTITY = (
    Fault("every action of a service", "iam-action-wildcard", statement(READ_POLICY, "policy", Action="s3:*")),
    Fault("everything but", "iam-action-wildcard",
          statement(READ_POLICY, "policy", Action=[], NotAction=["iam:*"], Resource="arn:aws:s3:::weights")),
    Fault("every resource", "iam-resource-wildcard", statement(READ_POLICY, "policy", Resource="*")),
    Fault("administrator nodes", "iam-admin-policy",
          put("RolePolicyAttachment node-AmazonEKSWorkerNodePolicy", "policyArn",
              "arn:aws:iam::aws:policy/AdministratorAccess")),
    Fault("everybody takes the node role", "iam-trust-everyone",
          statement(NODE_ROLE, "assumeRolePolicy", Principal={"AWS": "*"})),
    Fault("every repository of GitHub takes the role", "iam-trust-everyone",
          statement(NODE_ROLE, "assumeRolePolicy", Principal={"Federated": _GITHUB},
                    Action="sts:AssumeRoleWithWebIdentity")),
    Fault("everybody uses the key", "iam-trust-everyone",
          statement("KeyPolicy logs-policy", "policy", Principal="*")),
    Fault("pod identity without session tags", "pod-identity-trust",
          statement(POD_ROLE, "assumeRolePolicy", Action=["sts:AssumeRole"])),
    Fault("cluster role by name", "role-arn", put(CLUSTER, "roleArn", "enginehouse-prod-cluster-role")),
    Fault("creator is administrator", "cluster-creator-admin",
          put(CLUSTER, "accessConfig.bootstrapClusterCreatorAdminPermissions", True)),
    Fault("aws-auth ConfigMap", "cluster-creator-admin",
          put(CLUSTER, "accessConfig.authenticationMode", "API_AND_CONFIG_MAP")),
    Fault("admin API behind a public load balancer", "admin-api-public", service("LoadBalancer")),
    Fault("admin API on every node", "admin-api-public", service("NodePort")),
    Fault("admin API behind a public ingress", "admin-api-public",
          add("kubernetes:networking.k8s.io/v1:Ingress", "admin", INGRESS)),
)  # fmt: skip
LIMITS = (
    Fault("a provider without the owner's tag", "tags-present",
          put("aws aws", "defaultTags", json.dumps({"tags": {"environment": "prod"}}))),
)  # fmt: skip
FAULTS = (*NETWORK, *LUSTRE, *DRIVER, *DATA, *IDENTITY, *LIMITS)
CLEAN = (
    service("ClusterIP"),
    service("LoadBalancer", **{"service.beta.kubernetes.io/aws-load-balancer-scheme": "internal"}),
    chart("karpenter"),
    chart("gpu-operator", {"driver": {"enabled": False}, "toolkit": {"enabled": False}}),
)
"""Changes that no policy minds."""
