"""The file system in the cluster: a static volume and the claim that pods of one namespace mount."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

DRIVER = "fsx.csi.aws.com"
MANY = "ReadWriteMany"
CLAIM = "weights"
"""The claim's name, in every namespace."""
MOUNT_OPTIONS = ("flock",)


@dataclass(frozen=True, slots=True)
class WeightsVolumeArgs:
    """Which file system, for whom. What the file system answers is passed on, never put together."""

    file_system_id: pulumi.Input[str]
    dns_name: pulumi.Input[str]
    mount_name: pulumi.Input[str]
    capacity_gib: int
    namespace: str
    """It must be there."""


class WeightsVolume(pulumi.ComponentResource):
    """A volume that stays when its claim goes, bound to one claim and no other.

    The volume can be written, as a mount that can't may not fetch files from the bucket; pods mount it read-only.
    """

    def __init__(self, name: str, args: WeightsVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:WeightsVolume", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.volume = core.PersistentVolume(
            f"{name}-volume",
            metadata=ObjectMetaArgs(name=f"{CLAIM}-{args.namespace}"),
            spec=_volume_spec(args),
            opts=child,
        )
        self.claim = core.PersistentVolumeClaim(
            f"{name}-claim",
            metadata=ObjectMetaArgs(name=CLAIM, namespace=args.namespace),
            spec=core.PersistentVolumeClaimSpecArgs(
                access_modes=[MANY],
                storage_class_name="",  # no class: nothing is to be provisioned
                volume_name=self.volume.metadata.name,
                resources=core.VolumeResourceRequirementsArgs(requests={"storage": _size(args)}),
            ),
            opts=child,
        )
        self.register_outputs({"claim": CLAIM, "namespace": args.namespace})


def _volume_spec(args: WeightsVolumeArgs) -> core.PersistentVolumeSpecArgs:
    return core.PersistentVolumeSpecArgs(
        access_modes=[MANY],
        capacity={"storage": _size(args)},
        volume_mode="Filesystem",
        storage_class_name="",
        persistent_volume_reclaim_policy="Retain",
        mount_options=list(MOUNT_OPTIONS),
        claim_ref=core.ObjectReferenceArgs(
            api_version="v1", kind="PersistentVolumeClaim", name=CLAIM, namespace=args.namespace
        ),
        csi=core.CSIPersistentVolumeSourceArgs(
            driver=DRIVER,
            volume_handle=args.file_system_id,
            volume_attributes={"dnsname": args.dns_name, "mountname": args.mount_name},
        ),
    )


def _size(args: WeightsVolumeArgs) -> str:
    return f"{args.capacity_gib}Gi"
