"""Faults of node groups, launch templates, images, sharing and purchase."""

from tests.policies.edited import Program
from tests.policies.fault import Fault, add, all_of, chart, drop, put

H100, H100_TEMPLATE = "NodeGroup h100-block-eu-central-1a-nodes", "LaunchTemplate h100-block-eu-central-1a-template"
L4, L4_TEMPLATE = "NodeGroup l4-nodes", "LaunchTemplate l4-template"
STAGING_H100 = "NodeGroup h100-eu-central-1a-nodes"
STAGING_TEMPLATE = "LaunchTemplate h100-eu-central-1a-template"
B300_TEMPLATE = "LaunchTemplate b300-eu-central-1a-template"
CLUSTER = "Cluster cluster-cluster"
SUBNET = "Subnet network-private-eu-central-1{}"
EFA_GROUP = "SecurityGroup h100-block-efa"
PLUGIN = "Release charts-nvidia-device-plugin"
_OTHER_RESERVATION = "cr-00000000000000001"  # invented
_TARGET = {"capacityReservationTarget": {"capacityReservationId": _OTHER_RESERVATION}}
_PAIR = [
    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
    {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
]
_TIME_SLICES = "version: v1\nsharing:\n  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 1}]\n"


def stands_in(group: str, *letters: str):
    """Give a node group the subnets of some zones."""

    def change(program: Program) -> None:
        subnets = [SUBNET.format(letter) for letter in letters]
        program.put(group, "subnetIds", [program.id(name) for name in subnets], of={"subnetIds": subnets})

    return change


def placed(template: str, strategy: str = "cluster"):
    """Give a launch template a placement group."""
    group = {"strategy": strategy, "name": "together"}
    put_in = put(template, "placement", {"groupName": "together"}, of={"placement": ["PlacementGroup together"]})
    return all_of(add("aws:ec2/placementGroup:PlacementGroup", "together", group), put_in)


def groups_of_interface(index: int, *wanted: str):
    """Leave an interface only some of: the cluster's group, the EFA group."""

    def change(program: Program) -> None:
        ids = {"efa": program.id(EFA_GROUP)}
        both = program.get(H100_TEMPLATE, "networkInterfaces.0.securityGroups")
        ids["cluster"] = next(item for item in both if item != ids["efa"])
        program.put(H100_TEMPLATE, f"networkInterfaces.{index}.securityGroups", [ids[word] for word in wanted])

    return change


def groups_on_template(program: Program) -> None:
    both = program.get(H100_TEMPLATE, "networkInterfaces.0.securityGroups")
    program.put(H100_TEMPLATE, "vpcSecurityGroupIds", both)


INTERFACES = (
    Fault("efa-only interface with a public IP", "efa-only-public-ip",
          put(H100_TEMPLATE, "networkInterfaces.1.associatePublicIpAddress", "true")),
    Fault("one of several interfaces with a public IP", "efa-only-public-ip",
          put(H100_TEMPLATE, "networkInterfaces.0.associatePublicIpAddress", "true")),
    Fault("31 of 32 EFA interfaces", "efa-interface-count", drop(H100_TEMPLATE, "networkInterfaces.32")),
    Fault("EFA on an instance without", "efa-on-instance-without", put(L4_TEMPLATE, "networkInterfaces", _PAIR)),
    Fault("EFA on card 0 of a p6-b300", "efa-on-instance-without",
          all_of(put(B300_TEMPLATE, "networkInterfaces.16.networkCardIndex", 0),
                 put(B300_TEMPLATE, "networkInterfaces.16.deviceIndex", 1)), "b300"),
    Fault("card 40", "interface-index", put(H100_TEMPLATE, "networkInterfaces.5.networkCardIndex", 40)),
    Fault("device 2 of a card with two", "interface-index", put(H100_TEMPLATE, "networkInterfaces.5.deviceIndex", 2)),
    Fault("a card and device twice", "interface-index", put(H100_TEMPLATE, "networkInterfaces.5.networkCardIndex", 5)),
    Fault("no primary interface", "interface-primary", drop(H100_TEMPLATE, "networkInterfaces.0")),
    Fault("security groups on template and interfaces", "security-groups-twice", groups_on_template),
    Fault("no cluster group on the primary interface", "cluster-security-group-missing",
          groups_of_interface(0, "efa")),
    Fault("EFA group not attached to an interface", "efa-security-group-missing", groups_of_interface(7, "cluster")),
    Fault("metadata without tokens", "metadata-tokens", put(L4_TEMPLATE, "metadataOptions.httpTokens", "optional")),
    Fault("metadata over two hops", "metadata-hop-limit",
          put(L4_TEMPLATE, "metadataOptions.httpPutResponseHopLimit", 2)),
)  # fmt: skip
GROUPS = (
    Fault("disk size beside a template", "disk-size-with-template", put(L4, "diskSize", 100)),
    Fault("remote access beside a template", "remote-access-with-template",
          put(L4, "remoteAccess", {"ec2SshKey": "key"})),
    Fault("instance types in both places", "instance-type-places", put(L4, "instanceTypes", ["g6.xlarge"])),
    Fault("instance types nowhere", "instance-type-places", drop("NodeGroup system-nodes", "instanceTypes")),
    Fault("version beside an image", "version-with-image", put(L4_TEMPLATE, "imageId", "ami-00000000000000001")),
    Fault("instance profile in a template", "template-forbidden-field",
          put(L4_TEMPLATE, "iamInstanceProfile", {"name": "nodes"})),
    Fault("subnet in an interface", "template-forbidden-field",
          put(H100_TEMPLATE, "networkInterfaces.0.subnetId", "subnet-00000000000000001")),
    Fault("min over max", "scaling-order", put(L4, "scalingConfig.minSize", 7)),
    Fault("misspelt min", "scaling-order",
          all_of(drop(L4, "scalingConfig.minSize"), put(L4, "scalingConfig.minSizes", 1))),
    Fault("taint effect of Kubernetes", "taint-effect", put(L4, "taints.0.effect", "NoSchedule")),
    Fault("GPU nodes without a taint", "gpu-taint", drop(L4, "taints.0")),
    Fault("illegal label", "node-label", put(L4, "labels|team name", "a")),
    Fault("reserved label", "node-label", put(L4, "labels|kubernetes.io/role", "gpu")),
    Fault("node role by name", "node-role-arn", put(L4, "nodeRoleArn", "enginehouse-node")),
    Fault("new nodes first on a block", "update-strategy", put(H100, "updateConfig.updateStrategy", "DEFAULT")),
    Fault("no node repair", "node-repair", put(L4, "nodeRepairConfig.enabled", False)),
    Fault("two autoscalers", "two-autoscalers", all_of(chart("karpenter"), chart("cluster-autoscaler"))),
)  # fmt: skip
IMAGES = (
    Fault("AMI of another architecture", "ami-type", put(L4, "amiType", "AL2023_ARM_64_NVIDIA")),
    Fault("AMI without a driver", "ami-without-driver", put(L4, "amiType", "AL2023_x86_64_STANDARD")),
    Fault("AL2 past its end", "ami-al2-ended", put(L4, "amiType", "AL2_x86_64_GPU")),
    Fault("AMI release not pinned", "ami-release-unpinned", drop(L4, "releaseVersion")),
    Fault("GPU operator installs the driver", "gpu-operator-driver", chart("gpu-operator")),
    Fault("two device plugins", "device-plugin-twice", put(L4, "amiType", "BOTTLEROCKET_x86_64_NVIDIA")),
    Fault("image snapshot on AL2023", "image-preload",
          put(L4_TEMPLATE, "blockDeviceMappings.0.ebs.snapshotId", "snap-00000000000000001")),
    Fault("MIG on an L4", "mig-without-hardware", put(L4, "labels|nvidia.com/mig.config", "all-1g.10gb")),
    Fault("MIG profile of another GPU", "mig-profile", put(H100, "labels|nvidia.com/mig.config", "all-1g.5gb")),
    Fault("MIG on Bottlerocket", "mig-on-bottlerocket",
          all_of(put(H100, "labels|nvidia.com/mig.config", "all-1g.10gb"),
                 put(H100, "labels|enginehouse.dev/gpu-announcer", "bottlerocket"),
                 put(H100, "amiType", "BOTTLEROCKET_x86_64_NVIDIA"))),
    Fault("one time slice", "gpu-shares", put(PLUGIN, "values.config.map.exclusive", _TIME_SLICES)),
    Fault("slices on demand before 1.34", "dynamic-slices-allocation",
          all_of(chart("dra-driver-nvidia-gpu", {"featureGates": {"DynamicMIG": True}}),
                 put(CLUSTER, "version", "1.33"))),
)  # fmt: skip
CAPACITY = (
    Fault("block without its reservation", "capacity-block-target",
          drop(H100_TEMPLATE, "capacityReservationSpecification")),
    Fault("block without its market type", "capacity-block-market", drop(H100_TEMPLATE, "instanceMarketOptions")),
    Fault("block as on-demand", "capacity-block-market", put(H100, "capacityType", "ON_DEMAND")),
    Fault("block's type in the node group", "capacity-block-instance-type",
          all_of(drop(H100_TEMPLATE, "instanceType"), put(H100, "instanceTypes", ["p5.48xlarge"]))),
    Fault("block in another zone", "reservation-zone", stands_in(H100, "b")),
    Fault("spot with a reservation", "reservation-with-spot",
          all_of(put(L4_TEMPLATE, "capacityReservationSpecification", _TARGET), stands_in(L4, "a"))),
    Fault("block of a type that has none", "purchase-not-sold",
          all_of(put(L4, "capacityType", "CAPACITY_BLOCK"), stands_in(L4, "a"),
                 put(L4_TEMPLATE, "instanceMarketOptions", {"marketType": "capacity-block"}),
                 put(L4_TEMPLATE, "capacityReservationSpecification", _TARGET))),
    Fault("placement group over zones", "placement-group-zones", placed(L4_TEMPLATE)),
    Fault("placement group beside a reservation", "placement-group-with-reservation", placed(H100_TEMPLATE)),
    Fault("placement strategy that there is not", "placement-group-strategy", placed(L4_TEMPLATE, "rack")),
    Fault("EFA over zones", "efa-zones",
          all_of(drop(STAGING_TEMPLATE, "placement"), stands_in(STAGING_H100, "a", "b")), "staging"),
)  # fmt: skip
FAULTS = (*INTERFACES, *GROUPS, *IMAGES, *CAPACITY)
