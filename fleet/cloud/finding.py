"""What a rule of the cloud says, and what is known of the rule itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Grade(StrEnum):
    """How bad it is when a rule is broken."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class CloudRule:
    """One rule about what a cluster is built of."""

    id: str
    grade: Grade
    what: str
    """The rule as a sentence that holds where nothing is wrong."""
    remedy: str
    """What would be right, where a finding has no better word for it."""
    source: str
    """Where the rule comes from: a document, a bug report, own judgement."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule is broken."""

    rule: CloudRule
    message: str
    """What is wrong, with which value."""
    remedy: str = ""
    """What would be right here; empty = the rule's own."""
    evidence: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What is wrong and what would be right, for a person."""
        return f"{self.message}; {self.remedy or self.rule.remedy}"
