"""National numbers of people, by table: shape, and what confirms them."""

from collections.abc import Callable

from fleet.pattern_parser import parse_pattern
from gateway.output_filter import check_digits as check
from gateway.output_filter.detectors import DIGITS, WORD, Confirm, Detector, alone, digits_alone


def _with(passes: Callable[[str], bool], is_alone: Confirm = alone) -> Confirm:
    def confirm(text: str, start: int, end: int) -> int:
        kept = "".join(char for char in text[start:end] if char in WORD).upper()
        return end if is_alone(text, start, end) and passes(kept) else 0

    return confirm


_GAP = r"[ \t-]"
_TABLE: tuple[tuple[str, str, str, Confirm], ...] = (
    (
        "us_ssn",
        "SSN",
        rf"[0-9]{{3}}{_GAP}{{1,2}}[0-9]{{2}}{_GAP}{{1,2}}[0-9]{{4}}",
        _with(check.is_social_security_number, digits_alone),
    ),
    (
        "in_aadhaar",
        "AADHAAR",
        rf"[0-9]{{4}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}",
        _with(check.passes_verhoeff, digits_alone),
    ),
    (
        "ca_sin",
        "SIN",
        rf"[0-9]{{3}}{_GAP}[0-9]{{3}}{_GAP}[0-9]{{3}}",
        _with(check.is_social_insurance_number, digits_alone),
    ),
    ("br_cpf", "CPF", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _with(check.passes_cpf, digits_alone)),
    ("pl_pesel", "PESEL", "[0-9]{11}", _with(check.passes_pesel, digits_alone)),
    (
        "fr_nir",
        "NIR",
        r"[0-9] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
        _with(check.passes_nir),
    ),
    ("es_dni", "DNI", r"(?:[0-9]{8}|[XYZ]-?[0-9]{7})-?[A-HJ-NP-TV-Z]", _with(check.passes_dni)),
    (
        "it_fiscal_code",
        "FISCAL_CODE",
        r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]",
        _with(check.passes_fiscal_code),
    ),
    ("uk_nino", "NINO", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", alone),
    ("in_pan", "PAN", r"[A-Z]{3}[ABCFGHLJPT][A-Z][0-9]{4}[A-Z]", alone),
)

_OF_DIGITS = frozenset({"us_ssn", "in_aadhaar", "ca_sin", "br_cpf", "pl_pesel"})
"""Letters may touch these: none of their own is near."""
NATIONAL_IDS = tuple(
    Detector(name, label, parse_pattern(pattern), confirm, "[0-9]", not_after=DIGITS if name in _OF_DIGITS else WORD)
    for name, label, pattern, confirm in _TABLE
)
