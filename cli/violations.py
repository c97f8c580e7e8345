"""Violations for people: what is wrong as rows, and what would be right said once for all that it mends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cli.table import paragraph, table
from fleet.violation import Violation

EACH_RECORD = "each record"
"""Stands in a shared remedy for the advisory that it is about."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A violation as a table shows it, from the rules at hand or from a server's answer."""

    rule: str
    severity: str
    where: str
    message: str
    remedy: str
    advisory: str | None

    @classmethod
    def of(cls, item: Violation | Mapping[str, object]) -> "Stated":
        """From either form; what a server leaves out is empty."""
        plain = item.model_dump(mode="json") if isinstance(item, Violation) else item
        words = (str(plain.get(key) or "") for key in ("rule", "severity", "pointer", "message", "remedy"))
        rule, severity, where, message, remedy = words
        advisory = plain.get("advisory")
        return cls(rule, severity, where or "/", message, remedy, str(advisory) if advisory else None)

    @property
    def subject(self) -> str:
        """What a remedy is said for: the record, else the rule and its place."""
        return self.advisory or f"{self.rule} at {self.where}"

    @property
    def way(self) -> tuple[str, str]:
        """What is known of this one alone, and the way out that it may share with others."""
        head, _, tail = self.remedy.rpartition("; ")
        return head, tail.replace(self.advisory, EACH_RECORD) if self.advisory else tail


def show_violations(violations: Iterable[Violation | Mapping[str, object]], *, title: str) -> None:
    """The table of violations, then each remedy once."""
    stated = [Stated.of(item) for item in violations]
    rows = [{"rule": x.rule, "severity": x.severity, "where": x.where, "message": x.message} for x in stated]
    table(rows, title=title)
    if not stated:
        return
    paragraph("what would be right:")
    for way, heads in remedies(stated).items():
        paragraph(_of_one(way, heads), indent="- ")
        for head, subjects in heads.items():
            paragraph(f"{head}: {', '.join(subjects)}" if head else f"for {', '.join(subjects)}", indent="    ")


def remedies(stated: Sequence[Stated]) -> dict[str, dict[str, list[str]]]:
    """Way out -> what is known of some -> those that it is said for, each in the order of the violations."""
    found: dict[str, dict[str, list[str]]] = {}
    for item in stated:
        head, way = item.way
        subjects = found.setdefault(way, {}).setdefault(head, [])
        if item.subject not in subjects:
            subjects.append(item.subject)
    return found


def _of_one(way: str, heads: Mapping[str, Sequence[str]]) -> str:
    """A way out that only one record has names it."""
    subjects = [subject for found in heads.values() for subject in found]
    return way.replace(EACH_RECORD, subjects[0]) if len(subjects) == 1 else way
