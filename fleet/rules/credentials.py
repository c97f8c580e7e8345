"""Whether a text looks like a secret: a key, a token or a password that must not stand in a manifest."""

import re

from fleet.spec import FlagValue

_SECRET_FLAG = re.compile(r"(^|[-_.])(api[-_]?key|token|auth|password|passwd|passphrase|secret|bearer)$", re.IGNORECASE)
_KEY_PREFIX = re.compile(
    r"(^|[^A-Za-z0-9])(sk-|csk-|gsk_|hf_|xai-|nvapi-|gh[opsu]_|github_pat_|glpat-|AKIA|ASIA|eyJ)[A-Za-z0-9_\-]{12,}"
    r"|(^|\W)Bearer\s+\S{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_LONG_RUN = re.compile(r"[A-Za-z0-9+=]{20,}")


def carries_secret(flag: str, value: FlagValue) -> bool:
    """Whether a flag hands over a secret: by its name with any value, or by a value that looks like a key."""
    if isinstance(value, bool):
        return False
    return bool(_SECRET_FLAG.search(flag)) or bool(_KEY_PREFIX.search(str(value)))


def looks_like_key(text: str) -> bool:
    """Whether what should be the name of a secret looks like the secret itself."""
    if _KEY_PREFIX.search(text):
        return True
    return any(_is_mixed(run) for run in _LONG_RUN.findall(text))


def has_credentials(url: str) -> bool:
    """Whether a URL carries a user, a password or a key in its query."""
    authority = url.partition("://")[2].split("/", 1)[0].split("?", 1)[0]
    query = url.partition("?")[2]
    names = (part.partition("=")[0] for part in query.split("&"))
    return "@" in authority or any(name and _SECRET_FLAG.search(name) for name in names) or looks_like_key(query)


def _is_mixed(run: str) -> bool:
    """Letters of both cases or letters among digits, as random text has them and words have not."""
    has_digits = sum(letter.isdigit() for letter in run) >= 3
    has_letters = any(letter.isalpha() for letter in run)
    return has_digits and has_letters
