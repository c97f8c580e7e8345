"""What one stack is told: ``enginehouse:stack`` of ``Pulumi.<env>.yaml``, read once into closed values."""

import re
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from fleet.node_pools import NodePool
from fleet.spec import ImageDigest, Line, Name
from fleet.value import Value
from infra.pull_through import Closed

CONFIG_VERSION = 1
Count = Annotated[int, Field(ge=0)]
Arn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d{12}:.+$")]


def _account_text(value: object) -> object:
    """An account without quotes is a number in YAML: all twelve digits, or nobody knows which ones were lost."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if len(str(value)) != _ACCOUNT_DIGITS or value < 0:
        raise ValueError(
            "an account has 12 digits, and a number loses a zero that it begins with; "
            'write it in quotes, such as "012345678901"'
        )
    return str(value)


_ACCOUNT_DIGITS = 12
Account = Annotated[str, BeforeValidator(_account_text), StringConstraints(pattern=r"^\d{12}$")]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
Zone = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$")]
Email = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")]
Minor = Annotated[str, StringConstraints(pattern=r"^1\.\d{2}$")]


def _network_text(value: object) -> object:
    """A bare number is an address to Python, and a slip to everybody else."""
    if not isinstance(value, str | IPv4Network):
        raise ValueError("an IPv4 network is text; write its first address and length, such as 10.0.0.0/16")
    return value


Network = Annotated[IPv4Network, BeforeValidator(_network_text)]
Reservation = Annotated[str, StringConstraints(pattern=r"^cr-[0-9a-f]{8,17}$")]
Snapshot = Annotated[str, StringConstraints(pattern=r"^snap-[0-9a-f]{8,17}$")]
FolderPath = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]*$")]

_REPOSITORY_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_REPOSITORY_PART}(/{_REPOSITORY_PART})*")
_REPOSITORY_LENGTH = range(2, 257)


def _is_repository(value: str) -> str:
    """As ECR takes it (API, CreateRepository)."""
    if len(value) not in _REPOSITORY_LENGTH or not _REPOSITORY.fullmatch(value):
        remedy = (
            "give 2 to 256 lower-case letters and digits, in parts between single slashes, with single dots, one or "
            "two underscores or dashes inside a part"
        )
        raise ValueError(f"{value[:60]!r} is no name that ECR takes for a repository; {remedy}")
    return value


Repository = Annotated[str, AfterValidator(_is_repository)]


class NetworkConfig(Value):
    """The VPC."""

    cidr: Network = IPv4Network("10.0.0.0/16")
    zones: Annotated[tuple[Zone, ...], Field(min_length=2)]
    """Zones with subnets; EKS wants two at least."""
    nat: Literal["per-zone", "one"] = "per-zone"
    """``one`` is cheaper, and all nodes lose the way out with its zone."""
    flow_log_days: Count = 30


class ClusterConfig(Value):
    """The EKS cluster."""

    kubernetes: Minor
    endpoint: Literal["private", "public"] = "private"
    public_cidrs: tuple[Network, ...] = ()
    """Who reaches a public endpoint; only and always with ``endpoint: public``."""
    admins: Annotated[tuple[Arn, ...], Field(min_length=1)]
    """IAM roles that get cluster-admin by an access entry; nobody else has it, the creator neither."""
    log_days: Count = 90
    deletion_protection: bool = True


class SystemNodesConfig(Value):
    """Nodes for what is no engine: DNS, KEDA, Kueue, the gateway, the control plane."""

    instance_types: Annotated[tuple[Line, ...], Field(min_length=1)] = ("m7i.xlarge",)
    release: Line | None = None
    """The AMI release of the node group; ``None`` = not filled in yet, which stops the program."""
    min_nodes: Annotated[int, Field(ge=1)] = 2
    max_nodes: Annotated[int, Field(ge=1)] = 6


class NodeImage(Value):
    """What the nodes of a pool start from."""

    family: Literal["al2023", "bottlerocket"] = "al2023"
    release: Line | None = None
    """The AMI release of the node group; ``None`` = not filled in yet, which stops the program."""
    driver: Line | None = None
    """The NVIDIA driver of that release, where it is known: engine images are checked against it."""


class Preload(Value):
    """How engine images come onto new nodes faster."""

    data_volume_snapshot: Snapshot | None = None
    """Bottlerocket: a snapshot of a data volume that holds the images."""
    parallel_pull: bool = True
    """AL2023: layers are fetched and unpacked in parallel on the local disks."""


class PoolConfig(NodePool):
    """A node pool as the environment's ``pools.yaml`` has it, and what the cloud has to know beside."""

    min_nodes: Count = 0
    """Below it no node is taken away; raising it adds what is missing."""
    desired_nodes: Count = 0
    """How many nodes there are; ``0`` = ``min_nodes``. Where an autoscaler works on the pool: at first."""
    zones: tuple[Zone, ...] = ()
    """Empty = ``zone`` where it is given, else every zone of the network."""
    reservation_id: Reservation | None = None
    """An On-Demand Capacity Reservation, or the reservation of a Capacity Block."""
    efa: bool = False
    """For replicas over several nodes; a single node gains nothing from it."""
    placement_group: bool = False
    """A cluster placement group; never beside a reservation, which has its own."""
    image: NodeImage = NodeImage()
    preload: Preload = Preload()
    root_volume_gib: Annotated[int, Field(ge=20)] = 200
    time_slices: Annotated[int, Field(ge=2)] | None = None
    """Pods per GPU; only and always with sharing ``time-slicing`` or ``mps``."""
    update: Literal["minimal", "default"] = "minimal"
    """``minimal`` takes nodes away before it adds new ones: GPUs are rarely spare."""
    labels: dict[Line, Line] = Field(default_factory=dict)


class LustreWeights(Value):
    """Weights on FSx for Lustre, PERSISTENT_2, linked to the bucket."""

    kind: Literal["lustre"]
    capacity_gib: Annotated[int, Field(ge=1200)]
    mb_per_second_per_tib: Literal[125, 250, 500, 1000]
    zone: Zone
    efa: bool = False
    metadata_iops: Annotated[int, Field(ge=1500)] | Literal["automatic"] = "automatic"
    bucket_path: FolderPath = "/weights"
    """Where the bucket appears in the file system."""


class NodeLocalWeights(Value):
    """Weights streamed out of the bucket by engines that can, and copied to the node's own disks for the others."""

    kind: Literal["node-local"]
    copy_image: ImageDigest | None = None
    """What copies them, by digest: an image with the command ``aws``.

    ``None`` = engines that can't stream get no pods.
    """


Weights = Annotated[LustreWeights | NodeLocalWeights, Field(discriminator="kind")]


class BudgetConfig(Value):
    """The alarm on money."""

    usd_per_month: Annotated[float, Field(gt=0)]
    emails: Annotated[tuple[Email, ...], Field(min_length=1)]


class Versions(Value):
    """What is filled in where `infra.versions` does not know it: add-on or chart -> version."""

    addons: dict[Name, Line] = Field(default_factory=dict)
    charts: dict[Name, Line] = Field(default_factory=dict)


class StackConfig(Value):
    """One environment's cluster."""

    version: Literal[1]
    """Of this file's shape."""
    environment: Name
    """The folder ``environments/<environment>`` whose manifests run here."""
    account: Account
    """The only account that the program works in: credentials of another one are refused."""
    region: Region
    owner: Line
    """Stands in the tags of everything."""
    network: NetworkConfig
    cluster: ClusterConfig
    system_nodes: SystemNodesConfig = SystemNodesConfig()
    pools: Annotated[tuple[PoolConfig, ...], Field(min_length=1)]
    autoscaler: Literal["none", "cluster-autoscaler"] = "none"
    """What adds nodes for pods that find no place and takes idle ones away, between ``min_nodes`` and ``max_nodes``.

    It leaves alone Capacity Blocks and pools with claims (DRA). Leave it out where Karpenter does that.
    """
    weights: Weights
    repositories: tuple[Repository, ...] = ()
    """Names of image repositories that are made in the account's registry."""
    pull_through_secrets: dict[Closed, Arn] = Field(default_factory=dict)
    """Registry that wants a login -> the secret of Secrets Manager that holds it: its images are cached as well.

    Its name begins with ``ecr-pullthroughcache/``. Registries that want none are always cached.
    """
    budget: BudgetConfig
    versions: Versions = Versions()
    tags: dict[Line, Line] = Field(default_factory=dict)
