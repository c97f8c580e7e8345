"""Who may do what: IAM documents, roles, access to the cluster, and who reaches the admin API.

A document is judged by its kind: in the policy of a key or a bucket, ``Resource: "*"`` means that key or bucket, and a
trust policy says who may take a role.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fleet.cloud.finding import CloudRule, Finding, Grade

DocumentKind = Literal["identity", "resource", "trust"]

_GUIDE = "IAM user guide, security best practices: least privilege"
_POD_IDENTITY = "EKS user guide, pod identity: trust of pods.eks.amazonaws.com"
_POD_SERVICE = "pods.eks.amazonaws.com"
_POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
_ROLE_ARN = re.compile(r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")
_ADMIN_POLICIES = ("AdministratorAccess", "IAMFullAccess", "PowerUserAccess")
_LOOKS = ("Describe", "List")
_UNSCOPED = (
    "cloudwatch:GetMetricData",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:PutMetricData",
    "ecr:GetAuthorizationToken",
    "pricing:GetProducts",
    "sts:GetCallerIdentity",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
)
"""Actions that know no resource: IAM accepts nothing but ``*`` for them."""

ACTION_WILDCARD = CloudRule(
    "iam-action-wildcard",
    Grade.HIGH,
    "An IAM policy names what it allows",
    "name the actions; a prefix like s3:Get* is fine, '*' and 's3:*' are not, and NotAction allows all the rest",
    _GUIDE,
)
RESOURCE_WILDCARD = CloudRule(
    "iam-resource-wildcard",
    Grade.MEDIUM,
    "An IAM policy names what its changing actions may touch",
    "name the ARNs, or give the statement a condition",
    _GUIDE,
)
ADMIN_POLICY = CloudRule(
    "iam-admin-policy",
    Grade.CRITICAL,
    "No role of the cluster carries an administrator's policy",
    "attach the policy of the one job; people come in by access entries",
    _GUIDE,
)
TRUST_EVERYONE = CloudRule(
    "iam-trust-everyone",
    Grade.CRITICAL,
    "A role, a key and a bucket name whom they trust",
    "name the principal; '*' is everyone, and a web identity needs its subject in the condition",
    _GUIDE,
)
POD_SESSION = CloudRule(
    "pod-identity-trust",
    Grade.HIGH,
    "A role for pod identity lets the agent assume it and tag the session",
    "allow sts:AssumeRole and sts:TagSession to pods.eks.amazonaws.com",
    _POD_IDENTITY,
)
ROLE_ARN = CloudRule(
    "role-arn",
    Grade.HIGH,
    "Where a role is asked for stands the ARN of a role",
    "pass role.arn, not role.name or role.id",
    "facts of planted faults: neither mocks nor the provider's validation notice it",
)
CREATOR_ADMIN = CloudRule(
    "cluster-creator-admin",
    Grade.HIGH,
    "Access to the cluster stands in access entries alone",
    "take authentication mode API and bootstrap_cluster_creator_admin_permissions=False",
    "EKS user guide, access entries",
)
ADMIN_API = CloudRule(
    "admin-api-public",
    Grade.CRITICAL,
    "The admin API is reached from inside alone",
    "make it ClusterIP, or an internal load balancer",
    "own judgement: it starts, changes and deletes deployments",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an IAM document."""

    is_allow: bool = True
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    inverts: tuple[str, ...] = ()
    """``NotAction``, ``NotResource`` and ``NotPrincipal``, as far as they are there."""
    principals: tuple[tuple[str, str], ...] = ()
    """Kind (``AWS``, ``Service``, ``Federated``; ``*`` for all) and who."""
    condition_keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The start of its actions, to find it."""
        shown = ", ".join(self.actions[:3])
        return shown + (", ..." if len(self.actions) > 3 else "") or ", ".join(self.inverts)


@dataclass(frozen=True, slots=True)
class ServiceDoor:
    """How one thing in the cluster can be reached from outside of it."""

    component: str
    kind: str
    """``Service`` or ``Ingress``."""
    opens: Literal["nothing", "nodes", "network", "internet"]
    """``nodes`` = a port of every node; ``network`` = an internal load balancer."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How a cluster lets people in."""

    authentication_mode: str = "CONFIG_MAP"
    creator_is_admin: bool = True


def statements_of(document: Mapping[str, Any]) -> tuple[Statement, ...]:
    """The statements of an IAM document as it stands in JSON."""
    found = document.get("Statement", ())
    return tuple(_statement(item) for item in ([found] if isinstance(found, Mapping) else found))


def document_findings(kind: DocumentKind, statements: Sequence[Statement]) -> Iterator[Finding]:
    """What an IAM document allows that it should not."""
    for statement in statements:
        if not statement.is_allow:
            continue
        yield from _everyone(statement)
        if kind == "identity":
            yield from _actions(statement)
            yield from _resources(statement)
    if kind == "trust":
        yield from _pod_identity(statements)


def attachment_findings(policy_arn: str) -> Iterator[Finding]:
    """What is wrong with a managed policy that a role carries."""
    name = policy_arn.rpartition("/")[2]
    if name in _ADMIN_POLICIES:
        yield Finding(ADMIN_POLICY, f"the policy {name} is attached")


def role_findings(what: str, arn: str) -> Iterator[Finding]:
    """What is wrong with the role that something is given."""
    if not _ROLE_ARN.match(arn):
        yield Finding(ROLE_ARN, f"{what} is '{arn}', which is no ARN of a role")


def access_findings(access: ClusterAccess) -> Iterator[Finding]:
    """What is wrong with the ways into a cluster."""
    if access.authentication_mode != "API":
        yield Finding(CREATOR_ADMIN, f"authentication mode {access.authentication_mode} reads the aws-auth ConfigMap")
    if access.creator_is_admin:
        yield Finding(CREATOR_ADMIN, "whoever creates the cluster stays its administrator, in no list")


def door_findings(door: ServiceDoor) -> Iterator[Finding]:
    """What is wrong with how the control plane can be reached."""
    if door.component == "control-plane" and door.opens in ("nodes", "internet"):
        where = "on every node" if door.opens == "nodes" else "to the internet"
        yield Finding(ADMIN_API, f"a {door.kind} opens the control plane {where}")


def _statement(item: Mapping[str, Any]) -> Statement:
    return Statement(
        is_allow=item.get("Effect") == "Allow",
        actions=_texts(item.get("Action", ())),
        resources=_texts(item.get("Resource", ())),
        inverts=tuple(key for key in ("NotAction", "NotResource", "NotPrincipal") if key in item),
        principals=tuple(_principals(item.get("Principal", {}))),
        condition_keys=tuple(key for test in item.get("Condition", {}).values() for key in test),
    )


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _principals(value: str | Mapping[str, str | Sequence[str]]) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield "*", value
        return
    for kind, who in value.items():
        yield from ((kind, item) for item in _texts(who))


def _everyone(statement: Statement) -> Iterator[Finding]:
    for kind, who in statement.principals:
        if who == "*" and not statement.condition_keys:
            yield Finding(TRUST_EVERYONE, f"{statement.name}: the principal is everyone")
        elif kind == "Federated" and not any(key.endswith(":sub") for key in statement.condition_keys):
            yield Finding(TRUST_EVERYONE, f"{statement.name}: every subject of {who} is trusted")
    if "NotPrincipal" in statement.inverts:
        yield Finding(TRUST_EVERYONE, f"{statement.name}: NotPrincipal trusts everyone else")


def _actions(statement: Statement) -> Iterator[Finding]:
    wide = [action for action in statement.actions if action == "*" or action.endswith(":*")]
    if wide:
        yield Finding(ACTION_WILDCARD, f"{', '.join(wide)} is allowed")
    if "NotAction" in statement.inverts:
        yield Finding(ACTION_WILDCARD, "NotAction allows everything that it does not name")


def _resources(statement: Statement) -> Iterator[Finding]:
    if "NotResource" in statement.inverts:
        yield Finding(RESOURCE_WILDCARD, f"{statement.name}: NotResource allows everything that it does not name")
    if "*" not in statement.resources or statement.condition_keys:
        return
    wide = [action for action in statement.actions if not _needs_no_resource(action)]
    if wide:
        yield Finding(RESOURCE_WILDCARD, f"{', '.join(wide)} is allowed on every resource")


def _needs_no_resource(action: str) -> bool:
    """Whether ``*`` is what there is to say: looks at what is there, and what IAM knows no resource for.

    An action that is a wildcard itself is the business of the rule on actions.
    """
    name = action.rpartition(":")[2]
    return name == "*" or name.startswith(_LOOKS) or action in _UNSCOPED


def _pod_identity(statements: Sequence[Statement]) -> Iterator[Finding]:
    trusts = [item for item in statements if item.is_allow and ("Service", _POD_SERVICE) in item.principals]
    if not trusts:
        return
    allowed = {action for item in trusts for action in item.actions}
    missing = [action for action in _POD_ACTIONS if action not in allowed]
    if missing:
        yield Finding(POD_SESSION, f"{_POD_SERVICE} may not {' and '.join(missing)}")


RULES: tuple[CloudRule, ...] = (
    ACTION_WILDCARD,
    RESOURCE_WILDCARD,
    ADMIN_POLICY,
    TRUST_EVERYONE,
    POD_SESSION,
    ROLE_ARN,
    CREATOR_ADMIN,
    ADMIN_API,
)
