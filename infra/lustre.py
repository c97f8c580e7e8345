"""FSx for Lustre: the file system of the weights, its link to the bucket, and the ports between it and the nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import fsx

from fleet.cloud.lustre import FileSystem
from infra.lustre_group import LustreGroup, LustreGroupArgs
from infra.lustre_wish import file_system_of, link_of
from infra.stack_config import LustreWeights

CREATE_MINUTES = 60
UPDATE_MINUTES = 240
"""A file system that grows moves its data."""
DELETE_MINUTES = 60
LINK_MINUTES = 60
"""The link imports the metadata of every object of the bucket."""


@dataclass(frozen=True, slots=True)
class LustreArgs:
    """What the file system is, and where it stands."""

    weights: LustreWeights
    vpc_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    """The private subnet of the zone of the weights; a file system has exactly one."""
    node_groups: Mapping[str, pulumi.Input[str]]
    """Word -> id of the security groups that nodes have, their EFA groups included."""
    bucket: pulumi.Input[str]
    """The name of the bucket."""
    key_arn: pulumi.Input[str]
    protect: bool


class Lustre(pulumi.ComponentResource):
    """A PERSISTENT_2 file system that shows the bucket's objects as files.

    ``mount_name`` is the file system's own answer: it can't be guessed.
    """

    def __init__(self, name: str, args: LustreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Lustre", name, None, opts)
        group_args = LustreGroupArgs(args.vpc_id, args.node_groups, has_efa=args.weights.efa)
        self.group = LustreGroup(f"{name}-access", group_args, pulumi.ResourceOptions(parent=self))
        self.file_system = self._file_system(name, args)
        self.link = self._link(name, args)
        self.id: pulumi.Output[str] = self.file_system.id
        self.dns_name: pulumi.Output[str] = self.file_system.dns_name
        self.mount_name: pulumi.Output[str] = self.file_system.mount_name
        self.register_outputs(
            {
                "fileSystemId": self.id,
                "dnsName": self.dns_name,
                "mountName": self.mount_name,
                "associationId": self.link.association_id,
            }
        )

    def _file_system(self, name: str, args: LustreArgs) -> fsx.LustreFileSystem:
        wish = file_system_of(args.weights)
        return fsx.LustreFileSystem(
            f"{name}-file-system",
            deployment_type=wish.deployment,
            storage_type=wish.storage,
            storage_capacity=wish.capacity_gib,
            per_unit_storage_throughput=wish.mb_per_second_per_tib,
            file_system_type_version=wish.version,
            efa_enabled=wish.has_efa,
            metadata_configuration=_metadata(wish),
            data_compression_type="NONE",  # weights hardly shrink
            automatic_backup_retention_days=0,  # the bucket is the original
            kms_key_id=args.key_arn,
            subnet_ids=args.subnet_id,
            security_group_ids=[self.group.id],
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=args.protect,
                retain_on_delete=args.protect,  # an unprotected one goes: it holds its network and costs by the hour
                depends_on=self.group.rules,  # the groups are looked at when the file system is made, and never again
                custom_timeouts=pulumi.CustomTimeouts(
                    create=f"{CREATE_MINUTES}m", update=f"{UPDATE_MINUTES}m", delete=f"{DELETE_MINUTES}m"
                ),
            ),
        )

    def _link(self, name: str, args: LustreArgs) -> fsx.DataRepositoryAssociation:
        uri = pulumi.Output.from_input(args.bucket).apply(lambda bucket: f"s3://{bucket}/")
        link = link_of(args.weights, "")
        imports = fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=list(link.imports))
        return fsx.DataRepositoryAssociation(
            f"{name}-link",
            file_system_id=self.file_system.id,
            file_system_path=link.folder,
            data_repository_path=uri,
            batch_import_meta_data_on_create=True,
            delete_data_in_filesystem=False,
            s3=fsx.DataRepositoryAssociationS3Args(auto_import_policy=imports),
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=args.protect,
                custom_timeouts=pulumi.CustomTimeouts(create=f"{LINK_MINUTES}m", delete=f"{LINK_MINUTES}m"),
            ),
        )


def _metadata(wish: FileSystem) -> fsx.LustreFileSystemMetadataConfigurationArgs:
    """``None`` as IOPS leaves the number to the mode AUTOMATIC."""
    return fsx.LustreFileSystemMetadataConfigurationArgs(mode=wish.metadata_mode, iops=wish.metadata_iops)
