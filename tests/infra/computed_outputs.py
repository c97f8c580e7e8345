"""What the cloud would answer for a new resource: ids, ARNs and the other outputs that a program reads.

One table for all tests. Everything follows from the resource's type and name, so that two runs agree.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

REGION = "eu-central-1"
ACCOUNT = "111122223333"
"""The account of the cloud's own examples."""
Inputs = Mapping[str, Any]

ID_PREFIXES: Mapping[str, str] = {
    "Vpc": "vpc", "Subnet": "subnet", "InternetGateway": "igw", "NatGateway": "nat", "Eip": "eipalloc",
    "RouteTable": "rtb", "Route": "r-rtb", "RouteTableAssociation": "rtbassoc", "SecurityGroup": "sg",
    "SecurityGroupIngressRule": "sgr", "SecurityGroupEgressRule": "sgr", "SecurityGroupRule": "sgrule",
    "VpcEndpoint": "vpce", "FlowLog": "fl", "LaunchTemplate": "lt", "FileSystem": "fs", "LustreFileSystem": "fs",
    "DataRepositoryAssociation": "dra", "PodIdentityAssociation": "a", "DefaultSecurityGroup": "sg",
    "VpcIpv4CidrBlockAssociation": "vpc-cidr-assoc", "CapacityReservation": "cr",
}  # fmt: skip
"""Last part of the type -> what its id begins with."""
ARN_PATHS: Mapping[str, str] = {
    "aws:iam/role:Role": "iam::{account}:role/{name}",
    "aws:iam/policy:Policy": "iam::{account}:policy/{name}",
    "aws:iam/instanceProfile:InstanceProfile": "iam::{account}:instance-profile/{name}",
    "aws:s3/bucket:Bucket": "s3:::{name}",
    "aws:s3/bucketV2:BucketV2": "s3:::{name}",
    "aws:kms/key:Key": "kms:{region}:{account}:key/{id}",
    "aws:kms/alias:Alias": "kms:{region}:{account}:{name}",
    "aws:eks/cluster:Cluster": "eks:{region}:{account}:cluster/{name}",
    "aws:cloudwatch/logGroup:LogGroup": "logs:{region}:{account}:log-group:{name}",
    "aws:ecr/repository:Repository": "ecr:{region}:{account}:repository/{name}",
    "aws:sns/topic:Topic": "sns:{region}:{account}:{name}",
    "aws:sqs/queue:Queue": "sqs:{region}:{account}:{name}",
}
OWN_NAME = frozenset(
    {"Role", "Policy", "Bucket", "BucketV2", "Cluster", "LogGroup", "Repository", "Topic", "Queue", "Alias", "Secret",
     "InstanceProfile", "NodeGroup", "Addon", "PlacementGroup", "Budget", "LaunchTemplate", "SecurityGroup"}
)  # fmt: skip
"""They get a name of the program's with seven digits behind it, where the program gives none."""


def digits(text: str, length: int) -> str:
    """Hex digits that follow from a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def resource_id(type_: str, name: str, outputs: Inputs) -> str:
    """The id that a resource gets."""
    kind = type_.rsplit(":", 1)[-1]
    made = digits(f"{type_} {name}", 17)
    if kind in ID_PREFIXES:
        return f"{ID_PREFIXES[kind]}-{made}"
    if type_.startswith("kubernetes:"):
        metadata = outputs.get("metadata") or {}
        return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name", name))))
    if kind in ("NodeGroup", "Addon"):
        own = outputs.get("nodeGroupName" if kind == "NodeGroup" else "addonName", name)
        return f"{outputs.get('clusterName')}:{own}"
    if kind == "Key":
        return "-".join(digits(f"{type_} {name} {length}", length) for length in (8, 4, 4, 4, 12))
    return str(outputs.get("bucket") or outputs.get("name") or f"{name}-{made[:7]}")


def computed(type_: str, name: str, inputs: Inputs) -> dict[str, Any]:
    """The outputs beside the inputs."""
    kind = type_.rsplit(":", 1)[-1]
    found: dict[str, Any] = {}
    if type_.startswith("kubernetes:"):
        found |= _kubernetes(name, inputs)
    elif type_.startswith("aws:"):
        found |= _aws(type_, kind, name, inputs)
    if type_ in SPECIAL:
        found |= SPECIAL[type_](name, {**inputs, **found})
    return found


def _aws(type_: str, kind: str, name: str, inputs: Inputs) -> dict[str, Any]:
    field = "bucket" if kind in ("Bucket", "BucketV2") else "nodeGroupName" if kind == "NodeGroup" else "name"
    own = inputs.get(field) or f"{name}-{digits(name, 7)}"
    id_ = resource_id(type_, name, {**inputs, field: own})
    path = ARN_PATHS.get(type_, type_.split(":")[1].split("/")[0] + ":{region}:{account}:" + kind.lower() + "/{id}")
    arn = "arn:aws:" + path.format(region=REGION, account=ACCOUNT, name=own, id=id_)
    return {"arn": arn, "region": REGION, **({field: own} if kind in OWN_NAME else {})}


def _kubernetes(name: str, inputs: Inputs) -> dict[str, Any]:
    metadata = dict(inputs.get("metadata") or {})
    metadata.setdefault("name", f"{name}-{digits(name, 8)}")
    return {"metadata": metadata}


def _cluster(name: str, inputs: Inputs) -> dict[str, Any]:
    made = digits(name, 32).upper()
    host = f"{made}.gr7.{REGION}.eks.amazonaws.com"
    vpc = dict(inputs.get("vpcConfig") or {}, clusterSecurityGroupId=f"sg-{digits(name, 17)}")
    return {
        "endpoint": f"https://{host}",
        "certificateAuthority": {"data": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="},
        "vpcConfig": vpc,
        "identities": [{"oidcs": [{"issuer": f"https://oidc.eks.{REGION}.amazonaws.com/id/{made}"}]}],
        "status": "ACTIVE",
    }


def _file_system(name: str, inputs: Inputs) -> dict[str, Any]:
    id_ = resource_id("aws:fsx/lustreFileSystem:LustreFileSystem", name, inputs)
    return {
        "dnsName": f"{id_}.fsx.{REGION}.amazonaws.com",
        "mountName": digits(name, 8),
        "networkInterfaceIds": [f"eni-{digits(name, 17)}"],
    }


def _node_group(name: str, inputs: Inputs) -> dict[str, Any]:
    group = f"eks-{inputs['nodeGroupName']}-{digits(name, 8)}"
    return {
        "resources": [{"autoscalingGroups": [{"name": group}], "remoteAccessSecurityGroupId": ""}],
        "status": "ACTIVE",
    }


def _repository(_name: str, inputs: Inputs) -> dict[str, Any]:
    return {
        "repositoryUrl": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{inputs['name']}",
        "registryId": ACCOUNT,
    }


def _bucket(_name: str, inputs: Inputs) -> dict[str, Any]:
    bucket = inputs["bucket"]
    return {
        "bucketDomainName": f"{bucket}.s3.amazonaws.com",
        "bucketRegionalDomainName": f"{bucket}.s3.{REGION}.amazonaws.com",
    }


def _release(name: str, inputs: Inputs) -> dict[str, Any]:
    release = inputs.get("name") or f"{name}-{digits(name, 8)}"
    namespace = inputs.get("namespace", "default")
    status = {"name": release, "namespace": namespace, "version": inputs.get("version", ""), "status": "deployed"}
    return {"status": status, "name": release}


def _vpc(name: str, _inputs: Inputs) -> dict[str, Any]:
    return {
        "defaultSecurityGroupId": f"sg-{digits(name, 17)}",
        "defaultNetworkAclId": f"acl-{digits(name, 17)}",
        "mainRouteTableId": f"rtb-{digits(name, 17)}",
        "ownerId": ACCOUNT,
    }


SPECIAL: Mapping[str, Callable[[str, Inputs], dict[str, Any]]] = {
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:ec2/eip:Eip": lambda name, _: {
        "allocationId": resource_id("aws:ec2/eip:Eip", name, {}),
        "publicIp": "203.0.113.10",
    },
    "aws:ec2/launchTemplate:LaunchTemplate": lambda _name, _inputs: {"latestVersion": 1, "defaultVersion": 1},
    "aws:ec2/placementGroup:PlacementGroup": lambda name, _: {"placementGroupId": f"pg-{digits(name, 17)}"},
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:ecr/repository:Repository": _repository,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _file_system,
    "aws:kms/key:Key": lambda name, _: {"keyId": resource_id("aws:kms/key:Key", name, {})},
    "aws:s3/bucket:Bucket": _bucket,
    "kubernetes:helm.sh/v3:Release": _release,
}
