"""What the stack's configuration asks of Lustre, as the rules of the cloud see it."""

from collections.abc import Iterator

from fleet.cloud.finding import Finding
from fleet.cloud.lustre import FileSystem, file_system_findings
from fleet.cloud.lustre_links import SAFE_EVENTS, Link, Linked, link_findings, links_findings
from infra.stack_config import LustreWeights

DEPLOYMENT = "PERSISTENT_2"
STORAGE = "SSD"
VERSION = "2.15"


def file_system_of(weights: LustreWeights) -> FileSystem:
    """The file system that is made."""
    is_automatic = weights.metadata_iops == "automatic"
    return FileSystem(
        capacity_gib=weights.capacity_gib,
        mb_per_second_per_tib=weights.mb_per_second_per_tib,
        deployment=DEPLOYMENT,
        storage=STORAGE,
        has_efa=weights.efa,
        metadata_mode="AUTOMATIC" if is_automatic else "USER_PROVISIONED",
        metadata_iops=None if isinstance(weights.metadata_iops, str) else weights.metadata_iops,
        version=VERSION,
    )


def link_of(weights: LustreWeights, bucket: str) -> Link:
    """The link to the bucket: new and changed objects come in, nothing goes out, no deletion comes in."""
    return Link(folder=weights.bucket_path, bucket=bucket, imports=SAFE_EVENTS)


def wish_findings(weights: LustreWeights) -> Iterator[Finding]:
    """What is wrong with the configuration, before anything is made."""
    link = link_of(weights, "s3://weights/")
    yield from file_system_findings(file_system_of(weights))
    yield from link_findings(link)
    yield from links_findings([link], Linked(DEPLOYMENT, STORAGE, VERSION))
