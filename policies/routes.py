"""Where the traffic of a subnet goes, by the route tables of the stack."""

from collections.abc import Iterator

from pulumi_policy.proxy import UnknownValueError

from policies.adapter import Props, Seen
from policies.reading import parts, text

ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
_ITS_IDS = "igw-"


def leads_outside(subnet: Seen) -> bool:
    """Whether a route table of a subnet has a route to an internet gateway, which makes the subnet a public one."""
    return subnet.stack.once(_leads_outside, subnet)


def _leads_outside(subnet: Seen) -> bool:
    return any(subnet.stack.once(_is_open, table) for table in _tables(subnet))


def _is_open(table: Seen) -> bool:
    return any(_routes_outside(table))


def _tables(subnet: Seen) -> Iterator[Seen]:
    for association in subnet.stack.pointing_at(subnet, ASSOCIATION, "subnetId"):
        yield from association.links("routeTableId", TABLE)


def _routes_outside(table: Seen) -> Iterator[bool]:
    yield bool(table.mentions("routes", INTERNET_GATEWAY))
    for route in parts(table.props, "routes"):
        yield _is_internet(route)
    for beside in table.stack.pointing_at(table, ROUTE, "routeTableId"):
        yield bool(beside.mentions("gatewayId", INTERNET_GATEWAY)) or _is_internet(beside.props)


def _is_internet(route: Props) -> bool:
    """Whether a route's gateway is one by its id; what it is while unknown, its dependencies say."""
    try:
        return (text(route, "gatewayId") or "").startswith(_ITS_IDS)
    except UnknownValueError:
        return False
