"""Reads text as units, one plain character each, so that odd forms of a value are found where they stand.

Full-width and other digits, odd spaces and dashes become the plain ones; an escape (``\\u0040``) is one unit;
characters that show nothing (zero-width, soft hyphen), escaped or not, belong to the unit after them.
"""

import re
import unicodedata
from enum import Enum
from typing import NamedTuple

ESCAPED_QUOTE = "\x00"
"""What an escaped quotation mark reads as: a boundary like the plain one, but it does not end a JSON string."""

_HIDDEN = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ff"
)
_HIDDEN_CODES = (
    r"00[aA][dD]|034[fF]|061[cC]|180[eE]|200[b-fB-F]|202[a-eA-E]|206[0-46-9]|[fF][eE]0[0-9a-fA-F]|[fF][eE][fF]{2}"
)
_HIDDEN_PAIR = r"\\{1,8}u[dD][bB]40\\{1,8}u[dD][cCdD][0-9A-Fa-f]{2}"
_UNSEEN = rf"(?:[{_HIDDEN}]|\\{{1,8}}u(?:{_HIDDEN_CODES})|{_HIDDEN_PAIR})"
_UNICODE = r"\\{1,8}u[0-9A-Fa-f]{4}"
_HIGH = r"\\{1,8}u[dD][89abAB][0-9A-Fa-f]{2}"
_LOW = r"\\{1,8}u[dD][c-fC-F][0-9A-Fa-f]{2}"
_CUT = r"\\{1,8}(?:u[0-9A-Fa-f]{0,3})?\Z"
_CUT_PAIR = rf"{_HIGH}(?:\\{{0,8}}|\\{{1,8}}u[0-9A-Fa-f]{{0,3}})\Z"
_SHORT = {
    '\\"': ESCAPED_QUOTE, "\\\\": "\\", "\\/": "/", "\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t",
}  # fmt: skip


def _special(short: str) -> re.Pattern[str]:
    escape = rf"{_HIGH}{_LOW}|{_UNICODE}{short}"
    return re.compile(
        rf"(?=[{_HIDDEN}\\])(?:"  # most characters are neither
        rf"(?P<cut>{_UNSEEN}{{0,16}}(?:{_CUT_PAIR}|{_CUT})|{_UNSEEN}{{1,16}}\Z)"
        rf"|{_UNSEEN}{{1,16}}(?P<char>[^{_HIDDEN}\\])"
        rf"|{_UNSEEN}{{0,16}}(?P<escape>{escape}))"
    )


class Writing(Enum):
    """How a text is written."""

    PLAIN = _special("")
    """Only Unicode escapes are escapes."""
    JSON = _special(r"|\\[\"\\/bfnrt]")
    """JSON text, as the arguments of a tool are."""


class Units(NamedTuple):
    """A text in plain characters."""

    normal: str
    cuts: list[int] | None
    """Where each unit begins in the text; None = every unit is one character."""
    read: int
    """How much of the text was read; an escape that is cut at the end waits for the rest of it."""

    def __repr__(self) -> str:
        """Nothing of what an answer says."""
        return "Units(...)"


def read_units(text: str, writing: Writing, *, is_end: bool) -> Units:
    """The units of a text, or of the part of it that can be read."""
    if "\\" not in text:
        if text.isascii():
            return Units(text, None, len(text))
        if _ANY_HIDDEN.search(text) is None:
            return Units(text.translate(_PLAIN), None, len(text))
    return _read_special(text, writing.value, is_end=is_end)


def _read_special(text: str, special: re.Pattern[str], *, is_end: bool) -> Units:
    pieces: list[str] = []
    cuts: list[int] = []
    at = 0
    for found in special.finditer(text):
        pieces.append(text[at : found.start()].translate(_PLAIN))
        cuts.extend(range(at, found.start()))
        at = found.end()
        if found["cut"] is not None:
            if not is_end:
                return Units("".join(pieces), cuts, found.start())
            pieces.append(found[0])
            cuts.extend(range(found.start(), at))
            continue
        pieces.append(_decoded(found["escape"]) if found["escape"] else found["char"].translate(_PLAIN))
        cuts.append(found.start())
    pieces.append(text[at:].translate(_PLAIN))
    cuts.extend(range(at, len(text)))
    return Units("".join(pieces), cuts, len(text))


def _decoded(escape: str) -> str:
    if escape in _SHORT:
        return _SHORT[escape]
    codes = [int(code[:4], 16) for code in escape.split("u")[1:]]
    code = codes[0] if len(codes) == 1 else 0x10000 + ((codes[0] - 0xD800) << 10) + (codes[1] - 0xDC00)
    if 0xD800 <= code < 0xE000:
        return "\ufffd"
    char = chr(code)
    return ESCAPED_QUOTE if char == '"' else char.translate(_PLAIN)


_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")


class _PlainForms(dict[int, int]):
    """Each character's plain form, worked out when first met."""

    def __missing__(self, code: int) -> int:
        plain = self[code] = ord(_plain(chr(code)))
        return plain


def _plain(char: str) -> str:
    if char.isascii():
        return char
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    if category == "Pd" or char in "\u2212\u2043":
        return "-"
    if category == "Cs":
        return "\ufffd"
    folded = unicodedata.normalize("NFKC", char)
    return folded if len(folded) == 1 and folded.isascii() else char


_PLAIN = _PlainForms()
