"""Exceptions that people make and answer for: waivers of a rule or an advisory, and triage of residuals."""

from datetime import date
from enum import StrEnum

from fleet.value import Value


class Waiver(Value):
    """An exception for one identity: of one advisory or of one rule, with owner, reason and end."""

    name: str
    identity: str
    """The 32 hex digits of the pinned manifest that it holds for."""
    advisory: str | None = None
    rule: str | None = None
    owner: str
    reason: str
    expires: date
    """The last day on which it holds."""

    def holds_on(self, today: date) -> bool:
        """Whether it has not ended yet."""
        return today <= self.expires


class TriageStatus(StrEnum):
    """What a person found out about a residual."""

    FIXED = "fixed"
    NOT_AFFECTED = "not_affected"
    ACCEPTED = "accepted"


class Triage(Value):
    """A person's word on an advisory whose data does not decide, for one package and its versions."""

    name: str
    package: str
    advisory: str
    versions: tuple[str, ...]
    """Versions that it holds for; empty = every version."""
    status: TriageStatus
    owner: str
    reason: str
    reference: str
    expires: date

    def holds_on(self, today: date) -> bool:
        """Whether it has not ended yet."""
        return today <= self.expires
