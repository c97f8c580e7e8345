"""What nodes need before pods can mount a Lustre file system: the driver, and a taint until it is ready."""

from collections.abc import Collection, Iterator

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.node_groups import LUSTRE_TAINT_KEY

ADD_ON = "aws-fsx-csi-driver"

DRIVER = CloudRule(
    "lustre-driver-missing",
    Grade.HIGH,
    "A cluster beside a Lustre file system has the driver that mounts it",
    f"install the add-on or the chart {ADD_ON}",
    "idf-modules#293: driver name fsx.csi.aws.com not found in the list of registered CSI drivers",
)
STARTUP_TAINT = CloudRule(
    "lustre-startup-taint",
    Grade.MEDIUM,
    "GPU nodes keep pods away until the driver of the file system is ready",
    f"add the taint {LUSTRE_TAINT_KEY} with effect NO_EXECUTE; the driver takes it away",
    "aws-fsx-csi-driver docs/install.md; idf-modules#293",
)


def driver_findings(*, has_driver: bool) -> Iterator[Finding]:
    """Whether the cluster beside a file system has its driver."""
    if not has_driver:
        yield Finding(DRIVER, f"there is a Lustre file system, and nothing installs {ADD_ON}")


def startup_taint_findings(effects: Collection[str]) -> Iterator[Finding]:
    """Whether nodes beside a file system wait for its driver; ``effects``: those that the taint has on them."""
    if not effects:
        yield Finding(STARTUP_TAINT, f"GPU nodes beside a Lustre file system have no taint {LUSTRE_TAINT_KEY}")
    elif "NO_EXECUTE" not in effects:
        yield Finding(STARTUP_TAINT, f"the taint {LUSTRE_TAINT_KEY} has the effect {', '.join(sorted(effects))}")


RULES: tuple[CloudRule, ...] = (DRIVER, STARTUP_TAINT)
