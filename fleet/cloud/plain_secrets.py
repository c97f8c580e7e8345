"""Secrets that stand in an object as text: by the name that a value has, and by what a value looks like."""

import re
from collections.abc import Iterable, Iterator, Mapping

_ENDINGS = (
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY",
    "SECRET_KEY", "CREDENTIALS", "_PWD",
)  # fmt: skip
_TEXT_TOKENS = frozenset(
    {"PAD", "EOS", "BOS", "UNK", "SEP", "CLS", "MASK", "STOP", "START", "END", "IMAGE", "AUDIO", "VIDEO", "MAX", "MIN",
     "SPECIAL", "DRAFT", "PER"}
)  # fmt: skip
"""What models call tokens of text: PAD_TOKEN is no secret."""
_SHAPE = re.compile(
    r"\bhf_[A-Za-z0-9]{30,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}|\bnvapi-[\w-]{30,}|\bsk-[\w-]{30,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----|://[^/\s:@$]*:[^/\s:@$]+@"
)
"""Keys as their makers write them, and passwords in addresses."""
_ASSIGNED = re.compile(r"(?<![\w$-])(?:--?)?([A-Za-z][\w-]*)=(\S+)")
_FLAG = re.compile(r"(?<![\w-])--([A-Za-z][\w-]*)\s+(\S+)")
_PLACE = re.compile(r"['\"]?/[\w.-]+/\S*")


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret."""
    plain = name.upper().replace("-", "_").replace(".", "_")
    before, _, last = plain.rpartition("_")
    if last == "TOKEN" and before.rpartition("_")[2] in _TEXT_TOKENS:
        return False
    return plain.endswith(_ENDINGS)


def secrets_among(values: Mapping[str, str]) -> Iterator[str]:
    """The names of the values that are secrets; one that only refers to another variable is none."""
    for name, value in values.items():
        if value and ((is_secret_name(name) and not value.lstrip().startswith("$")) or _SHAPE.search(value)):
            yield name


def secrets_in_words(words: Iterable[str]) -> Iterator[str]:
    """What a command line calls the secrets that it holds."""
    line = " ".join(words)
    named = {
        found[1]: None
        for pattern in (_ASSIGNED, _FLAG)
        for found in pattern.finditer(line)
        if is_secret_name(found[1]) and _is_value(found[2])
    }
    yield from named
    if not named and _SHAPE.search(line):
        yield "a key"


def _is_value(text: str) -> bool:
    """Not a reference, the next flag, or the path of a file."""
    bare = text.strip("'\"")
    return bool(bare) and not bare.startswith(("$", "-")) and _PLACE.match(text) is None
