"""Policies on who may do what: roles and their documents, access to the cluster, and the doors of the control plane."""

from collections.abc import Iterator
from typing import Literal

from fleet.cloud import identity
from fleet.cloud.finding import Finding
from fleet.cloud.identity import ClusterAccess, DocumentKind, ServiceDoor
from policies.adapter import Check, Props, Seen
from policies.reading import at, count, document, flag, labels, parts, text, texts

ROLE = "aws:iam/role:Role"
CLUSTER = "aws:eks/cluster:Cluster"
_DOCUMENTS = (
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/policy:Policy",
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
)
_RESOURCE_DOCUMENTS = (
    "aws:kms/key:Key",
    "aws:kms/keyPolicy:KeyPolicy",
    "aws:ecr/repositoryPolicy:RepositoryPolicy",
    "aws:sns/topicPolicy:TopicPolicy",
    "aws:sqs/queuePolicy:QueuePolicy",
)
_ATTACHMENTS = (
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
_ROLE_USERS = (CLUSTER, "aws:eks/podIdentityAssociation:PodIdentityAssociation")
SERVICE = "kubernetes:core/v1:Service"
INGRESS = "kubernetes:networking.k8s.io/v1:Ingress"
_COMPONENT = "app.kubernetes.io/component"
_CONTROL_PLANE = "control-plane"
_SERVICE_SCHEME = "service.beta.kubernetes.io/aws-load-balancer-scheme"
_SERVICE_INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"
_INGRESS_SCHEME = "alb.ingress.kubernetes.io/scheme"


def _judged(kind: DocumentKind, props: Props, *path: str) -> Iterator[Finding]:
    found = document(props, *path)
    if found is not None:
        yield from identity.document_findings(kind, identity.statements_of(found))


def _document(seen: Seen) -> Iterator[Finding]:
    yield from _judged("identity", seen.props, "policy")


def _inline(seen: Seen) -> Iterator[Finding]:
    for item in parts(seen.props, "inlinePolicies"):
        yield from _judged("identity", item, "policy")


def _resource_document(seen: Seen) -> Iterator[Finding]:
    yield from _judged("resource", seen.props, "policy")


def _trust(seen: Seen) -> Iterator[Finding]:
    yield from _judged("trust", seen.props, "assumeRolePolicy")


def _attachment(seen: Seen) -> Iterator[Finding]:
    yield from identity.attachment_findings(text(seen.props, "policyArn") or "")


def _attached(seen: Seen) -> Iterator[Finding]:
    for arn in texts(seen.props, "managedPolicyArns"):
        yield from identity.attachment_findings(arn)


def _role_arn(seen: Seen) -> Iterator[Finding]:
    yield from identity.role_findings("role_arn", text(seen.props, "roleArn") or "")


def _access(seen: Seen) -> Iterator[Finding]:
    mode = text(seen.props, "accessConfig", "authenticationMode") or "CONFIG_MAP"
    said = at(seen.props, "accessConfig", "bootstrapClusterCreatorAdminPermissions")
    yield from identity.access_findings(ClusterAccess(mode, creator_is_admin=said is not False))


def _service(seen: Seen) -> Iterator[Finding]:
    opens = _service_opens(seen.props)
    if opens != "nothing":
        yield from identity.door_findings(ServiceDoor(_component(seen.props, "spec", "selector"), "Service", opens))


def _service_opens(props: Props) -> Literal["nothing", "nodes", "network", "internet"]:
    kind = text(props, "spec", "type")
    if kind == "NodePort":
        return "nodes"
    if kind != "LoadBalancer":
        return "internet" if count(props, "spec", "externalIPs") else "nothing"
    notes = at(props, "metadata", "annotations") or {}
    is_internal = text(notes, _SERVICE_SCHEME) == "internal" or flag(notes, _SERVICE_INTERNAL)
    return "network" if is_internal else "internet"


def _ingress(seen: Seen) -> Iterator[Finding]:
    if not _leads_to_control_plane(seen.props):
        return
    notes = at(seen.props, "metadata", "annotations") or {}
    opens: Literal["network", "internet"] = "internet" if text(notes, _INGRESS_SCHEME) != "internal" else "network"
    yield from identity.door_findings(ServiceDoor(_CONTROL_PLANE, "Ingress", opens))


def _leads_to_control_plane(props: Props) -> bool:
    backends = [at(props, "spec", "defaultBackend") or {}]
    for rule in parts(props, "spec", "rules"):
        backends += [at(path, "backend") or {} for path in parts(rule, "http", "paths")]
    return any(_CONTROL_PLANE in (text(backend, "service", "name") or "") for backend in backends)


def _component(props: Props, *selector: str) -> str:
    """The component that a selector chooses, else the one that the object's own labels name."""
    chosen = labels(props, *selector)
    return chosen.get(_COMPONENT) or labels(props, "metadata", "labels").get(_COMPONENT, "")


_DOCUMENT_RULES = (identity.ACTION_WILDCARD, identity.RESOURCE_WILDCARD)
CHECKS = (
    Check(_DOCUMENT_RULES, _DOCUMENTS, _document),
    Check(_DOCUMENT_RULES, (ROLE,), _inline),
    Check((identity.TRUST_EVERYONE,), _RESOURCE_DOCUMENTS, _resource_document),
    Check((identity.TRUST_EVERYONE, identity.POD_SESSION), (ROLE,), _trust),
    Check((identity.ADMIN_POLICY,), _ATTACHMENTS, _attachment),
    Check((identity.ADMIN_POLICY,), (ROLE,), _attached),
    Check((identity.ROLE_ARN,), _ROLE_USERS, _role_arn),
    Check((identity.CREATOR_ADMIN,), (CLUSTER,), _access),
    Check((identity.ADMIN_API,), (SERVICE,), _service),
    Check((identity.ADMIN_API,), (INGRESS,), _ingress),
)
