"""What is told of findings: a message and a list of findings that a person can still read."""

from collections import Counter

from pulumi_policy import ReportViolation

LONGEST = 2000
"""Characters of a message."""
MOST = 20
"""Findings of one policy on one resource."""


def capped(message: str) -> str:
    """A message of a length that can be read."""
    rest = len(message) - LONGEST
    return f"{message[:LONGEST]}... and {rest} more characters" if rest > 0 else message


class Capped:
    """Reports the first findings of a policy on each resource, and at the end how many there are more."""

    def __init__(self, report: ReportViolation) -> None:
        self._report = report
        self._told: Counter[str | None] = Counter()

    def __call__(self, message: str, urn: str | None = None) -> None:
        """Report one finding."""
        self._told[urn] += 1
        if self._told[urn] <= MOST:
            self._report(message, urn)

    def close(self) -> None:
        """Say how many were not told."""
        for urn, number in self._told.items():
            if number > MOST:
                name = urn.rpartition("::")[2] if urn else "the stack"
                self._report(f"{name}: and {number - MOST} more of this policy", urn)
