"""What a step gives back, and how it fails."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen: sentences for people, figures for scripts."""

    lines: tuple[str, ...]
    figures: Mapping[str, object] = field(default_factory=dict)


class StepFailed(Exception):
    """A step did not see what it promises; the text says what it saw instead."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step that was taken."""

    name: str
    title: str
    seconds: float
    evidence: Evidence | None
    """``None`` = it failed."""
    error: str | None = None
    """``None`` = it held."""

    @property
    def document(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "step": self.name,
            "title": self.title,
            "ok": self.error is None,
            "seconds": round(self.seconds, 3),
            "lines": list(self.evidence.lines) if self.evidence else [],
            "figures": dict(self.evidence.figures) if self.evidence else {},
            "error": self.error,
        }
