"""Who may do what: IAM documents, roles, access to the cluster, and who reaches the admin API.

A document is judged by its kind: in the policy of a key or a bucket, ``Resource: "*"`` means that key or bucket, and a
trust policy says who may take a role.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fleet.cloud import iam_conditions, iam_patterns
from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.iam_document import IamDocument, Statement, read_document

DocumentKind = Literal["identity", "resource", "trust"]

_GUIDE = "IAM user guide, security best practices: least privilege"
_POD_IDENTITY = "EKS user guide, pod identity: trust of pods.eks.amazonaws.com"
_POD_SERVICE = "pods.eks.amazonaws.com"
_POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)
_ADMIN_POLICIES = (
    "AdministratorAccess",
    "DatabaseAdministrator",
    "IAMFullAccess",
    "NetworkAdministrator",
    "PowerUserAccess",
    "SystemAdministrator",
)
"""How the names of policies begin that are for administrators."""
_WHOLE_SERVICE = re.compile(r"arn:aws[a-z-]*:iam::aws:policy/(?:[\w-]+/)*\w*FullAccess(?:V\d+)?", re.ASCII)
_LISTED = 5
_SHOWN = 80

UNREADABLE = CloudRule(
    "iam-document-unreadable",
    Grade.HIGH,
    "An IAM document is one that IAM reads",
    "write it as one JSON object: Statement with Effect, Action and Resource or Principal",
    "IAM user guide, grammar of the JSON policy language",
)
ACTION_WILDCARD = CloudRule(
    "iam-action-wildcard",
    Grade.HIGH,
    "An IAM policy names what it allows",
    "name the actions; one verb like s3:Get* is fine, several at once ('*', 's3:*', 'iam:*Policy*') are not,"
    " and NotAction allows all the rest",
    _GUIDE,
)
RESOURCE_WILDCARD = CloudRule(
    "iam-resource-wildcard",
    Grade.MEDIUM,
    "An IAM policy names what its changing actions may touch",
    "name the ARNs, or give the statement a condition that names what it touches, such as aws:ResourceTag",
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
    "name the principal; '*' is everyone unless a condition names who, and a web identity needs its subject there",
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
class ServiceDoor:
    """How one thing in the cluster can be reached from outside of it."""

    component: str
    kind: str
    """``Service``, ``Ingress`` or a route."""
    opens: Literal["nothing", "nodes", "network", "internet"]
    """``nodes`` = a port of every node; ``network`` = an internal load balancer."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How a cluster lets people in."""

    authentication_mode: str = "CONFIG_MAP"
    creator_is_admin: bool = True


def statements_of(document: object) -> tuple[Statement, ...]:
    """The statements of an IAM document as it stands in JSON, as far as they can be read."""
    return read_document(document).statements


def shape_findings(document: IamDocument, kind: DocumentKind | None = None) -> Iterator[Finding]:
    """What of a document can't be read, or IAM does not take where it stands; ``None`` = it stands anywhere."""
    misplaced = [problem for item in document.statements for problem in _misplaced(item, kind)] if kind else []
    problems = tuple(dict.fromkeys((*document.problems, *misplaced)))
    if problems:
        yield Finding(UNREADABLE, "; ".join(_few(problems)))


def _misplaced(statement: Statement, kind: DocumentKind) -> Iterator[str]:
    """What a statement of an identity has to say and one of a thing may leave out, and the other way round."""
    who, what = ({name, f"not{name}"} & statement.elements for name in ("principal", "resource"))
    if kind == "identity" and who:
        yield "a statement names a Principal, and what an identity may do names none: it is whoever carries it"
    if kind == "identity" and not what:
        yield "a statement says no Resource"
    if kind != "identity" and not who:
        yield "a statement says no Principal"
    if kind == "trust" and what:
        yield "a statement names a Resource, and the trust of a role has none"


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


def grantee_findings(what: str, who: str, *, is_narrowed: bool = False) -> Iterator[Finding]:
    """Whether a grant outside of a document names whom it is for."""
    if iam_patterns.is_everyone(who) and not is_narrowed:
        yield Finding(TRUST_EVERYONE, f"{what} is '{who}', which is everyone")


def attachment_findings(policy_arn: str) -> Iterator[Finding]:
    """What is wrong with a managed policy that a role carries."""
    name = policy_arn.rpartition("/")[2]
    if name.startswith(_ADMIN_POLICIES):
        yield Finding(ADMIN_POLICY, f"the policy {name} is attached")
    elif _WHOLE_SERVICE.fullmatch(policy_arn):
        yield Finding(ACTION_WILDCARD, f"the policy {name} is attached, which allows every action of a service")


def role_findings(what: str, arn: str) -> Iterator[Finding]:
    """What is wrong with the role that something is given."""
    if not _ROLE_ARN.fullmatch(arn):
        yield Finding(ROLE_ARN, f"{what} is {arn!r}, which is no ARN of a role")


def principal_findings(what: str, arn: str) -> Iterator[Finding]:
    """What is wrong with whom a cluster lets in: a role, or a single person."""
    if not _ROLE_ARN.fullmatch(arn.replace(":user/", ":role/", 1)):
        yield Finding(ROLE_ARN, f"{what} is {arn!r}, which is no ARN of a role or a user")


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


def _everyone(statement: Statement) -> Iterator[Finding]:
    is_narrowed = iam_conditions.names_who(statement)
    for kind, who in statement.principals:
        if iam_patterns.is_everyone(who) and not is_narrowed:
            yield Finding(TRUST_EVERYONE, f"{statement.name}: the principal {_short(who)} is everyone")
        elif kind == "Federated" and not iam_conditions.names_subject(statement, who):
            yield Finding(TRUST_EVERYONE, f"{statement.name}: every subject of {_short(who)} is trusted")
    if "NotPrincipal" in statement.inverts:
        yield Finding(TRUST_EVERYONE, f"{statement.name}: NotPrincipal trusts everyone else")


def _actions(statement: Statement) -> Iterator[Finding]:
    wide = [action for action in statement.actions if iam_patterns.is_wide_action(action)]
    if wide:
        yield Finding(ACTION_WILDCARD, f"{', '.join(_few(wide))} is allowed")
    if "NotAction" in statement.inverts:
        yield Finding(ACTION_WILDCARD, "NotAction allows everything that it does not name")


def _resources(statement: Statement) -> Iterator[Finding]:
    """An action that is a wildcard itself is the business of the rule on actions."""
    if "NotResource" in statement.inverts:
        yield Finding(RESOURCE_WILDCARD, f"{statement.name}: NotResource allows everything that it does not name")
    places = [resource for resource in statement.resources if iam_patterns.is_wide_resource(resource)]
    if not places or iam_conditions.names_what(statement):
        return
    wide = [
        action
        for action in statement.actions
        if not iam_patterns.needs_no_resource(action) and not iam_patterns.is_wide_action(action)
    ]
    if wide:
        yield Finding(RESOURCE_WILDCARD, f"{', '.join(_few(wide))} is allowed on every resource ({_short(places[0])})")


def _pod_identity(statements: Sequence[Statement]) -> Iterator[Finding]:
    trusts = [item for item in statements if item.is_allow and ("Service", _POD_SERVICE) in item.principals]
    if not trusts:
        return
    allowed = [action for item in trusts for action in item.actions]
    missing = [wanted for wanted in _POD_ACTIONS if not any(iam_patterns.allows(item, wanted) for item in allowed)]
    if missing:
        yield Finding(POD_SESSION, f"{_POD_SERVICE} may not {' and '.join(missing)}")


def _few(items: Sequence[str]) -> list[str]:
    rest = len(items) - _LISTED
    return [*map(_short, items[:_LISTED]), *([f"and {rest} more"] if rest > 0 else [])]


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


RULES: tuple[CloudRule, ...] = (
    UNREADABLE,
    ACTION_WILDCARD,
    RESOURCE_WILDCARD,
    ADMIN_POLICY,
    TRUST_EVERYONE,
    POD_SESSION,
    ROLE_ARN,
    CREATOR_ADMIN,
    ADMIN_API,
)
