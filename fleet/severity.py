"""How bad a record says that it is; the highest of all sources counts."""

from collections.abc import Iterable
from enum import StrEnum


class Severity(StrEnum):
    """CVSS's qualitative scale; a source without a rating is ``None`` beside it."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for none up to 4 for critical."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


def severity_of_score(score: float) -> Severity:
    """The word for a CVSS v3 or v4 base score (CVSS 3.1 section 5 and 4.0 section 6: the same bands)."""
    bands = ((9.0, Severity.CRITICAL), (7.0, Severity.HIGH), (4.0, Severity.MEDIUM), (0.1, Severity.LOW))
    return next((word for floor, word in bands if score >= floor), Severity.NONE)


def highest(severities: Iterable[Severity | None]) -> Severity | None:
    """The highest rating, or ``None`` when no source rates it."""
    rated = [severity for severity in severities if severity is not None]
    return max(rated, key=lambda severity: severity.rank) if rated else None


def sorting_rank(severity: Severity | None) -> int:
    """Where a rating sorts: a missing one sorts as high, because it has not been looked at yet."""
    return (severity or Severity.HIGH).rank
