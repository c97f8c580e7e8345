"""What is wrong with a stack's configuration, found before anything is registered."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fleet.cloud.finding import Finding
from infra.finding_words import REMEDIES


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake."""

    key: str
    """Where it stands below ``enginehouse:stack``: ``pools.h100.zone``."""
    value: str
    """What stands there; empty = nothing."""
    message: str
    remedy: str
    unfilled: int = 0
    """How many values it asks for; 0 = it tells of one mistake."""

    @property
    def sentence(self) -> str:
        """For a person: where, what is wrong, what would be right."""
        found = f" (found {self.value})" if self.value and self.value not in self.message else ""
        return f"{self.key}: {self.message}{found}; {self.remedy}"


class StackRefused(Exception):
    """A configuration that the program does not start with."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.sentence for problem in self.problems))

    @property
    def summary(self) -> str:
        """What there is to do, counted: ``10 values to fill in and 1 mistake``."""
        unfilled = sum(problem.unfilled for problem in self.problems)
        mistakes = sum(not problem.unfilled for problem in self.problems)
        counted = ((unfilled, "value to fill in", "values to fill in"), (mistakes, "mistake", "mistakes"))
        return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted if count)


def of_repeated(key: str, names: Iterable[str], remedy: str) -> Iterator[Problem]:
    """What stands in a list more than once."""
    for name, count in sorted(Counter(names).items()):
        if count > 1:
            yield Problem(key, name, f"{name} stands there more than once", remedy)


def of_findings(key: str, value: object, findings: Iterable[Finding]) -> Iterator[Problem]:
    """What a rule of the cloud says about a key, with a remedy in the stack's words."""
    for finding in findings:
        remedy = finding.remedy or REMEDIES.get(finding.rule.id, finding.rule.remedy)
        yield Problem(key, str(value), finding.message, remedy)
