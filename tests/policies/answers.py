"""What the cloud puts into properties that nobody set: unknown at a first preview, a value of its own afterwards."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.infra.recording import Recorded
from tests.infra.sdk_shapes import UNKNOWN

ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "aws:eks/nodeGroup:NodeGroup": {
        "amiType": "AL2023_x86_64_STANDARD",
        "capacityType": "ON_DEMAND",
        "diskSize": 20,
        "instanceTypes": ["t3.medium"],
        "nodeRepairConfig": {"enabled": False},
        "releaseVersion": "1.36.0-20300101",  # invented
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "DEFAULT"},
        "version": "1.36",
    },
    "aws:eks/addon:Addon": {"configurationValues": ""},
    "aws:ec2/securityGroup:SecurityGroup": {"ingress": [], "egress": []},
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": {"s3": {}},
    "aws:fsx/lustreFileSystem:LustreFileSystem": {
        "efaEnabled": False,
        "kmsKeyId": "arn:aws:kms:eu-central-1:111122223333:key/of-the-service",
    },
    "aws:s3/bucket:Bucket": {"acl": "private"},
}
"""Type -> property -> the cloud's answer where nobody set it."""


def answered(resources: Iterable[Recorded], *, preview: bool) -> list[Recorded]:
    """The resources with the cloud's answers among their outputs."""
    return [replace(item, outputs={**_filled(item, preview=preview), **item.outputs}) for item in resources]


def _filled(item: Recorded, *, preview: bool) -> Mapping[str, Any]:
    answers = ANSWERS.get(item.type, {})
    return dict.fromkeys(answers, UNKNOWN) if preview else answers
