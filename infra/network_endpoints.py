"""Ways into the cloud's own services that never leave the network: images, weights and tokens don't pass the NAT."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2, vpc

INTERFACES: tuple[str, ...] = ("ec2", "ecr.api", "ecr.dkr", "eks-auth", "logs", "sts")
"""Nodes: EC2 and ECR; pods' roles: eks-auth and STS; logs of the cluster."""
HTTPS = 443


@dataclass(frozen=True, slots=True)
class EndpointsArgs:
    """Where the endpoints stand."""

    region: str
    vpc_id: pulumi.Input[str]
    vpc_cidr: str
    subnet_ids: Sequence[pulumi.Input[str]]
    """One in each zone."""
    route_table_ids: Sequence[pulumi.Input[str]]
    """Tables of the private subnets, which get the way to S3."""


class Endpoints(pulumi.ComponentResource):
    """The gateway to S3 and an interface for each service."""

    def __init__(self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Endpoints", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=args.vpc_id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=list(args.route_table_ids),
            opts=child,
        )
        group = ec2.SecurityGroup(f"{name}-group", description="HTTPS from the network", vpc_id=args.vpc_id, opts=child)
        vpc.SecurityGroupIngressRule(
            f"{name}-https",
            security_group_id=group.id,
            cidr_ipv4=args.vpc_cidr,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            description="HTTPS from the network",
            opts=child,
        )
        for service in INTERFACES:
            ec2.VpcEndpoint(
                f"{name}-{service}",
                vpc_id=args.vpc_id,
                service_name=f"com.amazonaws.{args.region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=list(args.subnet_ids),
                security_group_ids=[group.id],
                opts=child,
            )
        self.group_id: pulumi.Output[str] = group.id
        self.register_outputs({"groupId": self.group_id})
