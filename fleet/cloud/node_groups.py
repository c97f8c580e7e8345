"""Managed node groups and the launch template beneath them: what may stand in which of the two, and in what spelling.

Each judge takes only what its rule needs, so that a value nobody knows yet holds up that rule alone.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.labels import GPU_TAINT_KEY, GPU_TAINT_VALUE
from fleet.hardware import InstanceType

_TEMPLATES = "EKS user guide, customize managed nodes with launch templates; botocore eks"
TAINT_EFFECTS = ("NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE")
MOST_TYPES = 20
"""Instance types that a node group may name."""
LUSTRE_TAINT_KEY = "fsx.csi.aws.com/agent-not-ready"
"""The CSI driver takes this taint away when it can mount; pods that come earlier fail."""
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL_NAME = re.compile(_NAME)
_LABEL_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}")
_RESERVED = ("kubernetes.io", "k8s.io", "eks.amazonaws.com")
_NODE_MAY_CARRY = ("node.kubernetes.io", "node-role.kubernetes.io", "topology.kubernetes.io")

DISK_SIZE = CloudRule(
    "disk-size-with-template",
    Grade.HIGH,
    "A node group with a launch template leaves the disk to it",
    "set the volume in the template's block device mappings and leave disk_size out",
    _TEMPLATES,
)
REMOTE_ACCESS = CloudRule(
    "remote-access-with-template",
    Grade.HIGH,
    "A node group with a launch template sets no remote access",
    "leave remote_access out; a shell on a node comes by Session Manager",
    _TEMPLATES,
)
INSTANCE_TYPES = CloudRule(
    "instance-type-places",
    Grade.HIGH,
    "Instance types stand in the launch template or in the node group, not in both and not in neither",
    "put the one type into the template and leave instance_types out of the node group",
    f"terraform-aws-eks#1386; {_TEMPLATES}",
)
VERSION_WITH_IMAGE = CloudRule(
    "version-with-image",
    Grade.HIGH,
    "A launch template with an image of its own leaves no AMI type, version or release to the node group",
    "drop image_id and pin ami_type with release_version, or drop those of the node group",
    f"pulumi-aws-native#1747; {_TEMPLATES}",
)
FORBIDDEN = CloudRule(
    "template-forbidden-field",
    Grade.HIGH,
    "A launch template of a node group holds nothing that EKS sets itself",
    "leave it out of the template; subnets, role and capacity type belong to the node group",
    _TEMPLATES,
)
SCALING = CloudRule(
    "scaling-order",
    Grade.HIGH,
    "min <= desired <= max, and max is 1 or more",
    "order the three numbers",
    "botocore eks NodegroupScalingConfig; not checked by the provider",
)
TAINT_EFFECT = CloudRule(
    "taint-effect",
    Grade.HIGH,
    "Taint effects of a node group are spelled as EKS wants them",
    f"take one of {', '.join(TAINT_EFFECTS)}",
    "botocore eks TaintEffect",
)
GPU_TAINT = CloudRule(
    "gpu-taint",
    Grade.MEDIUM,
    "GPU nodes carry a taint that keeps everything else away",
    f"add {GPU_TAINT_KEY}={GPU_TAINT_VALUE} with effect NO_SCHEDULE",
    "own judgement; GPUs are the dear part of a node",
)
LABEL = CloudRule(
    "node-label",
    Grade.HIGH,
    "Labels of a node group are legal in Kubernetes and are not reserved",
    "at most 63 letters, digits, '-', '_', '.'; begin and end with a letter or digit; a prefix is a DNS name",
    "Kubernetes documentation, labels and selectors; not checked by the provider",
)
ROLE = CloudRule(
    "node-role-arn",
    Grade.HIGH,
    "The node role is the ARN of an IAM role",
    "pass the role's arn, not its name or its instance profile",
    "botocore eks CreateNodegroup; not checked by the provider",
)
UPDATE_STRATEGY = CloudRule(
    "update-strategy",
    Grade.MEDIUM,
    "A pool without spare GPUs takes nodes away before it adds new ones",
    "set update_strategy MINIMAL",
    "botocore eks NodegroupUpdateConfig names GPUs as the reason",
)
NODE_REPAIR = CloudRule(
    "node-repair",
    Grade.LOW,
    "Broken GPU nodes are replaced without a person",
    "enable node_repair_config",
    "EKS user guide, node auto repair",
)
AUTOSCALERS = CloudRule(
    "two-autoscalers",
    Grade.HIGH,
    "One pool is scaled by one autoscaler",
    "give Karpenter the pools without a node group, or leave it away",
    "own judgement; both answer the same pending pods with nodes",
)


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint as a node group states it."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How many nodes a group has."""

    min: int
    desired: int
    max: int


@dataclass(frozen=True, slots=True)
class TypePlaces:
    """Where a node group and its launch template name instance types."""

    template: str | None
    """``None`` = the template names none, or there is none."""
    group: tuple[str, ...] = ()


def template_disk_findings(disk_size_gib: int | None) -> Iterator[Finding]:
    """What is wrong with the disk of a node group that has a launch template."""
    if disk_size_gib is not None:
        yield Finding(DISK_SIZE, f"disk_size is {disk_size_gib} GiB beside a launch template")


def template_access_findings(*, has_remote_access: bool) -> Iterator[Finding]:
    """What is wrong with the shell access of a node group that has a launch template."""
    if has_remote_access:
        yield Finding(REMOTE_ACCESS, "remote_access stands beside a launch template")


def type_findings(places: TypePlaces) -> Iterator[Finding]:
    """What is wrong with where instance types stand."""
    if places.template and places.group:
        named = ", ".join(places.group)
        yield Finding(INSTANCE_TYPES, f"the launch template says {places.template} and the node group {named}")
    if len(places.group) > MOST_TYPES:
        message = f"the node group names {len(places.group)} instance types, and EKS takes {MOST_TYPES}"
        yield Finding(INSTANCE_TYPES, message, f"name {MOST_TYPES} types or fewer")
    if not places.template and not places.group:
        message = "neither the launch template nor the node group names an instance type"
        yield Finding(INSTANCE_TYPES, f"{message}; EKS would take t3.medium")


def image_findings(*, has_image: bool, settings: Mapping[str, str | None]) -> Iterator[Finding]:
    """What a node group must not say beside a template's image; ``settings`` by name: ami_type, version and so on."""
    said = [f"{key} {value}" for key, value in settings.items() if value]
    if has_image and said:
        yield Finding(VERSION_WITH_IMAGE, f"the launch template has an image_id and the node group {', '.join(said)}")


def template_field_findings(fields: Collection[str]) -> Iterator[Finding]:
    """Fields of a launch template (snake case, of those that are set) that EKS refuses or sets itself."""
    for field in sorted(set(fields) & _FORBIDDEN):
        yield Finding(FORBIDDEN, f"the launch template of a node group sets {field}")


def scaling_findings(scaling: Scaling) -> Iterator[Finding]:
    """What is wrong with the numbers of nodes."""
    if scaling.max < 1 or not 0 <= scaling.min <= scaling.desired <= scaling.max:
        message = f"min {scaling.min}, desired {scaling.desired}, max {scaling.max}"
        yield Finding(SCALING, message, evidence={"min": scaling.min, "desired": scaling.desired, "max": scaling.max})


def taint_findings(taints: Sequence[Taint]) -> Iterator[Finding]:
    """Effects that EKS does not know, with the spelling that was meant."""
    for taint in taints:
        if taint.effect in TAINT_EFFECTS:
            continue
        wanted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", taint.effect).upper()
        remedy = f"write {wanted}" if wanted in TAINT_EFFECTS else ""
        yield Finding(TAINT_EFFECT, f"the taint {taint.key} has the effect '{taint.effect}'", remedy)


def gpu_taint_findings(taints: Sequence[Taint]) -> Iterator[Finding]:
    """Whether a group of GPU nodes keeps other pods away."""
    effects = [taint.effect for taint in taints if taint.key == GPU_TAINT_KEY]
    if not effects:
        yield Finding(GPU_TAINT, f"a group of GPU nodes has no taint {GPU_TAINT_KEY}")
    elif "PREFER_NO_SCHEDULE" in effects and not {"NO_SCHEDULE", "NO_EXECUTE"} & set(effects):
        yield Finding(GPU_TAINT, f"the taint {GPU_TAINT_KEY} only asks others to stay away (PREFER_NO_SCHEDULE)")


def label_findings(labels: Mapping[str, str]) -> Iterator[Finding]:
    """Labels that the API server or the kubelet refuses."""
    for key, value in labels.items():
        problem = label_problem(key, value)
        if problem is not None:
            yield Finding(LABEL, problem)


def label_problem(key: str, value: str) -> str | None:
    """Why a node can't carry a label, or ``None``."""
    prefix, slash, name = key.rpartition("/")
    if _LABEL_NAME.fullmatch(name) is None or (slash and _LABEL_PREFIX.fullmatch(prefix) is None):
        return f"the label key '{key}' is not legal"
    if value and _LABEL_NAME.fullmatch(value) is None:
        return f"the value '{value}' of the label {key} is not legal"
    if _is_under(prefix, _RESERVED) and not _is_under(prefix, _NODE_MAY_CARRY):
        return f"the label {key} is under a prefix of Kubernetes that nodes may not give themselves"
    return None


def role_findings(role_arn: str) -> Iterator[Finding]:
    """Whether the node role is the ARN of a role."""
    if _ROLE.fullmatch(role_arn) is None:
        yield Finding(ROLE, f"the node role is '{role_arn}', which is no ARN of an IAM role")


def update_findings(shape: InstanceType, strategy: str | None, *, has_spare: bool) -> Iterator[Finding]:
    """Whether nodes are exchanged in an order for which there are GPUs; EKS's own default adds nodes first."""
    if not has_spare and strategy != "MINIMAL":
        said = strategy or "DEFAULT (nothing is said)"
        yield Finding(UPDATE_STRATEGY, f"the update strategy of {shape.name} nodes is {said}: more nodes come first")


def repair_findings(*, is_enabled: bool) -> Iterator[Finding]:
    """Whether broken nodes are replaced."""
    if not is_enabled:
        yield Finding(NODE_REPAIR, "node repair is off for a group of GPU nodes")


def autoscaler_findings(
    *, has_karpenter: bool, has_cluster_autoscaler: bool, has_auto_mode: bool = False
) -> Iterator[Finding]:
    """Whether two autoscalers work on one cluster."""
    all_three = {
        "Karpenter": has_karpenter,
        "the Cluster Autoscaler": has_cluster_autoscaler,
        "EKS Auto Mode": has_auto_mode,
    }
    found = [name for name, is_there in all_three.items() if is_there]
    if len(found) > 1:
        yield Finding(AUTOSCALERS, f"{' and '.join(found)} are both installed")


def _is_under(prefix: str, domains: tuple[str, ...]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


_FORBIDDEN = frozenset(
    (
        "iam_instance_profile",
        "hibernation_options",
        "instance_initiated_shutdown_behavior",
        "network_interfaces.subnet_id",
        "network_interfaces.network_interface_id",
        "instance_market_options.spot_options",
    )
)

RULES: tuple[CloudRule, ...] = (
    DISK_SIZE,
    REMOTE_ACCESS,
    INSTANCE_TYPES,
    VERSION_WITH_IMAGE,
    FORBIDDEN,
    SCALING,
    TAINT_EFFECT,
    GPU_TAINT,
    LABEL,
    ROLE,
    UPDATE_STRATEGY,
    NODE_REPAIR,
    AUTOSCALERS,
)
