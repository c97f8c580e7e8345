"""IAM documents as text: what a role, a key or a bucket allows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Conditions = Mapping[str, Mapping[str, str | Sequence[str]]]
"""Operator -> key -> value or values."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; an identity's policy has no principals, a trust policy has no resources."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    """Principals that are services."""
    principals: tuple[str, ...] = ()
    """Principals of AWS: ARNs, or ``*`` with conditions."""
    conditions: Conditions = field(default_factory=dict)
    denies: bool = False


def document(*statements: Statement) -> str:
    """The document as JSON, the same text for the same statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": [dict(_entries(item)) for item in statements]})


def pod_identity_trust() -> str:
    """Who may take a role that pods get by EKS Pod Identity."""
    actions = ("sts:AssumeRole", "sts:TagSession")
    return document(Statement("PodIdentity", actions, services=("pods.eks.amazonaws.com",)))


def _entries(statement: Statement) -> Iterator[tuple[str, object]]:
    yield "Sid", statement.sid
    yield "Effect", "Deny" if statement.denies else "Allow"
    principals = {"Service": list(statement.services), "AWS": list(statement.principals)}
    if any(principals.values()):
        yield "Principal", {kind: names for kind, names in principals.items() if names}
    yield "Action", list(statement.actions)
    if statement.resources:
        yield "Resource", list(statement.resources)
    if statement.conditions:
        yield "Condition", statement.conditions
