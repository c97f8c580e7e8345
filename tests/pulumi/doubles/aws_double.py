"""The provider for AWS as the engine sees it: no account behind it, and stricter than any."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pulumi.runtime.proto import provider_pb2_grpc

from tests.infra.computed_outputs import ACCOUNT, computed, resource_id
from tests.pulumi.doubles import wire
from tests.pulumi.doubles.enum_check import enum_failures
from tests.pulumi.doubles.provider_double import Properties, ProviderDouble, Refusal, hex_of
from tests.pulumi.doubles.sdk_types import ResourceType, Shape, resource_type
from tests.pulumi.doubles.serving import serve
from tests.pulumi.doubles.value_check import Failure

_ARN = re.compile(r"^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(?:\d{12}|aws)?:.+$")
_POLICIES = {"policy", "assumeRolePolicy"}
# The property that is the name, where it isn't `name`.
_NAMES = {
    "aws:s3/bucket:Bucket": "bucket",
    "aws:eks/nodeGroup:NodeGroup": "nodeGroupName",
}
# What nobody else of the type may have: those properties together.
_UNIQUE = {
    "aws:cloudwatch/logGroup:LogGroup": ("name",),
    "aws:budgets/budget:Budget": ("name",),
    "aws:ec2/launchTemplate:LaunchTemplate": ("name",),
    "aws:ec2/placementGroup:PlacementGroup": ("name",),
    "aws:ec2/securityGroup:SecurityGroup": ("name", "vpcId"),
    "aws:ec2/subnet:Subnet": ("cidrBlock", "vpcId"),
    "aws:ecr/repository:Repository": ("name",),
    "aws:eks/accessEntry:AccessEntry": ("clusterName", "principalArn"),
    "aws:eks/addon:Addon": ("clusterName", "addonName"),
    "aws:eks/cluster:Cluster": ("name",),
    "aws:eks/nodeGroup:NodeGroup": ("clusterName", "nodeGroupName"),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": ("clusterName", "namespace", "serviceAccount"),
    "aws:iam/instanceProfile:InstanceProfile": ("name",),
    "aws:iam/policy:Policy": ("name",),
    "aws:iam/role:Role": ("name",),
    "aws:kms/alias:Alias": ("name",),
    "aws:s3/bucket:Bucket": ("bucket",),
}
_COUNTED = {"latestVersion"}


class AwsDouble(ProviderDouble):
    """AWS."""

    package = "pulumi_aws"
    answers_ids = True

    def identity_settings(self) -> set[str]:
        return {"region", "profile", "accessKey"}

    def type_of(self, token: str) -> ResourceType:
        return resource_type(self.package, token)

    def with_names(self, token: str, name: str, news: Properties, olds: Properties, seed: bytes) -> Properties:
        field = _NAMES.get(token, "name")
        known = self.type_of(token).inputs.get(field)
        wants = known is not None and not known[1] and field not in news and f"{field}Prefix" not in news
        if not wants:
            return news
        made = olds.get(field) or f"{name}-{hex_of(seed.hex(), name, length=7)}"
        return {**news, field: made}

    def further_failures(self, token: str, inputs: Properties) -> Iterator[Failure]:
        yield from enum_failures(token, inputs)
        yield from _text_failures(inputs)
        if "region" not in self.settings:
            yield "region", "is not set in the provider, and the double has no other"

    def further_changes(self, token: str, outputs: Properties, inputs: Properties) -> Iterator[str]:
        if "tagsAll" in self.type_of(token).outputs and outputs.get("tagsAll", {}) != self._all_tags(inputs):
            yield "tagsAll"

    def computed(self, token: str, name: str, inputs: Properties, number: int | None) -> Properties:
        made = computed(token, name if number is None else f"{name}-{number}", inputs)
        outputs: Properties = {}
        for field, (shape, is_always) in self.type_of(token).outputs.items():
            if field in made:
                outputs[field] = merged(inputs.get(field), made[field], is_known=number is not None)
            elif field not in inputs and is_always:
                outputs[field] = wire.UNKNOWN if number is None else _empty(shape)
        return {**outputs, **self._tagged(token, inputs)}

    def touched(self, token: str, inputs: Properties, outputs: Properties, number: int | None) -> Properties:
        counted = {field: wire.UNKNOWN if number is None else outputs[field] + 1 for field in _COUNTED & outputs.keys()}
        return {**outputs, **counted, **self._tagged(token, inputs)}

    def id_of(self, token: str, urn: str, inputs: Properties, number: int) -> str:
        return resource_id(token, f"{urn.rsplit('::', 1)[-1]}-{number}", inputs)

    def unique_name(self, token: str, inputs: Properties) -> str:
        return " ".join(str(inputs.get(field)) for field in _UNIQUE.get(token, ()))

    def call(self, token: str, args: Properties) -> Properties:
        if token == "aws:index/getCallerIdentity:getCallerIdentity":
            return {
                "accountId": ACCOUNT,
                "arn": f"arn:aws:iam::{ACCOUNT}:role/ci",
                "userId": "AROAEXAMPLE",
                "id": ACCOUNT,
            }
        if token == "aws:index/getPartition:getPartition":
            return {"partition": "aws", "dnsSuffix": "amazonaws.com", "id": "aws", "reverseDnsPrefix": "com.amazonaws"}
        if token == "aws:index/getRegion:getRegion":
            region = self.settings["region"]
            return {"region": region, "name": region, "id": region, "description": region, "endpoint": ""}
        raise Refusal(f"function {token} is not part of the double")

    def _tagged(self, token: str, inputs: Properties) -> Properties:
        return {"tagsAll": self._all_tags(inputs)} if "tagsAll" in self.type_of(token).outputs else {}

    def _all_tags(self, inputs: Properties) -> Properties:
        default = self.settings.get("defaultTags") or {}
        return {**default.get("tags", {}), **inputs.get("tags", {})}


def merged(given: Any, made: Any, *, is_known: bool) -> Any:
    """What the cloud answers, with what was given kept; what it fills in is unknown before."""
    if isinstance(given, dict) and isinstance(made, dict):
        return {**given, **{k: merged(given.get(k), v, is_known=is_known) for k, v in made.items()}}
    if given is not None:
        return given
    return made if is_known else wire.UNKNOWN


def _empty(shape: Shape) -> Any:
    """What the cloud answers where there is nothing to say."""
    if isinstance(shape, dict):
        return [] if "list" in shape else {}
    return {"string": "", "boolean": False, "integer": 0, "number": 0}[shape]


def _text_failures(inputs: Properties) -> Iterator[Failure]:
    """Texts that have a form: ARNs and policies."""
    for field, value in inputs.items():
        if not isinstance(value, str):
            continue
        if field.endswith("Arn") and not _ARN.match(value):
            yield field, f"is {value!r} and must be an ARN"
        if field in _POLICIES:
            try:
                json.loads(value)
            except json.JSONDecodeError as error:
                yield field, f"must be a JSON document: {error}"


def main() -> None:
    serve(lambda server: provider_pb2_grpc.add_ResourceProviderServicer_to_server(AwsDouble(), server))
