"""Violations as rows and JSON."""

from collections.abc import Iterable

from fleet.violation import Violation


def violation_rows(violations: Iterable[Violation]) -> list[dict[str, object]]:
    """What a table shows of violations."""
    return [
        {
            "rule": item.rule,
            "severity": str(item.severity),
            "where": item.pointer or "/",
            "message": item.message,
            "remedy": item.remedy,
        }
        for item in violations
    ]
