"""Faults of networks and file systems that hide: in parts, in other spellings, in a resource beside."""

from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.fault import Fault, add, all_of, drop, put, remove
from tests.policies.faults_of_ground import CLUSTER, FILE_SYSTEM, LINK
from tests.policies.faults_of_nodes import H100_TEMPLATE, L4, L4_TEMPLATE, placed, stands_in

_TAGS = {"environment": "prod", "owner": "nobody"}
_GROUP_ARN = "arn:aws:resource-groups:eu-central-1:111122223333:group/invented"
_OF_GROUP = {"capacityReservationTarget": {"capacityReservationResourceGroupArn": _GROUP_ARN}}
_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
_INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_HTTPS = "SecurityGroupIngressRule network-endpoints-https"
_SUBNET = "Subnet network-private-eu-central-1a"
_EIGHTHS = [f"{first}.0.0.0/8" for first in range(256)]
_LUSTRE = "lustre-access"
_SELF_988, _SELF_1018 = (f"SecurityGroupIngressRule {_LUSTRE}-self-{ports}-in" for ports in ("988", "1018-1023"))
_FROM_988, _FROM_1018 = (
    f"SecurityGroupIngressRule {_LUSTRE}-from-cluster-{ports}-in" for ports in ("988", "1018-1023")
)


def own_reservation(instance_type: object):
    """A reservation of the stack in the zone of the L4 nodes, which take it."""
    target = {"capacityReservationTarget": {"capacityReservationId": "id-of-own"}}
    of = {"capacityReservationSpecification": ["CapacityReservation own"]}
    return all_of(
        add(_RESERVATION, "own", {"availabilityZone": "eu-central-1a", "instanceType": instance_type, "tags": _TAGS}),
        put(L4, "capacityType", "ON_DEMAND"),
        put(L4, "updateConfig.updateStrategy", "MINIMAL"),
        stands_in(L4, "a"),
        put(L4_TEMPLATE, "capacityReservationSpecification", target, of=of),
    )


def endpoint(*cidrs: str):
    """A public endpoint for some networks."""
    return all_of(
        put(CLUSTER, "vpcConfig.endpointPublicAccess", True), put(CLUSTER, "vpcConfig.publicAccessCidrs", list(cidrs))
    )


def routed(gateway: str):
    """The subnet of the nodes has a route table with one route."""
    rule = {"routes": [{"cidrBlock": "0.0.0.0/0", "gatewayId": gateway}]}
    association = {"subnetId": "x", "routeTableId": "x"}
    return all_of(
        add("aws:ec2/routeTable:RouteTable", "invented", rule),
        add("aws:ec2/routeTableAssociation:RouteTableAssociation", "invented", association,
            of={"subnetId": [_SUBNET], "routeTableId": ["RouteTable invented"]}),
    )  # fmt: skip


BUYING = (
    Fault("spot with a group of reservations", "reservation-with-spot",
          put(L4_TEMPLATE, "capacityReservationSpecification", _OF_GROUP)),
    Fault("spot that takes reservations only", "reservation-with-spot",
          put(L4_TEMPLATE, "capacityReservationSpecification.capacityReservationPreference",
              "capacity-reservations-only")),
    Fault("placement group beside a group of reservations", "placement-group-with-reservation",
          all_of(put(L4, "capacityType", "ON_DEMAND"), stands_in(L4, "a"), placed(L4_TEMPLATE),
                 put(L4_TEMPLATE, "capacityReservationSpecification", _OF_GROUP))),
    Fault("spot asked for by the template", "capacity-block-market",
          put(L4_TEMPLATE, "instanceMarketOptions", {"marketType": "spot"})),
    Fault("market of interruptible reservations", "capacity-block-market",
          put(L4_TEMPLATE, "instanceMarketOptions", {"marketType": "interruptible-capacity-reservation"})),
    Fault("reservation of another type", "reservation-instance-type", own_reservation("p5.48xlarge")),
    Fault("an interface that is there already", "template-forbidden-field",
          put(H100_TEMPLATE, "networkInterfaces.0.networkInterfaceId", "eni-00000000000000001")),
)  # fmt: skip
NETWORK = (
    Fault("endpoint open in parts", "cluster-endpoint-open", endpoint(*_EIGHTHS)),
    Fault("endpoint open between blanks", "cluster-endpoint-open", endpoint(" 0.0.0.0/0 ")),
    Fault("endpoint open to a word", "cluster-endpoint-open", endpoint("everyone")),
    Fault("endpoint open to a wide IPv6 range", "cluster-endpoint-open", endpoint("2000::/8")),
    Fault("group open in parts", "security-group-open",
          add("aws:ec2/securityGroup:SecurityGroup", "open",
              {"ingress": [{"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": _EIGHTHS}],
               "tags": _TAGS})),
    Fault("default group open", "security-group-open",
          add("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", "default",
              {"ingress": [{"protocol": -1, "cidrBlocks": ["0.0.0.0/0"]}], "tags": _TAGS})),
    Fault("prefix list of everybody", "security-group-open",
          add("aws:ec2/managedPrefixList:ManagedPrefixList", "all",
              {"entries": [{"cidr": "0.0.0.0/0"}], "tags": _TAGS})),
    Fault("nodes behind an internet gateway", "nodes-in-public-subnet", routed("igw-00000000000000001")),
    Fault("public IP by the template", "nodes-in-public-subnet",
          put(L4_TEMPLATE, "networkInterfaces",
              [{"networkCardIndex": 0, "deviceIndex": 0, "associatePublicIpAddress": "true"}])),
    Fault("small subnet by an IPAM pool", "subnet-too-small",
          all_of(drop(_SUBNET, "cidrBlock"), put(_SUBNET, "ipv4NetmaskLength", 28))),
)  # fmt: skip
LUSTRE = (
    Fault("file system open to strangers alone", "lustre-ports",
          all_of(remove(_FROM_988), remove(_FROM_1018),
                 add("aws:ec2/securityGroup:SecurityGroup", "stranger", {"tags": _TAGS}),
                 add(_INGRESS, "stranger-in",
                     {"ipProtocol": "-1", "securityGroupId": "x", "referencedSecurityGroupId": "x"},
                     of={"securityGroupId": [f"SecurityGroup {_LUSTRE}-group"],
                         "referencedSecurityGroupId": ["SecurityGroup stranger"]})), "staging"),
    Fault("no way out to itself", "lustre-ports",
          remove(f"SecurityGroupEgressRule {_LUSTRE}-self-988-out"), "staging"),
    Fault("taint that lets pods start", "lustre-startup-taint", put(L4, "taints.1.effect", "NO_SCHEDULE")),
    Fault("two subnets", "lustre-deployment", put(FILE_SYSTEM, "subnetIds", ["subnet-1", "subnet-2"])),
    Fault("a folder above", "lustre-link-path", put(LINK, "fileSystemPath", "/weights/../other")),
)  # fmt: skip
FAULTS = (*BUYING, *NETWORK, *LUSTRE)
CLEAN = (
    endpoint("203.0.113.0/24", "198.51.100.0/24", "2001:db8::/32"),
    put(CLUSTER, "vpcConfig.endpointPublicAccess", "false"),
    routed("vgw-00000000000000001"),
    own_reservation("g6.xlarge"),
    put(FILE_SYSTEM, "importPath", ""),
    put(_HTTPS, "ipProtocol", "TCP"),
)
UNKNOWN_TYPE_OF_RESERVATION = own_reservation(UNKNOWN)
