"""What a pattern in an IAM document can match: judged by the texts that it lets through, not by how it is spelled."""

import re
from fnmatch import fnmatchcase
from ipaddress import ip_network

_WILD = "*?"
_ARN_PARTS = 6
_SMALLEST_PREFIX = {4: 8, 6: 20}
"""Networks with a shorter prefix are no place: they are a good part of the internet."""
_VERBS = (
    "abort", "accept", "add", "allocate", "apply", "associate", "assume", "attach", "authorize", "batch", "cancel",
    "change", "complete", "copy", "create", "decrypt", "delete", "deregister", "describe", "detach", "disable",
    "disassociate", "download", "enable", "encrypt", "execute", "export", "generate", "get", "import", "initiate",
    "invoke", "list", "modify", "move", "open", "pass", "publish", "purchase", "put", "query", "reboot", "receive",
    "register", "reject", "release", "remove", "replace", "replicate", "request", "reset", "restore", "resume",
    "revoke", "rotate", "run", "schedule", "search", "send", "set", "sign", "start", "stop", "subscribe", "suspend",
    "tag", "terminate", "unsubscribe", "untag", "update", "upload", "verify", "write",
)  # fmt: skip
"""How the names of actions begin."""
_SCHEMES = ("repo", "project_path", "organization", "system", "workspace", "pipeline", "spiffe", "https", "auth0")
"""How the subjects of known providers begin."""
_LOOKS = ("describe", "list")
_UNSCOPED = (
    "ce:get*", "cloudwatch:getmetricdata", "cloudwatch:getmetricstatistics", "cloudwatch:putmetricdata",
    "ec2messages:*", "ecr:getauthorizationtoken", "ecr-public:getauthorizationtoken", "kms:generaterandom",
    "pricing:*", "servicequotas:get*", "ssmmessages:*", "sts:getcalleridentity", "sts:getservicebearertoken",
    "tag:getresources", "xray:getsampling*", "xray:puttelemetryrecords", "xray:puttracesegments",
)  # fmt: skip
"""Actions that know no resource: IAM accepts nothing but ``*`` for them."""


def is_wild(text: str) -> bool:
    """Whether a pattern lets everything through."""
    return not text.strip(f"{_WILD}:/ ")


def is_wide_action(action: str) -> bool:
    """Whether a pattern lets actions of several kinds through: of any service, or that look, change and delete."""
    service, colon, name = action.casefold().partition(":")
    if not colon or _has_wildcard(service):
        return _has_wildcard(action)
    return _has_wildcard(name) and sum(_can_begin(name, verb) for verb in _VERBS) > 1


def is_wide_resource(resource: str) -> bool:
    """Whether a pattern lets through what it names nothing of: all of a service, or all there is."""
    parts = resource.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS:
        return _has_wildcard(resource)
    return is_wild(parts[-1])


def is_everyone(who: str) -> bool:
    """Whether a principal, or a value that names one, stands for more than one account."""
    parts = who.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS:
        return is_wild(who) or (parts[0] == "arn" and _has_wildcard(who))
    return _has_wildcard(parts[4]) or (not parts[4] and is_wild(parts[5]))


def is_any_network(cidr: str) -> bool:
    """Whether a network is so wide that it is no place."""
    try:
        network = ip_network(cidr.strip(), strict=False)
    except ValueError:
        return False
    return network.prefixlen < _SMALLEST_PREFIX[network.version]


def is_any_subject(subject: str) -> bool:
    """Whether the subject of a web identity names nobody: no namespace, no account, no organization."""
    if subject.startswith("system:serviceaccount:"):
        return is_wild(subject.removeprefix("system:serviceaccount:"))
    if not _has_wildcard(subject):
        return False
    scheme, colon, named = re.split(r"[*?]", subject, maxsplit=1)[0].partition(":")
    return not named.strip("/:") if colon else any(known.startswith(scheme) for known in _SCHEMES)


def needs_no_resource(action: str) -> bool:
    """Whether ``*`` is what there is to say: looks at what is there, and what IAM knows no resource for."""
    folded = action.casefold()
    name = folded.rpartition(":")[2]
    return name.startswith(_LOOKS) or any(fnmatchcase(folded, pattern) for pattern in _UNSCOPED)


def allows(pattern: str, action: str) -> bool:
    """Whether a pattern lets an action through."""
    wanted = re.escape(pattern.casefold()).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(wanted, action.casefold()) is not None


def _has_wildcard(text: str) -> bool:
    return any(sign in text for sign in _WILD)


def _can_begin(pattern: str, verb: str) -> bool:
    """Whether some text that begins with a verb is let through."""
    for sign, wanted in zip(pattern, verb, strict=False):
        if sign == "*":
            return True
        if sign not in ("?", wanted):
            return False
    return len(pattern) >= len(verb)
