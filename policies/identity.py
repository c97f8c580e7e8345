"""Policies on who may do what: roles and their documents, what others are granted, and access to the cluster."""

from collections.abc import Iterator

from fleet.cloud import identity
from fleet.cloud.finding import Finding
from fleet.cloud.iam_document import IamDocument, read_document
from fleet.cloud.identity import ClusterAccess, DocumentKind
from policies.adapter import Check, Props, Seen
from policies.iam_places import (
    ATTACHMENTS,
    BUCKET_DOCUMENTS,
    CLUSTER,
    GRANTEES,
    IDENTITY_DOCUMENTS,
    NARROWED_BY,
    OPTIONAL_ROLES,
    PRINCIPALS,
    RESOURCE_DOCUMENTS,
    ROLE,
    ROLES,
    WITH_OPTIONAL_DOCUMENT,
)
from policies.reading import at, json_at, parts, text, texts

_OF_RESOURCES = {**RESOURCE_DOCUMENTS, **BUCKET_DOCUMENTS}
_ROLE_USERS = tuple(dict.fromkeys((*ROLES, *OPTIONAL_ROLES)))


def _documents(seen: Seen) -> Iterator[tuple[DocumentKind, IamDocument]]:
    """The IAM documents of a resource; a place that holds nothing has none."""
    for kind, props, key in _places(seen):
        found = json_at(props, key)
        is_empty = found == "" and (props is not seen.props or seen.type in WITH_OPTIONAL_DOCUMENT)
        if found is not None and not is_empty:
            yield kind, read_document(found)


def _places(seen: Seen) -> Iterator[tuple[DocumentKind, Props, str]]:
    if seen.type in IDENTITY_DOCUMENTS:
        yield "identity", seen.props, IDENTITY_DOCUMENTS[seen.type]
    if seen.type in _OF_RESOURCES:
        yield "resource", seen.props, _OF_RESOURCES[seen.type]
    if seen.type == ROLE:
        yield "trust", seen.props, "assumeRolePolicy"
        yield from (("identity", item, "policy") for item in parts(seen.props, "inlinePolicies"))


def _shape(seen: Seen) -> Iterator[Finding]:
    for kind, found in _documents(seen):
        yield from identity.shape_findings(found, kind)


def _identity(seen: Seen) -> Iterator[Finding]:
    for kind, found in _documents(seen):
        if kind == "identity":
            yield from identity.document_findings(kind, found.statements)


def _trusted(seen: Seen) -> Iterator[Finding]:
    for kind, found in _documents(seen):
        if kind != "identity":
            yield from identity.document_findings(kind, found.statements)


def _grantee(seen: Seen) -> Iterator[Finding]:
    key = GRANTEES[seen.type]
    is_narrowed = any(at(seen.props, name) for name in NARROWED_BY)
    yield from identity.grantee_findings(key, text(seen.props, key) or "", is_narrowed=is_narrowed)


def _attached(seen: Seen) -> Iterator[Finding]:
    for arn in texts(seen.props, ATTACHMENTS[seen.type]):
        yield from identity.attachment_findings(arn)


def _role_arn(seen: Seen) -> Iterator[Finding]:
    for key in ROLES.get(seen.type, ()):
        yield from identity.role_findings(key, text(seen.props, key) or "")
    for path in OPTIONAL_ROLES.get(seen.type, ()):
        *above, key = path.split(".")
        for props in parts(seen.props, *above) if above else (seen.props,):
            arn = text(props, key)
            if arn is not None:
                yield from identity.role_findings(path, arn)


def _principal(seen: Seen) -> Iterator[Finding]:
    key = PRINCIPALS[seen.type]
    yield from identity.principal_findings(key, text(seen.props, key) or "")


def _access(seen: Seen) -> Iterator[Finding]:
    mode = text(seen.props, "accessConfig", "authenticationMode") or "CONFIG_MAP"
    said = at(seen.props, "accessConfig", "bootstrapClusterCreatorAdminPermissions")
    yield from identity.access_findings(ClusterAccess(mode, creator_is_admin=said is not False))


CHECKS = (
    Check((identity.UNREADABLE,), (*IDENTITY_DOCUMENTS, *_OF_RESOURCES, ROLE), _shape),
    Check((identity.ACTION_WILDCARD, identity.RESOURCE_WILDCARD), (*IDENTITY_DOCUMENTS, ROLE), _identity),
    Check((identity.TRUST_EVERYONE, identity.POD_SESSION), (ROLE,), _trusted),
    Check((identity.TRUST_EVERYONE,), tuple(RESOURCE_DOCUMENTS), _trusted),
    Check((identity.TRUST_EVERYONE,), tuple(GRANTEES), _grantee),
    Check((identity.ADMIN_POLICY, identity.ACTION_WILDCARD), tuple(ATTACHMENTS), _attached),
    Check((identity.ROLE_ARN,), _ROLE_USERS, _role_arn),
    Check((identity.ROLE_ARN,), tuple(PRINCIPALS), _principal),
    Check((identity.CREATOR_ADMIN,), (CLUSTER,), _access),
)
