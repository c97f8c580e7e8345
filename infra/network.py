"""The VPC: private subnets for nodes, public ones for NAT, endpoints into the cloud's services, and flow logs."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import cloudwatch, ec2, iam

from fleet.cloud.network import SubnetPlan, subnet_plan
from infra.iam_document import Statement, document
from infra.network_endpoints import Endpoints, EndpointsArgs
from infra.stack_config import NetworkConfig

EVERYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, slots=True)
class NetworkArgs:
    """How the network is cut."""

    network: NetworkConfig
    region: str
    log_key_arn: pulumi.Input[str]
    """The key of the flow logs."""
    protect: bool


class Network(pulumi.ComponentResource):
    """A VPC with a private and a public subnet in each zone.

    A zone's ranges follow from its letter, so that a zone can be added or taken away without moving another.
    """

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Network", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        plans = subnet_plan(args.network.cidr, args.network.zones)
        self.vpc = ec2.Vpc(
            f"{name}-vpc",
            cidr_block=str(args.network.cidr),
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags={"Name": name},
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        ec2.DefaultSecurityGroup(f"{name}-default-closed", vpc_id=self.vpc.id, opts=self._child)
        public = self._public(name, plans)
        routes = self._private_routes(name, args.network, public)
        private = self._private(name, plans, routes)
        self.vpc_id: pulumi.Output[str] = self.vpc.id
        self.private_subnets: Mapping[str, pulumi.Output[str]] = {zone: item.id for zone, item in private.items()}
        self.public_subnets: Mapping[str, pulumi.Output[str]] = {zone: item.id for zone, item in public.items()}
        self.endpoints = Endpoints(
            f"{name}-endpoints",
            EndpointsArgs(
                region=args.region,
                vpc_id=self.vpc.id,
                vpc_cidr=str(args.network.cidr),
                subnet_ids=list(self.private_subnets.values()),
                route_table_ids=[table.id for table in routes.values()],
            ),
            self._child,
        )
        self._flow_logs(name, args)
        self.register_outputs({"vpcId": self.vpc_id, "privateSubnetIds": list(self.private_subnets.values())})

    def _public(self, name: str, plans: tuple[SubnetPlan, ...]) -> dict[str, ec2.Subnet]:
        gateway = ec2.InternetGateway(f"{name}-gateway", vpc_id=self.vpc.id, tags={"Name": name}, opts=self._child)
        table = ec2.RouteTable(f"{name}-public", vpc_id=self.vpc.id, tags={"Name": f"{name}-public"}, opts=self._child)
        self._way_out = ec2.Route(
            f"{name}-public-out",
            route_table_id=table.id,
            destination_cidr_block=EVERYWHERE,
            gateway_id=gateway.id,
            opts=self._child,
        )
        subnets = {}
        for plan in plans:
            tags = {"Name": f"{name}-public-{plan.zone}", "kubernetes.io/role/elb": "1"}
            subnets[plan.zone] = self._subnet(f"{name}-public-{plan.zone}", plan.zone, str(plan.public), tags)
            self._associate(f"{name}-public-{plan.zone}", subnets[plan.zone], table)
        return subnets

    def _private_routes(
        self, name: str, network: NetworkConfig, public: Mapping[str, ec2.Subnet]
    ) -> dict[str, ec2.RouteTable]:
        """A table for each zone, whose way out is the zone's own NAT, or the first zone's where there is one."""
        first = network.zones[0]
        behind = network.zones if network.nat == "per-zone" else (first,)
        gateways = {zone: self._nat(f"{name}-nat-{zone}", public[zone]) for zone in behind}
        tables = {}
        for zone in network.zones:
            own = f"{name}-private-{zone}"
            tables[zone] = ec2.RouteTable(own, vpc_id=self.vpc.id, tags={"Name": own}, opts=self._child)
            ec2.Route(
                f"{own}-out",
                route_table_id=tables[zone].id,
                destination_cidr_block=EVERYWHERE,
                nat_gateway_id=gateways.get(zone, gateways[first]).id,
                opts=self._child,
            )
        return tables

    def _private(
        self, name: str, plans: tuple[SubnetPlan, ...], routes: Mapping[str, ec2.RouteTable]
    ) -> dict[str, ec2.Subnet]:
        subnets = {}
        for plan in plans:
            own = f"{name}-private-{plan.zone}"
            tags = {"Name": own, "kubernetes.io/role/internal-elb": "1"}
            subnets[plan.zone] = self._subnet(own, plan.zone, str(plan.private), tags)
            self._associate(own, subnets[plan.zone], routes[plan.zone])
        return subnets

    def _subnet(self, name: str, zone: str, cidr: str, tags: Mapping[str, str]) -> ec2.Subnet:
        return ec2.Subnet(
            name,
            vpc_id=self.vpc.id,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags=tags,
            opts=self._child,
        )

    def _associate(self, name: str, subnet: ec2.Subnet, table: ec2.RouteTable) -> None:
        ec2.RouteTableAssociation(name, subnet_id=subnet.id, route_table_id=table.id, opts=self._child)

    def _nat(self, name: str, subnet: ec2.Subnet) -> ec2.NatGateway:
        address = ec2.Eip(name, domain="vpc", tags={"Name": name}, opts=self._child)
        return ec2.NatGateway(
            name,
            allocation_id=address.allocation_id,
            subnet_id=subnet.id,
            tags={"Name": name},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._way_out]),
        )

    def _flow_logs(self, name: str, args: NetworkArgs) -> None:
        group = cloudwatch.LogGroup(
            f"{name}-flow-logs",
            name=f"/enginehouse/{name}/flow-logs",
            retention_in_days=args.network.flow_log_days,
            kms_key_id=args.log_key_arn,
            opts=self._child,
        )
        role = iam.Role(
            f"{name}-flow-logs",
            description=f"Flow logs of {name}",
            assume_role_policy=document(
                Statement("FlowLogs", ("sts:AssumeRole",), services=("vpc-flow-logs.amazonaws.com",))
            ),
            opts=self._child,
        )
        policy = iam.RolePolicy(
            f"{name}-flow-logs", role=role.name, policy=group.arn.apply(_writes_logs), opts=self._child
        )
        ec2.FlowLog(
            f"{name}-flow-logs",
            vpc_id=self.vpc.id,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_destination=group.arn,
            iam_role_arn=role.arn,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )


def _writes_logs(group_arn: str) -> str:
    actions = ("logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams")
    return document(Statement("Write", actions, (f"{group_arn}:*",)))
