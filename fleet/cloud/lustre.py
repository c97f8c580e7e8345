"""FSx for Lustre: what a file system can be, and what a wished one gets wrong.

Numbers: the FSx API (``CreateFileSystem`` as botocore 1.44 documents it) and the Lustre guide (EFA capacities).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleet.cloud.finding import CloudRule, Finding, Grade

_API = "FSx API, CreateFileSystem"
_GUIDE = "FSx for Lustre guide, storage capacity of EFA-enabled file systems"

TIERS: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
"""MB/s per TiB that a deployment type and storage can have."""
EFA_CAPACITY_GIB: Mapping[int, int] = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
"""MB/s per TiB -> the capacity of which an EFA file system has a multiple."""
DEPLOYMENTS = ("SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2")
SMALL_METADATA_IOPS = (1500, 3000, 6000)
METADATA_STEP_IOPS = 12000
MOST_METADATA_IOPS = 192000
SMALLEST_GIB = 1200
STEP_GIB = 2400
_SCRATCH_1_STEP_GIB = 3600
_HDD_STEP_GIB = {12: 6000, 40: 1800}

DEPLOYMENT = CloudRule(
    "lustre-deployment",
    Grade.HIGH,
    "A file system has a deployment type and a storage that go together",
    "take PERSISTENT_2 with SSD",
    _API,
)
CAPACITY = CloudRule(
    "lustre-capacity",
    Grade.HIGH,
    "The capacity is one that the deployment type can have",
    "take 1200, 2400 or a multiple of 2400 GiB",
    f"{_API}; terraform-provider-aws#30226",
)
THROUGHPUT = CloudRule(
    "lustre-throughput",
    Grade.HIGH,
    "A persistent file system says its throughput per TiB, and it is one that exists",
    "take 125, 250, 500 or 1000 MB/s per TiB with PERSISTENT_2",
    _API,
)
EFA_CAPACITY = CloudRule(
    "lustre-efa-capacity",
    Grade.HIGH,
    "A file system with EFA is a multiple of the capacity that its throughput asks for",
    "take a multiple of 38400 GiB at 125, 19200 at 250, 9600 at 500, 4800 at 1000 MB/s per TiB",
    _GUIDE,
)
EFA_NEEDS = CloudRule(
    "lustre-efa",
    Grade.HIGH,
    "EFA stands on a PERSISTENT_2 file system with a metadata configuration",
    "take PERSISTENT_2 and a metadata configuration, or leave EFA out",
    "pulumi-aws, LustreFileSystem.efa_enabled",
)
METADATA = CloudRule(
    "lustre-metadata",
    Grade.HIGH,
    "The metadata configuration is one that the file system can have",
    "take mode AUTOMATIC, or USER_PROVISIONED with 1500, 3000, 6000 or a multiple of 12000 up to 192000 IOPS",
    "FSx API, CreateFileSystemLustreMetadataConfiguration",
)
VERSION = CloudRule(
    "lustre-version",
    Grade.HIGH,
    "The Lustre version is one that the deployment type can have",
    "take 2.15",
    f"{_API}, FileSystemTypeVersion",
)
OLD_IMPORT = CloudRule(
    "lustre-import-path",
    Grade.HIGH,
    "A PERSISTENT_2 file system is linked to its bucket by an association, not by an import path of its own",
    "leave it out and link the bucket by a data repository association",
    "terraform-provider-aws#22656; FSx API, CreateFileSystemLustreConfiguration",
)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A Lustre file system as it is asked for."""

    capacity_gib: int | None
    """``None`` = not said; only Intelligent-Tiering has none."""
    mb_per_second_per_tib: int | None
    """``None`` = not said."""
    deployment: str = "PERSISTENT_2"
    storage: str = "SSD"
    has_efa: bool = False
    metadata_mode: str | None = None
    """``None`` = no metadata configuration; empty = one that says no mode."""
    metadata_iops: int | None = None
    """``None`` = not said."""
    version: str | None = None
    """``None`` = the cloud's own choice."""
    old_import_settings: tuple[str, ...] = ()
    """Which of import path, export path, auto-import policy and chunk size it sets itself."""
    mb_per_second: int | None = None
    """Of an Intelligent-Tiering file system as a whole; ``None`` = not said."""
    has_read_cache: bool = False

    @property
    def is_tiering(self) -> bool:
        """Whether the storage is Intelligent-Tiering, which has throughput and no capacity."""
        return self.storage == "INTELLIGENT_TIERING"


def file_system_findings(system: FileSystem) -> Iterator[Finding]:
    """What is wrong with a file system."""
    if not _can_be(system):
        wish = f"deployment type {system.deployment} with storage {system.storage}"
        yield Finding(DEPLOYMENT, f"{wish}; no Lustre file system is that")
        return
    if system.is_tiering:
        yield from _tiering(system)
    else:
        yield from _capacity(system)
        yield from _throughput(system)
    yield from _efa(system)
    yield from _metadata(system)
    yield from _version(system)
    if system.deployment == "PERSISTENT_2" and system.old_import_settings:
        yield Finding(OLD_IMPORT, f"{', '.join(system.old_import_settings)} on a PERSISTENT_2 file system")


def can_have(capacity_gib: int, *, mb_per_second_per_tib: int, has_efa: bool = False) -> bool:
    """Whether a PERSISTENT_2 SSD file system of a throughput can have a capacity."""
    if has_efa:
        step = EFA_CAPACITY_GIB.get(mb_per_second_per_tib)
        return step is not None and capacity_gib > 0 and capacity_gib % step == 0
    return capacity_gib == SMALLEST_GIB or (capacity_gib > 0 and capacity_gib % STEP_GIB == 0)


def smallest_holding(size_gib: float, *, mb_per_second_per_tib: int, has_efa: bool = False) -> int:
    """The smallest PERSISTENT_2 SSD capacity that holds some GiB; raises `KeyError` for EFA at an unknown tier."""
    if not has_efa and size_gib <= SMALLEST_GIB:
        return SMALLEST_GIB
    step = EFA_CAPACITY_GIB[mb_per_second_per_tib] if has_efa else STEP_GIB
    return max(1, -int(-size_gib // step)) * step


def _can_be(system: FileSystem) -> bool:
    if system.storage == "SSD":
        return system.deployment in DEPLOYMENTS
    wanted = {"HDD": "PERSISTENT_1", "INTELLIGENT_TIERING": "PERSISTENT_2"}
    return wanted.get(system.storage) == system.deployment


def _steps(system: FileSystem) -> tuple[tuple[int, ...], int] | None:
    """The single capacities and the step of the others; ``None`` where the throughput decides and is not known."""
    if system.storage == "HDD":
        step = _HDD_STEP_GIB.get(system.mb_per_second_per_tib or 0)
        return None if step is None else ((), step)
    if system.deployment == "SCRATCH_1":
        return (SMALLEST_GIB, STEP_GIB), _SCRATCH_1_STEP_GIB
    return (SMALLEST_GIB,), STEP_GIB


def _capacity(system: FileSystem) -> Iterator[Finding]:
    gib, tier = system.capacity_gib, system.mb_per_second_per_tib
    if gib is None:
        yield Finding(CAPACITY, "no capacity")
        return
    steps, step = _steps(system), EFA_CAPACITY_GIB.get(tier or 0) if system.has_efa else None
    if steps is not None and gib not in steps[0] and (gib <= 0 or gib % steps[1]):
        possible = steps if step is None else ((), step)  # what a message proposes has to fit both
        yield Finding(CAPACITY, f"a capacity of {gib} GiB", _nearest(gib, *possible), {"capacity_gib": gib})
        return
    if step is not None and gib % step:
        message = f"a capacity of {gib} GiB with EFA at {tier} MB/s per TiB"
        yield Finding(EFA_CAPACITY, message, _nearest(gib, (), step), {"capacity_gib": gib, "step_gib": step})


def _nearest(gib: int, single: tuple[int, ...], step: int) -> str:
    """The possible capacities below and above one that is not possible."""
    floor = gib // step * step
    below = max((size for size in (*single, floor) if 0 < size < gib), default=None)
    above = min(size for size in (*single, floor + step, step) if size > gib)
    return f"take {above} GiB" if below is None else f"take {below} or {above} GiB"


def _throughput(system: FileSystem) -> Iterator[Finding]:
    tier = system.mb_per_second_per_tib
    possible = TIERS.get((system.deployment, system.storage), ())
    words = ", ".join(map(str, possible))
    what = f"{system.deployment} with {system.storage}"
    if not possible:
        if tier is not None:
            yield Finding(THROUGHPUT, f"{tier} MB/s per TiB on {what}", "leave it out; scratch has none to choose")
    elif tier is None:
        yield Finding(THROUGHPUT, f"no throughput per TiB on {what}", f"take one of {words} MB/s per TiB")
    elif tier not in possible:
        yield Finding(THROUGHPUT, f"{tier} MB/s per TiB on {what}", f"take one of {words} MB/s per TiB")


def _tiering(system: FileSystem) -> Iterator[Finding]:
    rate = system.mb_per_second
    if rate is None or (rate not in (1000, 2000) and (rate <= 0 or rate % 4000)):
        said = "no throughput" if rate is None else f"a throughput of {rate} MB/s"
        yield Finding(THROUGHPUT, f"{said} with Intelligent-Tiering", "take 1000, 2000 or a multiple of 4000 MB/s")
    elif system.has_efa and rate % 4000:
        message = f"EFA with Intelligent-Tiering at {rate} MB/s"
        yield Finding(EFA_CAPACITY, message, "take a multiple of 4000 MB/s, or leave EFA out")
    if not system.has_read_cache:
        message = "Intelligent-Tiering without a read cache configuration"
        yield Finding(DEPLOYMENT, message, "say its read cache, or that it has none")


def _efa(system: FileSystem) -> Iterator[Finding]:
    if not system.has_efa:
        return
    if system.deployment != "PERSISTENT_2":
        yield Finding(EFA_NEEDS, f"EFA on {system.deployment}", "take PERSISTENT_2, or leave EFA out")
    elif system.metadata_mode is None:
        yield Finding(EFA_NEEDS, "EFA without a metadata configuration", "add a metadata configuration")


def _metadata(system: FileSystem) -> Iterator[Finding]:
    mode, iops = system.metadata_mode, system.metadata_iops
    if mode is None:
        return
    if system.deployment != "PERSISTENT_2":
        yield Finding(
            METADATA, f"a metadata configuration on {system.deployment}", "leave it out, or take PERSISTENT_2"
        )
    elif not mode:
        yield Finding(METADATA, "a metadata configuration without a mode")
    elif mode == "AUTOMATIC":
        if iops is not None:
            yield Finding(METADATA, f"{iops} metadata IOPS with mode AUTOMATIC", "leave the IOPS out")
    elif mode != "USER_PROVISIONED":
        yield Finding(METADATA, f"metadata mode {mode}")
    elif iops is None or not is_metadata_iops(iops):
        said = "metadata IOPS of one's own without a number" if iops is None else f"{iops} metadata IOPS"
        yield Finding(METADATA, f"{said}; no file system has that")


def is_metadata_iops(iops: int) -> bool:
    """Whether an SSD file system can have this number of metadata IOPS."""
    if iops in SMALL_METADATA_IOPS:
        return True
    return 0 < iops <= MOST_METADATA_IOPS and iops % METADATA_STEP_IOPS == 0


def _version(system: FileSystem) -> Iterator[Finding]:
    version = system.version
    if version is None:
        return
    if version not in ("2.10", "2.12", "2.15"):
        yield Finding(VERSION, f"Lustre version {version}")
    elif version == "2.10" and system.deployment == "PERSISTENT_2":
        yield Finding(VERSION, "Lustre version 2.10 on PERSISTENT_2")
    elif version == "2.12" and system.metadata_mode is not None and system.deployment == "PERSISTENT_2":
        yield Finding(VERSION, "Lustre version 2.12 with a metadata configuration")


RULES: tuple[CloudRule, ...] = (
    DEPLOYMENT,
    CAPACITY,
    THROUGHPUT,
    EFA_CAPACITY,
    EFA_NEEDS,
    METADATA,
    VERSION,
    OLD_IMPORT,
)
