"""What a rule says: the violation, with evidence and what would be right."""

from enum import StrEnum

from pydantic import Field

from fleet.value import Value


class Enforcement(StrEnum):
    """Whether a violation refuses or only tells."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"


class Violation(Value):
    """One rule that a manifest breaks."""

    rule: str
    severity: Enforcement
    pointer: str
    """JSON pointer into the manifest."""
    message: str
    """What is wrong, with which value."""
    remedy: str
    """What would be right."""
    evidence: dict[str, str] = Field(default_factory=dict)
    """Facts that decided: ids, versions, severities, references."""
    advisory: str | None = None


def refuses(violations: tuple[Violation, ...] | list[Violation]) -> bool:
    """Whether any of the violations is mandatory."""
    return any(violation.severity is Enforcement.MANDATORY for violation in violations)
