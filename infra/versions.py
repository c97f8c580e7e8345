"""Versions of what the program installs: what was read somewhere, with its source and day.

``None`` = not read: EKS publishes a version per add-on, Kubernetes version and region. The stack's configuration fills
it in (``versions.addons``), and the program stops before it registers anything as long as one is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from infra.stack_config import StackConfig, Versions

RETRIEVED = "2026-11-29"
"""The day on which the sources below were read."""
DRA_FROM = (1, 34)
"""The first Kubernetes version with dynamic resource allocation for EFA (EKS user guide, manage EFA devices)."""


@dataclass(frozen=True, slots=True)
class AddOnVersion:
    """An EKS add-on."""

    name: str
    purpose: str
    version: str | None = None
    minimum: str | None = None
    """Below it something that this program relies on does not work."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart."""

    name: str
    chart: str
    """Its name in the repository, or the whole address where it begins with ``oci://``."""
    repository: str | None
    """``None`` = the chart is an OCI address."""
    version: str | None
    source: str


ADD_ONS: Mapping[str, AddOnVersion] = {
    item.name: item
    for item in (
        AddOnVersion(
            "vpc-cni",
            "addresses for pods",
            minimum="v1.18.5",
            source="EKS user guide, node-efa: efa-only interfaces need 1.18.5",
        ),
        AddOnVersion("kube-proxy", "services"),
        AddOnVersion("coredns", "names"),
        AddOnVersion("eks-pod-identity-agent", "roles of pods"),
        AddOnVersion("aws-fsx-csi-driver", "Lustre volumes"),
        AddOnVersion("metrics-server", "CPU and memory of pods"),
    )
}
CHARTS: Mapping[str, Chart] = {
    item.name: item
    for item in (
        Chart("keda", "keda", "https://kedacore.github.io/charts", "2.20.2", "kedacore charts, August 2026"),
        Chart("kueue", "oci://registry.k8s.io/kueue/charts/kueue", None, "0.19.2", "kueue, August 2026"),
        Chart(
            "nvidia-device-plugin",
            "nvidia-device-plugin",
            "https://nvidia.github.io/k8s-device-plugin",
            "0.20.0",
            "k8s-device-plugin Chart.yaml, August 2026",
        ),
        Chart(
            "aws-efa-k8s-device-plugin",
            "aws-efa-k8s-device-plugin",
            "https://aws.github.io/eks-charts",
            "v0.5.30",
            "eks-charts, August 2026; new instance types need a newer chart",
        ),
        Chart(
            "cluster-autoscaler",
            "cluster-autoscaler",
            "https://kubernetes.github.io/autoscaler",
            "9.59.0",
            "chart archives as public builds name them, November 2026; not tried",
        ),
        Chart("gpu-operator", "gpu-operator", "https://helm.ngc.nvidia.com/nvidia", "v26.7.0", "tag; not tried"),
        Chart(
            "dra-driver-nvidia-gpu",
            "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu",
            None,
            "0.4.1",
            "kubernetes-sigs/dra-driver-nvidia-gpu Chart.yaml at 764900e; not tried",
        ),
    )
}
"""Newest versions in the sources that were read; `Versions.charts` of the stack's configuration comes before them."""


AUTOSCALER_IMAGES: Mapping[str, str] = {"1.33": "v1.33.5", "1.34": "v1.34.4", "1.35": "v1.35.1", "1.36": "v1.36.0"}
"""Kubernetes version -> the image of Cluster Autoscaler that was made for it.

Source: kops, clusterautoscaler.go, read on 2026-11-30; not tried. The project tests no other pairs; on a version that
is missing here the chart's own image runs.
"""
STANDARD_SUPPORT_ENDS: Mapping[str, date] = {
    "1.33": date(2026, 7, 29),
    "1.34": date(2026, 12, 2),
    "1.35": date(2027, 3, 27),
    "1.36": date(2027, 8, 2),
}
"""Kubernetes version -> the day on which EKS's standard support ends.

Source: EKS user guide, Kubernetes release calendar, up to 1.35; 1.36 as `aws eks describe-cluster-versions` answered in
2026-09, told by public repositories. Read on 2026-11-30. A version that is missing here is unknown.
"""
SUPPORT_NOTICE_DAYS = 60
"""So long before the end EKS tells it at the latest, and so does a preview."""


def add_ons_of(config: StackConfig) -> tuple[str, ...]:
    """The names of the add-ons that a stack needs."""
    has_lustre = config.weights.kind == "lustre"
    return tuple(name for name in ADD_ONS if has_lustre or name != "aws-fsx-csi-driver")


def add_on_version(name: str, versions: Versions) -> str | None:
    """The version of an add-on: the stack's own first; ``None`` = nobody has said it."""
    return versions.addons.get(name) or ADD_ONS[name].version


def chart(name: str, versions: Versions) -> Chart:
    """A chart, with the stack's own version where it gives one."""
    known = CHARTS[name]
    return replace(known, version=versions.charts.get(name, known.version))


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, without what stands behind them: ``v1.18.5-eksbuild.1`` -> ``(1, 18, 5)``."""
    return tuple(int(part) for part in version.removeprefix("v").partition("-")[0].split(".") if part.isdecimal())


def support_warning(kubernetes: str, today: date) -> str | None:
    """What a person has to know about the support of the stack's Kubernetes version; ``None`` = nothing."""
    ask = "aws eks describe-cluster-versions tells what EKS supports"
    end = STANDARD_SUPPORT_ENDS.get(kubernetes)
    if end is None:
        return f"how long EKS supports Kubernetes {kubernetes} is not known here; {ask}"
    if (end - today).days > SUPPORT_NOTICE_DAYS:
        return None
    ends = "ended" if end <= today else "ends"
    then = "EKS then upgrades the cluster by itself, nodes and add-ons stay behind"
    return f"EKS's standard support of Kubernetes {kubernetes} {ends} on {end}: {then}; take a newer one. {ask}"
