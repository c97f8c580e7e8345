"""Policies on Lustre file systems, their links to buckets and their ports."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from pulumi_policy.proxy import UnknownValueError

from fleet.cloud import lustre, lustre_links, lustre_nodes, lustre_ports
from fleet.cloud.finding import Finding
from fleet.cloud.lustre import FileSystem
from fleet.cloud.lustre_links import Link, Linked
from fleet.cloud.node_groups import LUSTRE_TAINT_KEY
from policies.adapter import Check, Props, Seen, Stack
from policies.groups import CLUSTER, NODE_GROUP, SUBNET, TEMPLATE, Group, addresses_of
from policies.helm import has_chart
from policies.reading import at, count, flag, number, parts, text, texts
from policies.security_groups import GROUP, openings_of
from policies.words import is_list

FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
ADD_ON = "aws:eks/addon:Addon"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
OLD_IMPORTS = {
    "importPath": "import_path",
    "exportPath": "export_path",
    "autoImportPolicy": "auto_import_policy",
    "importedFileChunkSize": "imported_file_chunk_size",
}
"""Settings by which a file system imports without a link, and their names in the program."""
_SOME_BUCKET = "s3://the-bucket"
"""Stands for a bucket whose name its rule does not ask for."""


def _file_system(seen: Seen) -> Iterator[Finding]:
    props = seen.props
    system = FileSystem(
        capacity_gib=number(props, "storageCapacity"),
        mb_per_second_per_tib=number(props, "perUnitStorageThroughput"),
        deployment=text(props, "deploymentType") or "SCRATCH_1",
        storage=text(props, "storageType") or "SSD",
        has_efa=flag(props, "efaEnabled"),
        metadata_mode=_metadata_mode(seen),
        metadata_iops=number(props, "metadataConfiguration", "iops"),
        version=text(props, "fileSystemTypeVersion"),
        old_import_settings=tuple(name for key, name in OLD_IMPORTS.items() if _is_said(props, key)),
        mb_per_second=number(props, "throughputCapacity"),
        has_read_cache=at(props, "dataReadCacheConfiguration") is not None,
    )
    yield from lustre.file_system_findings(system)
    if system.storage == "HDD" and text(props, "driveCacheType") is None:
        yield Finding(
            lustre.DEPLOYMENT, "HDD storage without a drive cache type", "set drive_cache_type to NONE or READ"
        )
    subnets = count(props, "subnetIds") if is_list(props, "subnetIds") else 1
    if subnets > 1:
        yield Finding(lustre.DEPLOYMENT, f"a file system in {subnets} subnets", "a Lustre file system has one subnet")


def _is_said(props: Props, key: str) -> bool:
    """Whether a setting has a value, known or not; an empty text is none."""
    try:
        return at(props, key) not in (None, "")
    except UnknownValueError:
        return True


def _metadata_mode(seen: Seen) -> str | None:
    if at(seen.props, "metadataConfiguration") is None:
        return None
    return text(seen.props, "metadataConfiguration", "mode") or ""


def _link(seen: Seen, bucket: str) -> Link:
    return Link(
        folder=text(seen.props, "fileSystemPath") or "",
        bucket=bucket,
        imports=texts(seen.props, "s3", "autoImportPolicy", "events"),
        exports=texts(seen.props, "s3", "autoExportPolicy", "events"),
    )


def _one_link(seen: Seen) -> Iterator[Finding]:
    yield from lustre_links.link_findings(_link(seen, _SOME_BUCKET))


def _bucket(seen: Seen) -> Iterator[Finding]:
    yield from lustre_links.link_findings(_link(seen, text(seen.props, "dataRepositoryPath") or ""))


def _support(seen: Seen) -> Iterator[Finding]:
    links = [_link(item, f"{_SOME_BUCKET}/{item.name}") for item in _links_of(seen)]
    yield from lustre_links.links_findings(links, _linked(seen))
    said = [name for key, name in OLD_IMPORTS.items() if _is_said(seen.props, key)]
    if links and said and text(seen.props, "deploymentType") != "PERSISTENT_2":  # there another rule speaks
        message = f"{', '.join(said)} on a file system that has a link"
        yield Finding(lustre_links.LINKABLE, message, "leave it out: the link imports")


def _shared_buckets(seen: Seen) -> Iterator[Finding]:
    links = _links_of(seen)
    if len(links) > 1:
        named = [_link(item, text(item.props, "dataRepositoryPath") or "") for item in links]
        yield from lustre_links.links_findings(named, _linked(seen))


def _links_of(seen: Seen) -> tuple[Seen, ...]:
    return seen.stack.pointing_at(seen, LINK, "fileSystemId")


def _linked(seen: Seen) -> Linked:
    return Linked(
        deployment=text(seen.props, "deploymentType") or "SCRATCH_1",
        storage=text(seen.props, "storageType") or "SSD",
        version=text(seen.props, "fileSystemTypeVersion"),
        copies_tags_to_backups=flag(seen.props, "copyTagsToBackups"),
    )


def _ports(seen: Seen) -> Iterator[Finding]:
    groups = seen.links("securityGroupIds", GROUP)
    strangers = {item.name for item in seen.stack.of(GROUP)} - _names_of_node_groups(seen.stack)
    openings = [item for group in groups for item in openings_of(group) if item.peer not in strangers]
    has_ranges = any("/" in item.peer for item in openings)
    own = _addresses(seen) if has_ranges else ()
    yield from lustre_ports.port_findings(openings, has_efa=flag(seen.props, "efaEnabled"), own=own)
    if groups:
        yield from lustre_ports.way_out_findings(openings, own=own)


def _addresses(seen: Seen) -> tuple[IPv4Network, ...]:
    """The ranges of a file system's subnets; nothing where one stands outside of the stack."""
    found = [addresses_of(subnet) for subnet in seen.links("subnetIds", SUBNET)]
    known = tuple(item for item in found if item is not None)
    return known if len(known) == len(found) and not seen.outside("subnetIds", SUBNET) else ()


def _names_of_node_groups(stack: Stack) -> set[str]:
    """The security groups of the stack that stand on nodes."""
    places = (
        (template, key) for template in stack.of(TEMPLATE) for key in ("networkInterfaces", "vpcSecurityGroupIds")
    )
    clusters = (group for cluster in stack.of(CLUSTER) for group in cluster.mentions("vpcConfig", GROUP))
    return {group.name for template, key in places for group in template.mentions(key, GROUP)} | {
        group.name for group in clusters
    }


def _driver(seen: Seen) -> Iterator[Finding]:
    yield from lustre_nodes.driver_findings(has_driver=_has_driver(seen.stack))


def _has_driver(stack: Stack) -> bool:
    names = (text(item.props, "addonName") for item in stack.of(ADD_ON))
    return lustre_nodes.ADD_ON in names or has_chart(stack, lustre_nodes.ADD_ON)


def _startup_taint(seen: Seen) -> Iterator[Finding]:
    if seen.stack.of(FILE_SYSTEM) and Group(seen).has_gpus:
        own = [item for item in parts(seen.props, "taints") if text(item, "key") == LUSTRE_TAINT_KEY]
        yield from lustre_nodes.startup_taint_findings({text(item, "effect") or "none" for item in own})


_LINKS, _SYSTEMS = (LINK,), (FILE_SYSTEM,)
CHECKS = (
    Check(lustre.RULES, _SYSTEMS, _file_system),
    Check((lustre_links.LINK_EVENTS, lustre_links.READ_ONLY), _LINKS, _one_link),
    Check((lustre_links.LINK_PATH,), _LINKS, _one_link),
    Check((lustre_links.LINK_SOURCE,), _LINKS, _bucket),
    Check((lustre_links.LINK_PATH, lustre_links.LINKABLE), _SYSTEMS, _support, relates=True),
    Check((lustre_links.LINK_SOURCE,), _SYSTEMS, _shared_buckets, relates=True),
    Check(lustre_ports.RULES, _SYSTEMS, _ports, relates=True),
    Check((lustre_nodes.DRIVER,), _SYSTEMS, _driver, relates=True),
    Check((lustre_nodes.STARTUP_TAINT,), (NODE_GROUP,), _startup_taint, relates=True),
)
