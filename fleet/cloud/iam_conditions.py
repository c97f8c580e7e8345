"""What a condition of an IAM statement narrows: a positive match of a key that says who or what."""

from collections.abc import Callable

from fleet.cloud.iam_document import Condition, Statement
from fleet.cloud.iam_patterns import is_any_network, is_any_subject, is_everyone, is_wild

_POSITIVE = frozenset({
    "stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike", "ipaddress", "bool",
    "numericequals", "null",
})  # fmt: skip
_WHO = frozenset({
    "aws:principalaccount", "aws:principalarn", "aws:principalorgid", "aws:principalorgpaths",
    "aws:principalservicename", "aws:principalisawsservice", "aws:sourceaccount", "aws:sourcearn", "aws:sourceip",
    "aws:sourceorgid", "aws:sourceorgpaths", "aws:sourceowner", "aws:sourcevpc", "aws:sourcevpce", "aws:sourcevpcarn",
    "aws:userid", "aws:username", "aws:vpcsourceip", "aws:vpceaccount", "aws:vpceorgid", "aws:vpceorgpaths",
    "elasticfilesystem:accessedviamounttarget", "elasticfilesystem:accesspointarn", "kms:calleraccount",
    "kms:grantisforawsresource", "s3:dataaccesspointaccount", "s3:dataaccesspointarn",
})  # fmt: skip
_WHO_FAMILIES = ("aws:principaltag/",)
_WHAT = frozenset({
    "aws:calledvia", "aws:calledviafirst", "aws:calledvialast", "aws:resourceaccount", "aws:resourceorgid",
    "aws:resourceorgpaths", "aws:sourcearn", "aws:viaawsservice",
})  # fmt: skip
_WHAT_FAMILIES = ("aws:requesttag/", "aws:resourcetag/")
_HOW = frozenset({
    "s3:authtype", "s3:signatureage", "s3:signatureversion", "s3:tlsversion", "s3:x-amz-server-side-encryption",
})  # fmt: skip
"""Keys of services that say how a request comes, not what it touches."""
_AUDIENCES = {"saml-provider": "saml:aud", "cognito": "cognito-identity.amazonaws.com:aud"}


def names_who(statement: Statement) -> bool:
    """Whether some line of the condition narrows who is meant by everyone."""
    return any(_is_who(test.key) and _narrows(test, _is_nobody) for test in statement.conditions)


def names_what(statement: Statement) -> bool:
    """Whether some line of the condition narrows what an action may touch."""
    return any(_is_what(test.key) and _narrows(test, is_wild) for test in statement.conditions)


def names_subject(statement: Statement, provider: str) -> bool:
    """Whether the condition says which identity of a provider is meant.

    A subject of OpenID Connect; SAML and Cognito have the audience, which is the one application or pool.
    """
    audience = next((key for kind, key in _AUDIENCES.items() if kind in provider), None)
    if audience is not None and any(test.key == audience and _narrows(test, is_wild) for test in statement.conditions):
        return True
    return any(test.key.endswith(":sub") and _narrows(test, is_any_subject) for test in statement.conditions)


def _narrows(test: Condition, is_nothing: Callable[[str], bool]) -> bool:
    """Whether a line holds for some requests alone: each value, for one is enough for it to hold."""
    if test.is_optional or test.operator not in _POSITIVE:
        return False
    if test.operator == "null":
        return set(test.values) == {"false"} and test.key.startswith(_WHAT_FAMILIES)
    if test.operator == "bool":
        return set(test.values) == {"true"}
    return not any(is_nothing(value) for value in test.values)


def _is_nobody(value: str) -> bool:
    return is_wild(value) or is_any_network(value) or is_everyone(value)


def _is_who(key: str) -> bool:
    return key in _WHO or key.startswith(_WHO_FAMILIES)


def _is_what(key: str) -> bool:
    if key.startswith("aws:"):
        return key in _WHAT or key.startswith(_WHAT_FAMILIES)
    return ":" in key and key not in _HOW
