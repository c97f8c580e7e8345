"""The same mistakes where they stand elsewhere: on types of no table, in templates of no node group, in other words."""

from typing import Any

from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.edited import Program
from tests.policies.fault import Change, Fault, add, all_of, drop, put
from tests.policies.faults_of_access import TAGS, document
from tests.policies.faults_of_ground import FILE_SYSTEM, LINK, READ_POLICY
from tests.policies.faults_of_nodes import (
    EFA_GROUP,
    H100,
    H100_TEMPLATE,
    L4,
    L4_TEMPLATE,
    STAGING_H100,
    STAGING_TEMPLATE,
    placed,
    stands_in,
)
from tests.policies.faults_of_workloads import SCALER, trigger

SYSTEM, SYSTEM_TEMPLATE = "NodeGroup system-nodes", "LaunchTemplate system-template"
STAGING_PLACEMENT = "PlacementGroup h100-eu-central-1a-placement"
ADD_ON = "Addon add-ons-coredns"
_ROLE = "arn:aws:iam::111122223333:role/x"
_BLOCK = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"
_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
_FARGATE = "aws:eks/fargateProfile:FargateProfile"
_RULE = "aws:vpc/securityGroup{0}Rule:SecurityGroup{0}Rule"
_LUSTRE_GROUP = "SecurityGroup lustre-access-group"
_PLACEMENT_ARN = "arn:aws:ec2:eu-central-1:111122223333:placement-group"
_PORTS = ((988, 988), (1018, 1023))


def nics(template: str, *interfaces: dict[str, Any]) -> Change:
    """The interfaces of a template, with the groups that it gives the first one."""

    def change(program: Program) -> None:
        groups = program.get(H100_TEMPLATE, "networkInterfaces.0.securityGroups")
        found = [{"networkCardIndex": 0, "securityGroups": groups, **item} for item in interfaces]
        sources = {"networkInterfaces": [EFA_GROUP, "Cluster cluster-cluster"]}
        program.put(template, "networkInterfaces", found, of=sources)

    return change


def unused_template(program: Program) -> None:
    """A template that no node group uses, with a public address on an efa-only interface."""
    inputs = dict(program.get(H100_TEMPLATE))
    first, second = inputs["networkInterfaces"][:2]
    both = [first, {**second, "associatePublicIpAddress": "true"}]
    sources = {"networkInterfaces": [EFA_GROUP, "Cluster cluster-cluster"]}
    others = {"networkInterfaces": both, "instanceType": "c5n.18xlarge", "tags": TAGS}
    program.add("aws:ec2/launchTemplate:LaunchTemplate", "scaled", {**inputs, **others}, of=sources)


def groups_of_template(template: str, *, keeps: bool) -> Change:
    """Security groups on a template beside its interfaces, with groups of their own or without."""

    def change(program: Program) -> None:
        cluster = program.get(H100_TEMPLATE, "networkInterfaces.0.securityGroups.0")
        if not keeps:
            program.put(template, "networkInterfaces", [{"deviceIndex": 0}])
        sources = {"vpcSecurityGroupIds": [EFA_GROUP] if keeps else ["Cluster cluster-cluster"]}
        program.put(template, "vpcSecurityGroupIds", [program.id(EFA_GROUP) if keeps else cluster], of=sources)

    return change


def block(zone: object, type_: object) -> Change:
    """A Capacity Block of the stack as the reservation of the H100 nodes."""
    target = {"capacityReservationTarget": {"capacityReservationId": "id-of-block"}}
    answers = {"availabilityZone": zone, "instanceType": type_, "tags": TAGS}
    of = {"capacityReservationSpecification": ["CapacityBlockReservation block"]}
    return all_of(add(_BLOCK, "block", answers), put(H100_TEMPLATE, "capacityReservationSpecification", target, of=of))


def reserved(into: str | None, *, linked: bool = False) -> Change:
    """The H100 nodes of staging take a reservation, which may be one in their placement group."""
    target = {"capacityReservationTarget": {"capacityReservationId": "id-of-own"}}
    of = {"capacityReservationSpecification": ["CapacityReservation own"]}
    inputs = {"availabilityZone": "eu-central-1a", "instanceType": "p5.48xlarge", "tags": TAGS}
    placement = {} if into is None else {"placementGroupArn": f"{_PLACEMENT_ARN}/{into}"}
    return all_of(
        add(
            _RESERVATION,
            "own",
            {**inputs, **placement},
            of={"placementGroupArn": [STAGING_PLACEMENT]} if linked else {},
        ),
        put(STAGING_TEMPLATE, "capacityReservationSpecification", target, of=of),
        put(STAGING_H100, "updateConfig.updateStrategy", "MINIMAL"),
    )


def shared_placement(program: Program) -> None:
    """L4 nodes of another zone in the placement group of the H100 nodes."""
    placement = program.get(STAGING_TEMPLATE, "placement")
    program.put(L4_TEMPLATE, "placement", placement, of={"placement": [STAGING_PLACEMENT]})
    stands_in(L4, "b")(program)


def shared_name(*letters: str) -> Change:
    """Two groups of prod in a placement group from elsewhere, each in a zone."""
    group = {"groupName": "from-elsewhere"}
    return all_of(
        put(L4_TEMPLATE, "placement", group), put(SYSTEM_TEMPLATE, "placement", group),
        stands_in(L4, letters[0]), stands_in(SYSTEM, letters[1]),
    )  # fmt: skip


def lustre_by_range(cidr: str) -> Change:
    """The ports of the file system are open to a range of addresses, and to nothing else."""

    def change(program: Program) -> None:
        for item in program.resources:
            if "lustre-access" in item.name and item.type.endswith("Rule"):
                program.remove(f"{item.type.rsplit(':', 1)[-1]} {item.name.split('-', 2)[2]}")
        for way in ("Ingress", "Egress"):
            for first, last in _PORTS:
                rule = {"ipProtocol": "tcp", "fromPort": first, "toPort": last, "cidrIpv4": cidr, "tags": TAGS}
                program.add(
                    _RULE.format(way), f"{way}-{first}", {**rule, "securityGroupId": program.id(_LUSTRE_GROUP)},
                    of={"securityGroupId": [_LUSTRE_GROUP]},
                )  # fmt: skip

    return change


def custom_image(group: str, template: str) -> Change:
    """An image of one's own, and nothing about it in the node group."""
    beside = (drop(group, key) for key in ("amiType", "version", "releaseVersion"))
    return all_of(put(template, "imageId", "ami-00000000000000001"), *beside)


def query(text: str) -> Change:
    """What a trigger asks for."""
    return all_of(
        trigger("spec.triggers.1.metadata.query", text), put(SCALER, "spec.triggers.1.metricType", "AverageValue")
    )


def unlabelled(text: str) -> Change:
    """What a trigger of a scaler asks for that names no engine."""
    return all_of(query(text), drop(SCALER, "metadata.labels"))


def retyped(old: str, new: str) -> Change:
    """Resources of the program under the name that the SDK had for them before."""
    return lambda program: program.retype(old, new)


_STATEMENT = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::weights/*"}
NODES = (
    Fault("two interfaces on one device of a type of no table", "interface-index",
          nics(SYSTEM_TEMPLATE, {"deviceIndex": 0}, {"deviceIndex": 0})),
    Fault("no primary interface on a type of no table", "interface-primary",
          nics(SYSTEM_TEMPLATE, {"deviceIndex": 1})),
    Fault("a public efa-only interface in a template of no node group", "efa-only-public-ip", unused_template),
    Fault("a public efa-only interface on a type of no table", "efa-only-public-ip",
          nics(SYSTEM_TEMPLATE, {"deviceIndex": 0},
               {"deviceIndex": 1, "interfaceType": "efa-only", "ipv4PrefixCount": 1})),
    Fault("EFA group on the template beside complete interfaces", "security-groups-twice",
          groups_of_template(H100_TEMPLATE, keeps=True)),
    Fault("cluster group on the template beside interfaces without", "security-groups-twice",
          groups_of_template(L4_TEMPLATE, keeps=False)),
    Fault("empty remote access beside a template", "remote-access-with-template", put(L4, "remoteAccess", {})),
    Fault("more types than a node group takes", "instance-type-places",
          all_of(drop(L4_TEMPLATE, "instanceType"), put(L4, "instanceTypes", ["g6.xlarge"] * 21))),
    Fault("image for Arm on a type of no table", "ami-type", put(SYSTEM, "amiType", "AL2023_ARM_64_STANDARD")),
    Fault("Arm processors with an image for others", "ami-type", put(SYSTEM, "instanceTypes", ["m7g.large"])),
    Fault("MIG profile that is none", "mig-profile", put(H100, "labels|nvidia.com/mig.config", "all-1g10gb")),
    Fault("version beside an image of one's own", "version-with-image",
          all_of(custom_image(SYSTEM, SYSTEM_TEMPLATE), put(SYSTEM, "version", "1.36"))),
)  # fmt: skip
CAPACITY = (
    Fault("Capacity Block of the stack in another zone", "reservation-zone", block("eu-central-1c", "p5.48xlarge")),
    Fault("Capacity Block of the stack of another type", "reservation-instance-type",
          block("eu-central-1a", "p4d.24xlarge")),
    Fault("one placement group for two zones", "placement-group-zones", shared_placement, "staging"),
    Fault("one placement group from elsewhere for two zones", "placement-group-zones", shared_name("a", "b")),
    Fault("reservation that is not in the placement group", "placement-group-with-reservation",
          reserved(None), "staging"),
    Fault("reservation in another placement group", "placement-group-with-reservation",
          reserved("other"), "staging"),
)  # fmt: skip
STORAGE = (
    Fault("file system open to a range without it", "lustre-ports", lustre_by_range("10.250.0.0/16"), "staging"),
    Fault("metadata without a mode", "lustre-metadata", put(FILE_SYSTEM, "metadataConfiguration", {})),
    Fault("a folder of slashes", "lustre-link-path", put(LINK, "fileSystemPath", "//")),
)
IDENTITY = (
    *(Fault(f"{name} by its name", "role-arn", change) for name, change in {
        "an add-on's role": put(ADD_ON, "serviceAccountRoleArn", "pods"),
        "a pod's role of an add-on": put(ADD_ON, "podIdentityAssociations", [{"roleArn": "pods"}]),
        "who is let in": put("AccessEntry cluster-admin-111122223333-platform", "principalArn", "platform"),
        "a role of flow logs": put("FlowLog network-flow-logs", "iamRoleArn", "logs", of={"iamRoleArn": []}),
        "a Fargate role": add(_FARGATE, "one", {"podExecutionRoleArn": "x", "tags": TAGS}),
        "a target role": add("aws:eks/podIdentityAssociation:PodIdentityAssociation", "one",
                             {"roleArn": _ROLE, "targetRoleArn": "x", "tags": TAGS}),
    }.items()),
    *(Fault(name, "iam-document-unreadable", put(READ_POLICY, "policy", text)) for name, text in {
        "an empty document": "",
        "a statement without a resource": document({"Effect": "Allow", "Action": "s3:GetObject"}),
        "an identity's statement with a principal": document({**_STATEMENT, "Principal": {"AWS": _ROLE}}),
    }.items()),
)  # fmt: skip
TRIGGERS = (
    Fault("a metric that vLLM has not, of no engine", "keda-metric-known", unlabelled("sum(vllm:requests_waiting)")),
)
_DEFINED = {"metadata": {"name": "things"}, "spec": {"group": "example.invalid", "names": {"kind": "Thing"}}}
_THING = "kubernetes:example.invalid/v1:Thing"


def definition(version: str = "v1", *, needed: bool = False, through: str = "") -> Change:
    """A definition and an object of it, which may depend on it, or on something that does."""
    kind = "CustomResourceDefinition things"
    made = add(f"kubernetes:apiextensions.k8s.io/{version}:CustomResourceDefinition", "things", _DEFINED)
    between = add(through, "between", {"metadata": {"name": "a"}}, of={"metadata": [kind]}) if through else all_of()
    of = {"metadata": [f"{through.rsplit(':', 1)[-1]} between" if through else kind]} if needed else {}
    return all_of(made, between, add(_THING, "thing", {"metadata": {"name": "a"}}, of=of))


ORDER = (
    Fault("an object that does not wait for its definition", "crd-apart", definition()),
    Fault("an object that does not wait for its older definition", "crd-apart", definition("v1beta1")),
)
FAULTS = (*ORDER, *NODES, *CAPACITY, *STORAGE, *IDENTITY, *TRIGGERS)
CLEAN = (
    definition(needed=True),
    definition(needed=True, through="kubernetes:core/v1:Namespace"),
    custom_image(SYSTEM, SYSTEM_TEMPLATE),
    block("eu-central-1a", "p5.48xlarge"),
    nics(SYSTEM_TEMPLATE, {"deviceIndex": 0}, {"deviceIndex": 1}),
    shared_name("a", "a"),
    all_of(placed(L4_TEMPLATE, "spread"), put(SYSTEM_TEMPLATE, "placement", {"groupName": "together"})),
    all_of(put(SYSTEM, "instanceTypes", ["m7g.large"]), put(SYSTEM, "amiType", "AL2023_ARM_64_STANDARD")),
    put(H100, "labels|nvidia.com/mig.config", "all-balanced"),
    query("SUM(vllm:num_requests_waiting)"),
    query("Sum By (model_name) (vllm:num_requests_waiting{model_name='x'})"),
    put("AccessEntry cluster-admin-111122223333-platform", "principalArn", "arn:aws:iam::111122223333:user/one"),
    add("aws:eks/podIdentityAssociation:PodIdentityAssociation", "one", {"roleArn": _ROLE, "policy": "", "tags": TAGS}),
    *(retyped(f"aws:s3/bucket{kind}:Bucket{kind}", f"aws:s3/bucket{kind}V2:Bucket{kind}V2")
      for kind in ("Versioning", "ServerSideEncryptionConfiguration")),
)  # fmt: skip
"""Changes of the prod program that no policy minds."""
CLEAN_STAGING = (
    lustre_by_range("10.0.0.0/16"),
    reserved("the-group", linked=True),
    lambda program: reserved(program.id(STAGING_PLACEMENT))(program),
)
"""Changes of the staging program that no policy minds."""
UNKNOWN_ZONE_OF_BLOCK = block(UNKNOWN, "p5.48xlarge")
"""A Capacity Block whose zone the cloud says only after the update."""
