"""Policies on machines and their disks, whatever makes them: templates, single instances, groups without a template."""

from collections.abc import Iterator, Mapping

from fleet.cloud import data, node_access
from fleet.cloud.finding import Finding
from policies.adapter import Check, Props, Seen
from policies.groups import NODE_GROUP, TEMPLATE
from policies.reading import at, flag, number, parts, text

INSTANCE = "aws:ec2/instance:Instance"
SPOT = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
MACHINES = (INSTANCE, SPOT, "aws:ec2/launchConfiguration:LaunchConfiguration")
"""With a root block device of their own, and a metadata service as in a launch template."""
_FLAGS: Mapping[str, str] = {
    "aws:docdb/cluster:Cluster": "storageEncrypted",
    "aws:docdb/globalCluster:GlobalCluster": "storageEncrypted",
    "aws:ebs/snapshotCopy:SnapshotCopy": "encrypted",
    "aws:ebs/snapshotImport:SnapshotImport": "encrypted",
    "aws:ebs/volume:Volume": "encrypted",
    "aws:ec2/amiCopy:AmiCopy": "encrypted",
    "aws:efs/fileSystem:FileSystem": "encrypted",
    "aws:neptune/cluster:Cluster": "storageEncrypted",
    "aws:neptune/globalCluster:GlobalCluster": "storageEncrypted",
    "aws:rds/cluster:Cluster": "storageEncrypted",
    "aws:rds/globalCluster:GlobalCluster": "storageEncrypted",
    "aws:rds/instance:Instance": "storageEncrypted",
}
"""What is in the clear unless this property is on."""
_ACCOUNT = "aws:ebs/encryptionByDefault:EncryptionByDefault"
_NO_TEMPLATE = "the template that EKS makes for a node group without one"


def _flagged(seen: Seen) -> Iterator[Finding]:
    yield from data.volume_findings(seen.name, is_encrypted=flag(seen.props, _FLAGS[seen.type]))


def _account(seen: Seen) -> Iterator[Finding]:
    is_on = at(seen.props, "enabled") is None or flag(seen.props, "enabled")
    yield from data.volume_findings("every volume that does not say so", is_encrypted=is_on)


def _template_disks(seen: Seen) -> Iterator[Finding]:
    disks = [item for item in parts(seen.props, "blockDeviceMappings") if at(item, "ebs") is not None]
    if not disks:
        yield from data.volume_findings("the root volume, which no block device mapping tells,", is_encrypted=False)
    for item in disks:
        device = text(item, "deviceName") or "a volume"
        yield from data.volume_findings(device, is_encrypted=flag(item, "ebs", "encrypted"))


def _machine_disks(seen: Seen) -> Iterator[Finding]:
    yield from data.volume_findings("the root volume", is_encrypted=flag(seen.props, "rootBlockDevice", "encrypted"))
    for item in parts(seen.props, "ebsBlockDevices"):
        device = text(item, "deviceName") or "a volume"
        yield from data.volume_findings(device, is_encrypted=flag(item, "encrypted"))


def _bare_group(seen: Seen) -> Iterator[Finding]:
    if at(seen.props, "launchTemplate") is None:
        yield from data.volume_findings(f"the root volume of {_NO_TEMPLATE}", is_encrypted=False)


def _tokens(seen: Seen) -> Iterator[Finding]:
    if _has_metadata(seen):
        yield from node_access.token_findings(text(seen.props, "metadataOptions", "httpTokens"))


def _hops(seen: Seen) -> Iterator[Finding]:
    if _has_metadata(seen):
        yield from node_access.hop_findings(number(seen.props, "metadataOptions", "httpPutResponseHopLimit"))


def _has_metadata(seen: Seen) -> bool:
    """Whether there is a metadata service at all; a group with a template is judged by that."""
    if seen.type == NODE_GROUP:
        return at(seen.props, "launchTemplate") is None
    return text(_options(seen), "httpEndpoint") != "disabled"


def _options(seen: Seen) -> Props:
    return at(seen.props, "metadataOptions") or {}


_WITH_METADATA = (TEMPLATE, NODE_GROUP, *MACHINES)
CHECKS = (
    Check((data.VOLUME_ENCRYPTED,), (TEMPLATE,), _template_disks),
    Check((data.VOLUME_ENCRYPTED,), (NODE_GROUP,), _bare_group),
    Check((data.VOLUME_ENCRYPTED,), MACHINES, _machine_disks),
    Check((data.VOLUME_ENCRYPTED,), tuple(_FLAGS), _flagged),
    Check((data.VOLUME_ENCRYPTED,), (_ACCOUNT,), _account),
    Check((node_access.METADATA_TOKENS,), _WITH_METADATA, _tokens),
    Check((node_access.METADATA_HOPS,), _WITH_METADATA, _hops),
)
