"""Faults that hide: behind ids and names that are written down, the second of two types, another place for a value."""

from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.edited import Program
from tests.policies.fault import Fault, add, all_of, chart, drop, put
from tests.policies.faults_of_nodes import (
    H100,
    H100_TEMPLATE,
    L4,
    L4_TEMPLATE,
    PLUGIN,
    STAGING_H100,
    STAGING_TEMPLATE,
    SUBNET,
    placed,
    stands_in,
)

_ELSEWHERE = ["subnet-00000000000000001", "subnet-00000000000000002"]  # invented
_ZONE_A, _ZONE_B = (SUBNET.format(letter) for letter in "ab")
_QUIET_OPERATOR = {"driver": {"enabled": "false"}, "toolkit": {"enabled": False}, "devicePlugin": {"enabled": "false"}}
_NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
_NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"


def written(group: str, *names: str):
    """Give a node group subnets by ids alone; an id that no resource has stands as it is."""

    def change(program: Program) -> None:
        ids = [program.id(name) if name.startswith("Subnet ") else name for name in names]
        program.put(group, "subnetIds", ids, of={"subnetIds": []})

    return change


def half_written(group: str, other: object):
    """One subnet by dependency, another that is only written down."""

    def change(program: Program) -> None:
        ids = [program.id(_ZONE_A), program.id(_ZONE_B) if other == _ZONE_B else other]
        program.put(group, "subnetIds", ids, of={"subnetIds": [_ZONE_A]})

    return change


def template_by_name(group: str, template: str, version: str = "7"):
    """Let a node group name its launch template."""
    by_name = {"name": "invented", "version": version}
    return all_of(put(template, "name", "invented"), put(group, "launchTemplate", by_name, of={"launchTemplate": []}))


def types_of_group(*names: str):
    """Let the node group name its instance types."""
    return all_of(drop(L4_TEMPLATE, "instanceType"), put(L4, "instanceTypes", list(names)))


def without_efa(program: Program) -> None:
    """One plain interface on nodes that are labelled as ones with EFA."""
    program.put(H100_TEMPLATE, "networkInterfaces", [program.get(H100_TEMPLATE, "networkInterfaces.0")])


def no_groups(program: Program) -> None:
    """Only the primary interface has no security groups."""
    program.drop(H100_TEMPLATE, "networkInterfaces.0.securityGroups")


_UNPLACED = drop(STAGING_TEMPLATE, "placement")
_FIFTH = "networkInterfaces.5.{}"
_ON_ONE_CARD = all_of(
    put(H100_TEMPLATE, _FIFTH.format("networkCardIndex"), 6), put(H100_TEMPLATE, _FIFTH.format("deviceIndex"), 1)
)
RELATIONS = (
    Fault("EFA over zones, one subnet by id", "efa-zones",
          all_of(_UNPLACED, half_written(STAGING_H100, _ZONE_B)), "staging"),
    Fault("EFA over zones, both subnets by id", "efa-zones",
          all_of(_UNPLACED, written(STAGING_H100, _ZONE_A, _ZONE_B)), "staging"),
    Fault("EFA over a subnet from elsewhere", "efa-zones",
          all_of(_UNPLACED, half_written(STAGING_H100, _ELSEWHERE[0])), "staging"),
    Fault("EFA over subnets from elsewhere", "efa-zones",
          all_of(_UNPLACED, written(STAGING_H100, *_ELSEWHERE)), "staging"),
    Fault("placement group over subnets from elsewhere", "placement-group-zones",
          all_of(placed(L4_TEMPLATE), written(L4, *_ELSEWHERE))),
    Fault("placement group and a zone outside of the subnets", "placement-group-zones",
          all_of(placed(L4_TEMPLATE), stands_in(L4, "a"),
                 put(L4_TEMPLATE, "placement.availabilityZone", "eu-central-1b"))),
    Fault("card 40 in a template by name", "interface-index",
          all_of(put(H100_TEMPLATE, _FIFTH.format("networkCardIndex"), 40),
                 template_by_name(H100, H100_TEMPLATE))),
    Fault("template by the newest version", "template-version-unpinned", put(L4, "launchTemplate.version", "$Latest")),
    Fault("template without a version", "template-version-unpinned", drop(L4, "launchTemplate.version")),
    Fault("no groups on the primary interface alone", "cluster-security-group-missing", no_groups),
)  # fmt: skip
TYPES = (
    Fault("GPU type of another table", "instance-type-unknown", types_of_group("g4dn.xlarge")),
    Fault("type with a blank", "instance-type-unknown", put(L4_TEMPLATE, "instanceType", "g6.xlarge ")),
    Fault("second type without MIG", "mig-without-hardware",
          all_of(types_of_group("p5.48xlarge", "g6.xlarge"), put(L4, "labels|nvidia.com/mig.config", "all-1g.10gb"))),
    Fault("EFA label without interfaces", "efa-interface-count", drop(H100_TEMPLATE, "networkInterfaces")),
    Fault("EFA label with a plain interface", "efa-interface-count", without_efa),
    Fault("EFA label on an L4", "efa-on-instance-without", put(L4, "labels|vpc.amazonaws.com/efa.present", "true")),
    Fault("prefixes on an efa-only interface", "efa-only-public-ip",
          put(H100_TEMPLATE, "networkInterfaces.1.ipv4PrefixCount", 1)),
    Fault("address on an efa-only interface", "efa-only-public-ip",
          put(H100_TEMPLATE, "networkInterfaces.1.privateIpAddress", "10.0.0.9")),
    Fault("two EFA interfaces on a card", "interface-index", _ON_ONE_CARD),
    Fault("device below 0", "interface-index", put(H100_TEMPLATE, "networkInterfaces.5.deviceIndex", -1)),
)  # fmt: skip
IMAGES = (
    Fault("release by another word", "ami-release-unpinned", put(L4, "releaseVersion", "$Latest")),
    Fault("release of another Kubernetes version", "ami-release-unpinned",
          put(L4, "releaseVersion", "1.33.0-20300101")),
    Fault("image by its newest parameter", "ami-release-unpinned",
          all_of(put(L4_TEMPLATE, "imageId", "resolve:ssm:/aws/service/eks/invented/image_id"),
                 *(drop(L4, key) for key in ("amiType", "releaseVersion", "version")))),
    Fault("custom AMI without an image", "ami-without-driver", put(L4, "amiType", "CUSTOM")),
    Fault("operator's policy installs the driver", "gpu-operator-driver",
          add("kubernetes:nvidia.com/v1:ClusterPolicy", "policy",
              {"spec": {"toolkit": {"enabled": False}, "devicePlugin": {"enabled": False}}})),
    Fault("operator by an address", "gpu-operator-driver",
          add("kubernetes:helm.sh/v3:Chart", "operator",
              {"chart": "oci://invented.invalid/gpu-operator:v26.3.0",
               "values": {"devicePlugin": {"enabled": False}}})),
    Fault("operator's device plugin beside the chart", "device-plugin-twice",
          all_of(drop(L4, "labels|nvidia.com/gpu.deploy.operands"),
                 chart("gpu-operator", {**_QUIET_OPERATOR, "devicePlugin": {}}))),
    Fault("device plugin installed twice", "device-plugin-twice", chart("nvidia-device-plugin")),
    Fault("MIG on an L4 by any layout", "mig-without-hardware",
          put(L4, "labels|nvidia.com/mig.config", "all-balanced")),
    Fault("MIG on an L4 by a layout of one's own", "mig-without-hardware",
          put(L4, "labels|nvidia.com/mig.config", "our-layout")),
    Fault("slices on demand on no version", "dynamic-slices-allocation",
          all_of(chart("nvidia-dra-driver-gpu", {"featureGates": {"DynamicMIG": True}}),
                 put("Cluster cluster-cluster", "version", "latest"))),
    Fault("GPU taint that only prefers", "gpu-taint", put(L4, "taints.0.effect", "PREFER_NO_SCHEDULE")),
    Fault("label of EKS", "node-label", put(L4, "labels|eks.amazonaws.com/nodegroup", "l4")),
    Fault("Karpenter by an archive beside the Cluster Autoscaler", "two-autoscalers",
          all_of(chart("cluster-autoscaler"),
                 add("kubernetes:helm.sh/v4:Chart", "k", {"chart": "./karpenter-1.14.1.tgz"}))),
    Fault("Karpenter's node class beside the Cluster Autoscaler", "two-autoscalers",
          all_of(chart("cluster-autoscaler"), add(_NODE_CLASS, "x", {"spec": {}}))),
    Fault("Auto Mode beside Karpenter's node pool", "two-autoscalers",
          all_of(put("Cluster cluster-cluster", "computeConfig", {"enabled": True}),
                 add(_NODE_POOL, "x", {"spec": {}}))),
)  # fmt: skip
_GOOD, _BAD = "{name: nvidia.com/gpu, replicas: 2}", "{name: nvidia.com/gpu, replicas: 1}"
_CONFIG = "values.config.map.exclusive"


def sharing(*resources: str, way: str = "timeSlicing") -> str:
    """A configuration of the device plugin."""
    return f"version: v1\nsharing:\n  {way}:\n    resources: [{', '.join(resources)}]\n"


_BOTH = f"{sharing(_GOOD)}  mps:\n    resources: [{_GOOD}]\n"
SHARES = tuple(
    Fault(name, "gpu-shares", put(PLUGIN, _CONFIG, stated))
    for name, stated in {
        "one share in the second resource": sharing(_GOOD, _BAD),
        "time slices and MPS": _BOTH,
        "a configuration that is no YAML": "version: [",
        "half a share": sharing("{name: nvidia.com/gpu, replicas: 2.5}"),
        "shares by a word": sharing("{name: nvidia.com/gpu, replicas: one}"),
        "endless shares": sharing("{name: nvidia.com/gpu, replicas: .inf}"),
        "resources that are none": sharing("text"),
        "no resources": "sharing: {timeSlicing: null}",
    }.items()
)
CONFIGS = (
    Fault("a configuration that there is not", "gpu-shares",
          put(L4, "labels|nvidia.com/device-plugin.config", "none-such")),
    Fault("one share by default", "gpu-shares",
          all_of(drop(L4, "labels|nvidia.com/device-plugin.config"),
                 put(PLUGIN, "values.config.map.own", sharing(_BAD, way="mps")),
                 put(PLUGIN, "values.config.default", "own"))),
)  # fmt: skip
FAULTS = (*RELATIONS, *TYPES, *IMAGES, *SHARES, *CONFIGS)
CLEAN = (
    template_by_name(L4, L4_TEMPLATE),
    put(L4, "launchTemplate.version", 7),
    all_of(placed(L4_TEMPLATE, "spread"),
           put(L4_TEMPLATE, "placement", {"groupName": "together"}, of={"placement": []})),
    chart("gpu-operator", _QUIET_OPERATOR),
    put(H100, "labels|nvidia.com/mig.config", "our-layout"),
    put(L4, "labels|nvidia.com/mig.config", "all-disabled"),
    all_of(put("Cluster cluster-cluster", "computeConfig", {"enabled": True}),
           add(_NODE_POOL, "x", {"spec": {"template": {"spec": {"nodeClassRef": {"group": "eks.amazonaws.com"}}}}})),
    put(H100_TEMPLATE, "networkInterfaces.1.ipv4AddressCount", 0),
    types_of_group("g6.xlarge", "g6.2xlarge"),
)  # fmt: skip
UNKNOWN_SUBNET = all_of(_UNPLACED, half_written(STAGING_H100, UNKNOWN))
"""One of two subnets is not known and comes from nowhere."""
