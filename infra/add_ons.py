"""EKS add-ons: what nodes need to become ready, and what runs on them after."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import eks, iam

from infra.iam_document import Statement, document, pod_identity_trust

BEFORE_NODES = ("eks-pod-identity-agent", "vpc-cni", "kube-proxy")
"""Without them no node becomes ready; they run wherever a node is, and wait for none."""
ON_NODES = ("coredns", "metrics-server", "aws-fsx-csi-driver")
"""They become active only where nodes take their pods."""


@dataclass(frozen=True, slots=True)
class AddOnsArgs:
    """Which add-ons, at which versions."""

    cluster_name: pulumi.Input[str]
    versions: Mapping[str, str]
    """Add-on -> version; these are installed, in the order that they need."""
    wait_for: Sequence[pulumi.Resource] = ()


class AddOns(pulumi.ComponentResource):
    """Add-ons of one phase. The phases before and after nodes are two components."""

    def __init__(self, name: str, args: AddOnsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:AddOns", name, None, opts)
        self._name, self._args = name, args
        self.add_ons: list[pulumi.Resource] = []
        """What later phases wait for."""
        for add_on in (*BEFORE_NODES, *ON_NODES):
            if add_on in args.versions:
                self.add_ons.append(self._add_on(add_on, args.versions[add_on]))
        self.register_outputs({"addOns": sorted(args.versions)})

    def _add_on(self, add_on: str, version: str) -> eks.Addon:
        """Each waits for the ones before it: a pod's role works only where the agent runs."""
        roles = ROLES.get(add_on)
        identity, attached = self._identity(add_on, roles) if roles else (None, [])
        return eks.Addon(
            f"{self._name}-{add_on}",
            cluster_name=self._args.cluster_name,
            addon_name=add_on,
            addon_version=version,
            configuration_values=CONFIGURATION.get(add_on),
            pod_identity_associations=identity,
            preserve=False,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*self._args.wait_for, *self.add_ons, *attached]),
        )

    def _identity(
        self, add_on: str, roles: "AddOnRole"
    ) -> tuple[list[eks.AddonPodIdentityAssociationArgs], list[pulumi.Resource]]:
        child = pulumi.ResourceOptions(parent=self)
        own = f"{self._name}-{add_on}"
        role = iam.Role(
            f"{own}-role", description=f"The add-on {add_on}", assume_role_policy=pod_identity_trust(), opts=child
        )
        attached: pulumi.Resource
        if roles.managed_policy:
            attached = iam.RolePolicyAttachment(
                f"{own}-policy", role=role.name, policy_arn=roles.managed_policy, opts=child
            )
        else:
            attached = iam.RolePolicy(f"{own}-policy", role=role.name, policy=roles.policy(), opts=child)
        association = eks.AddonPodIdentityAssociationArgs(role_arn=role.arn, service_account=roles.service_account)
        return [association], [attached]


@dataclass(frozen=True, slots=True)
class AddOnRole:
    """What an add-on may do in the account."""

    service_account: str
    policy: Callable[[], str] = document
    managed_policy: str = ""
    """The ARN of the cloud's own policy; empty = ``policy`` says it."""


def _describes_file_systems() -> str:
    """Volumes are static, so the driver looks file systems up and makes none; FSx lists them by ``*`` alone."""
    return document(Statement("Describe", ("fsx:DescribeFileSystems",), ("*",)))


ROLES: Mapping[str, AddOnRole] = {
    "vpc-cni": AddOnRole("aws-node", managed_policy="arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"),
    "aws-fsx-csi-driver": AddOnRole("fsx-csi-controller-sa", _describes_file_systems),
}
CONFIGURATION: Mapping[str, str] = {
    "vpc-cni": json.dumps({"env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}}),
}
"""Add-on -> its own configuration. Prefixes: many pods on few interfaces, which EFA leaves to the first card."""
