"""The classes of values that are known by themselves: what each looks like, and what confirms it."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fleet.pattern_parser import parse_pattern
from fleet.pattern_tree import Node
from gateway.output_filter.check_digits import passes_iban, passes_luhn

Confirm = Callable[[str, int, int], int]
"""(text, where a candidate begins, where its longest form ends) -> where the value ends; 0 = it is none."""

WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
"""Next to one of these, most values would be part of something else. Other letters may touch them, as in Chinese."""
DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789ABCDEFabcdef")

_GAP = r"[ \t-]"
_LETTER = r"A-Za-z\x{c0}-\x{52f}"
"""Of the Latin, Greek and Cyrillic alphabets: those that words are spaced in."""
_AT = "(?:@|%40|&#0{0,4}64;|&#[xX]0{0,4}40;|&commat;)"
"""As it stands in text, in a URL, and in HTML."""
_EMAIL = rf"[{_LETTER}0-9_%+][{_LETTER}0-9._%+'-]{{0,63}}{_AT}[{_LETTER}0-9-][{_LETTER}0-9.-]{{2,118}}"
_DOMAIN = re.compile(
    rf"{_AT}(?:[A-Za-z\u00c0-\u052f0-9-]{{1,63}}\.){{1,8}}(?:xn--[a-z0-9-]{{2,20}}|[A-Za-z\u00c0-\u052f]{{2,24}})"
)
# Digits are any digits in the shapes, and which may begin a value is asked afterwards: a RE2 automaton that tells them
# apart has a new state for nearly every number (280 us instead of 20 us for a chunk of digits).
_CARD = r"[0-9]{2}(?:[ \t-]{0,2}[0-9]){11,17}|[0-9]{4}(?:[._][0-9]{4}){3}|[0-9]{4}[._][0-9]{6}[._][0-9]{5}"
_POINTED = re.compile("[0-9]{4}[._]")
"""Points and underscores join the groups that are printed on a card; elsewhere they join numbers of other kinds."""
_PHONE = (
    r"\+\(?[0-9](?:[ \t./()-]{0,3}[0-9]){6,14}"
    r"|00[0-9](?:[ \t./()-]{0,2}[0-9]){7,13}"
    r"|(?:[0-9][ \t.-])?(?:\([0-9]{3}\)[ \t.-]{0,2}|[0-9]{3}[ \t.-]{1,2})[0-9]{3}[ \t.-]?[0-9]{4}"
    r"|\(?0[0-9]{1,4}\)?(?:[ \t./-]{1,2}[0-9]{2,8}){1,4}"
)
_DATE = re.compile(r"\d{2}[./ -]\d{2}[./ -](?:19|20)\d\d")
_IBAN = rf"[A-Z]{{2}}[0-9]{{2}}(?:{_GAP}?[A-Z0-9]){{11,30}}|[A-Za-z]{{2}}[0-9]{{2}}[A-Za-z0-9]{{11,30}}"
_IP = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\.[0-9]{1,3}){3})?"
_IBAN_LENGTHS = {
    found[1]: int(found[2])
    for found in re.finditer(
        "([A-Z]{2})([0-9]{2})",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
        "EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 "
        "KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 "
        "PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 "
        "VA22 VG24 XK20 YE30",
    )
}


@dataclass(frozen=True, slots=True)
class Detector:
    """One way to know a class of values."""

    name: str
    """The class."""
    label: str
    """What stands in a text instead of a value."""
    tree: Node
    confirm: Confirm
    hint: str | None = None
    """A cheap pattern that every value contains a match of; None = not known."""
    tail: str = ""
    """A class of characters that belong to the value for as long as they follow it."""
    ignore_case: bool = False
    not_after: frozenset[str] = frozenset()
    """Characters that a value does not stand behind; empty = whatever matches is a value."""
    is_own: bool = False
    """A tenant's: even the beginning of it is not shown before it is decided."""


def whole(_: str, __: int, end: int) -> int:
    """Every match is a value."""
    return end


def alone(text: str, _: int, end: int) -> int:
    """A value where no letter or digit follows it."""
    return end if _is_free_after(text, end, WORD) else 0


def digits_alone(text: str, _: int, end: int) -> int:
    """A value where no digit follows it."""
    return end if _is_free_after(text, end, DIGITS) else 0


def digits_of(text: str) -> str:
    """The digits alone."""
    return "".join(char for char in text if char in DIGITS)


def _is_free_after(text: str, end: int, chars: frozenset[str]) -> bool:
    return end == len(text) or text[end] not in chars


def _email(text: str, start: int, end: int) -> int:
    """A name at a domain; the full stop of a sentence after it is no part of it."""
    ends = [found.end() for found in _DOMAIN.finditer(text, start, end)]  # `%40` may stand in a name as well
    return ends[-1] if ends else 0


def _card(text: str, start: int, end: int) -> int:
    """13 to 19 digits with the check digit right; an expiry date or a code after the number is no part of it."""
    digits = ""
    found = 0
    if text[start] not in "23456":
        return 0
    if _POINTED.match(text, start):
        return end if _is_free_after(text, end, DIGITS) and passes_luhn(digits_of(text[start:end])) else 0
    for place in range(start, end):
        if text[place] not in DIGITS:
            continue
        digits += text[place]
        if len(digits) >= 13 and _is_free_after(text, place + 1, DIGITS) and passes_luhn(digits):
            found = place + 1
    return found


def _number_ends(text: str, end: int, least: int, not_before: frozenset[str]) -> Iterator[int]:
    for last in range(end, least - 1, -1):
        if text[last - 1] in DIGITS and _is_free_after(text, last, not_before):
            yield last


def _phone(text: str, start: int, end: int) -> int:
    """The longest form that ends alone and has the digits of a number of its kind."""
    if _DATE.match(text, start):
        return 0
    # A number that letters follow is one all the same, but "2nd" is no part of it.
    for ends in (_number_ends(text, end, start + 7, WORD), _number_ends(text, end, start + 7, DIGITS)):
        for last in ends:
            digits = digits_of(text[start:last])
            if len(digits) >= 7 and (text[start] == "+" or _is_phone(digits)):
                return last
    return 0


def _is_phone(digits: str) -> bool:
    """Abroad by 00, at home by 0, or of ten digits as in North America, where neither part begins with 0 or 1."""
    if digits.startswith("00"):
        return len(digits) >= 10 and digits[2] != "0"
    if digits.startswith("0"):
        return 9 <= len(digits) <= 12
    home = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    return len(home) == 10 and home[0] > "1" and home[3] > "1"


def _iban(text: str, start: int, end: int) -> int:
    length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
    if length is None:
        return 0
    kept: list[str] = []
    for place in range(start, end):
        if text[place] in WORD:
            kept.append(text[place].upper())
        if len(kept) == length:
            return place + 1 if passes_iban("".join(kept)) else 0
    return 0


def _ip(text: str, start: int, end: int) -> int:
    for last in range(end, max(end - 3, start), -1):
        if _is_free_after(text, last, _HEX if ":" in text[start:last] else DIGITS) and _is_address(text[start:last]):
            return last
    return 0


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return "." in text and ":" not in text and all(int(part) <= 255 for part in text.split("."))
    # `a::b` is how several languages write a name.
    return any(char in DIGITS for char in text) or text.count(":") > 3


DETECTORS = (
    Detector("email", "EMAIL", parse_pattern(_EMAIL), _email, "[@%&]"),
    Detector("iban", "IBAN", parse_pattern(_IBAN), _iban, "[0-9]", not_after=WORD),
    Detector("card", "CARD", parse_pattern(_CARD), _card, "[0-9]", not_after=DIGITS),
    Detector("ip", "IP", parse_pattern(_IP), _ip, "[0-9:]", not_after=WORD),
)
PHONE = Detector("phone", "PHONE", parse_pattern(_PHONE), _phone, "[0-9]", not_after=WORD)
"""Asked last: many numbers look like one."""
