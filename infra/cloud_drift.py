"""What is there against what was asked for: the interfaces of a launch template, the settings of a file system.

EC2 does not tell which security groups a file system's interfaces got when it was made, so those are no part of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleet.cloud.interfaces import Interface
from fleet.cloud.lustre import FileSystem
from fleet.cloud.lustre_links import Link
from infra.cloud_client import Answer, CloudUnanswered, Ec2, Fsx, ask, pages


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not what it should be."""

    what: str
    expected: str
    found: str
    """``nothing`` where there is nothing."""

    @property
    def sentence(self) -> str:
        """For a person."""
        return f"{self.what} is {self.found}, should be {self.expected}"


def launch_template_drift(
    ec2: Ec2, template_id: str, expected: Sequence[Interface], *, version: str = "$Latest"
) -> tuple[Difference, ...]:
    """How the interfaces of a launch template differ from those that were asked for.

    Raises:
        CloudUnanswered: AWS did not answer, or there is no such template.
    """
    request = {"LaunchTemplateId": template_id, "Versions": [version]}
    found = ask(ec2.describe_launch_template_versions, **request)["LaunchTemplateVersions"]
    if not found:
        raise CloudUnanswered(f"launch template {template_id} has no version {version}")
    interfaces = found[0]["LaunchTemplateData"].get("NetworkInterfaces", [])
    wanted = {_place(item): _interface_words(item) for item in expected}
    there = {_place(item): _interface_words(item) for item in map(_interface, interfaces)}
    return tuple(_differences(wanted, there))


def lustre_drift(fsx: Fsx, file_system_id: str, expected: FileSystem, links: Sequence[Link]) -> tuple[Difference, ...]:
    """How a file system and its links differ from what was asked for.

    Raises:
        CloudUnanswered: AWS did not answer, or there is no such file system.
    """
    found = ask(fsx.describe_file_systems, FileSystemIds=[file_system_id])["FileSystems"]
    if not found:
        raise CloudUnanswered(f"there is no file system {file_system_id} in this account and region")
    settings = _differences(_file_system_words(expected), _file_system_words(_file_system(found[0])))
    wanted = {f"link {link.folder}": _link_words(link) for link in links}
    there = {f"link {link.folder}": _link_words(link) for link in _links(fsx, file_system_id)}
    return (*settings, *_differences(wanted, there))


def _differences(expected: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Difference]:
    for what in (*expected, *(key for key in found if key not in expected)):
        wanted, there = expected.get(what, "nothing"), found.get(what, "nothing")
        if wanted != there:
            yield Difference(what, wanted, there)


def _place(interface: Interface) -> str:
    return f"card {interface.card} device {interface.device}"


def _interface_words(interface: Interface) -> str:
    return f"{interface.type} with a public IP" if interface.wants_public_ip else interface.type


def _interface(item: Answer) -> Interface:
    """What EC2 leaves out is its default."""
    return Interface(
        card=item.get("NetworkCardIndex", 0),
        device=item.get("DeviceIndex", 0),
        type=item.get("InterfaceType") or "interface",
        wants_public_ip=bool(item.get("AssociatePublicIpAddress")),
    )


def _file_system(item: Answer) -> FileSystem:
    lustre = item.get("LustreConfiguration", {})
    metadata = lustre.get("MetadataConfiguration", {})
    mode = metadata.get("Mode")
    return FileSystem(
        capacity_gib=item.get("StorageCapacity"),
        mb_per_second_per_tib=lustre.get("PerUnitStorageThroughput"),
        deployment=lustre.get("DeploymentType", "nothing"),
        storage=item.get("StorageType", "nothing"),
        has_efa=bool(lustre.get("EfaEnabled")),
        metadata_mode=mode,
        metadata_iops=metadata.get("Iops") if mode == "USER_PROVISIONED" else None,
        version=item.get("FileSystemTypeVersion"),
    )


def _file_system_words(system: FileSystem) -> dict[str, str]:
    """Settings by name; those that nobody has said are left out."""
    words = {
        "capacity": None if system.capacity_gib is None else f"{system.capacity_gib} GiB",
        "throughput": system.mb_per_second_per_tib and f"{system.mb_per_second_per_tib} MB/s per TiB",
        "deployment type": system.deployment,
        "storage": system.storage,
        "EFA": "on" if system.has_efa else "off",
        "metadata mode": system.metadata_mode,
        "metadata IOPS": system.metadata_iops and str(system.metadata_iops),
        "Lustre version": system.version,
    }
    return {key: value for key, value in words.items() if isinstance(value, str)}


def _links(fsx: Fsx, file_system_id: str) -> Iterator[Link]:
    request = {"Filters": [{"Name": "file-system-id", "Values": [file_system_id]}]}
    for answer in pages(fsx.describe_data_repository_associations, "NextToken", **request):
        for item in answer["Associations"]:
            policies = item.get("S3", {})
            yield Link(
                folder=item["FileSystemPath"],
                bucket=item["DataRepositoryPath"],
                imports=tuple(policies.get("AutoImportPolicy", {}).get("Events", ())),
                exports=tuple(policies.get("AutoExportPolicy", {}).get("Events", ())),
            )


def _link_words(link: Link) -> str:
    """Events in the order of their names: AWS keeps no order."""
    exports = f", exports {' '.join(sorted(link.exports))}" if link.exports else ""
    return f"{link.bucket.rstrip('/')} imports {' '.join(sorted(link.imports)) or 'nothing'}{exports}"
