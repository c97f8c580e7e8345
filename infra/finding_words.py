"""What a rule of the cloud says, in the words of the stack's configuration: which key, and what to write there.

A rule's own remedy speaks of the resource that is made; here stands what a person writes for it.
"""

from collections.abc import Mapping

from fleet.cloud.lustre import (
    EFA_CAPACITY_GIB,
    METADATA_STEP_IOPS,
    MOST_METADATA_IOPS,
    SMALL_METADATA_IOPS,
    SMALLEST_GIB,
    STEP_GIB,
)

METADATA_CHOICE = (
    f"automatic, {', '.join(map(str, SMALL_METADATA_IOPS))} or a multiple of {METADATA_STEP_IOPS} "
    f"up to {MOST_METADATA_IOPS}"
)
CAPACITY_CHOICE = f"{SMALLEST_GIB}, {STEP_GIB} or a multiple of {STEP_GIB} GiB"
EFA_CHOICE = ", ".join(f"{gib} GiB at {tier}" for tier, gib in EFA_CAPACITY_GIB.items()) + " MB/s per TiB"

REMEDIES: Mapping[str, str] = {
    "capacity-block-target": "set reservation_id to the id of the block's reservation, such as cr-0123456789abcdef0",
    "reservation-with-spot": "set purchase to on-demand, or leave reservation_id out",
    "purchase-not-sold": "set purchase to a way in which the type is sold, or take another instance_type",
    "placement-group-with-reservation": "leave placement_group out",
    "placement-group-strategy": "leave placement_group out, or take another instance_type",
    "ami-release-unpinned": "write the release itself, as 'python -m infra.fill_versions' finds it",
    "image-preload": "set image.family to bottlerocket, or leave data_volume_snapshot out",
    "mig-on-bottlerocket": "set image.family to al2023",
    "mig-without-hardware": "take another sharing, or an instance_type whose GPU has MIG",
    "gpu-shares": "set time_slices to 2 or more with sharing time-slicing or mps, and leave it out otherwise",
    "cluster-endpoint-open": "list the networks of your offices and runners, or set cluster.endpoint to private",
    "lustre-capacity": f"take {CAPACITY_CHOICE}",
    "lustre-metadata": f"take {METADATA_CHOICE}",
    "lustre-link-path": "give a folder that begins with '/'",
}
"""Rule id -> what to write, where a finding has no better word for it."""
LUSTRE_KEYS: Mapping[str, str] = {
    "lustre-capacity": "capacity_gib",
    "lustre-efa-capacity": "capacity_gib",
    "lustre-throughput": "mb_per_second_per_tib",
    "lustre-metadata": "metadata_iops",
    "lustre-link-path": "bucket_path",
}
"""Rule id -> the key below ``weights`` that it is about."""
