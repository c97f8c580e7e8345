"""Severity words from what records carry: CVSS vectors of three generations, and words."""

from functools import lru_cache

from cvss import CVSS2, CVSS3, CVSS4  # type: ignore[import-untyped]
from cvss.exceptions import CVSSError  # type: ignore[import-untyped]

from fleet.severity import Severity, severity_of_score

_WORDS = {
    "NONE": Severity.NONE,
    "NEGLIGIBLE": Severity.LOW,
    "LOW": Severity.LOW,
    "MODERATE": Severity.MEDIUM,
    "MEDIUM": Severity.MEDIUM,
    "IMPORTANT": Severity.HIGH,
    "HIGH": Severity.HIGH,
    "CRITICAL": Severity.CRITICAL,
}


@lru_cache(maxsize=65536)
def rating(text: str) -> Severity | None:
    """The severity that a CVSS vector or a word means, or ``None`` when it is neither.

    CVSS 2 has no critical: its scale ends at high (7.0 to 10.0), so its own words are taken.
    """
    stripped = text.strip()
    word = _WORDS.get(stripped.upper())
    if word is not None:
        return word
    try:
        if stripped.startswith("CVSS:4"):
            return severity_of_score(float(CVSS4(stripped).base_score))
        if stripped.startswith("CVSS:3"):
            return severity_of_score(float(CVSS3(stripped).base_score))
        return _WORDS[CVSS2(stripped.strip("()")).severities()[0].upper()]
    except CVSSError:
        return None
