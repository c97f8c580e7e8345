"""How the tour talks: each step as it ends, then a summary; with ``-o json`` the summary alone on stdout."""

import contextlib
import json
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from rich.console import Console
from rich.text import Text

from cli.tour.evidence import StepReport

WIDTH = 120


class Report:
    """Prints for people on stdout, or on stderr when stdout belongs to a script."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        stream = sys.stderr if as_json else sys.stdout
        can_draw = (stream.encoding or "").lower().replace("-", "") == "utf8"
        if not can_draw and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
        self._done, self._failed, self._begun = ("✓", "✗", "…") if can_draw else ("ok", "FAILED", "...")
        self._console = Console(file=stream, width=None if stream.isatty() else WIDTH, soft_wrap=True, highlight=False)

    def say(self, line: str = "", *, style: str = "") -> None:
        """One line."""
        self._console.print(Text(line, style=style))

    def tell(self, message: str) -> None:
        """Something that happens beside the tour; always on stderr."""
        with contextlib.suppress(OSError):  # the terminal may have gone; the fleet must still be ended
            sys.stderr.write(message + "\n")
            sys.stderr.flush()

    def begun(self, title: str) -> None:
        """A step begins."""
        if self._console.is_terminal:
            self.say(f"{self._begun} {title}", style="dim")

    def ended(self, report: StepReport) -> None:
        """A step has ended."""
        seconds = f"{report.seconds:.1f} s"
        if report.error is not None:
            self.say(f"{self._failed} {report.name}: {report.title} ({seconds})", style="bold red")
            for line in report.error.splitlines():
                self.say(f"    {line}")
            return
        self.say(f"{self._done} {report.name}: {report.title} ({seconds})", style="green")
        for line in report.evidence.lines if report.evidence else ():
            self.say(f"    {line}")

    def summary(self, reports: Sequence[StepReport], seconds: float, *, interrupted: bool) -> None:
        """What the whole tour came to."""
        failed = next((report.name for report in reports if report.error is not None), None)
        if self._as_json:
            document = {
                "ok": failed is None and not interrupted,
                "interrupted": interrupted,
                "failed_step": failed,
                "seconds": round(seconds, 2),
                "steps": [report.document for report in reports],
            }
            sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        passed = sum(report.error is None for report in reports)
        if interrupted:
            self.say(f"interrupted after {passed} steps that held ({seconds:.1f} s)", style="bold yellow")
        elif failed is None:
            self.say(f"{passed} steps, all as promised, in {seconds:.1f} s", style="bold green")
        else:
            self.say(f"the step '{failed}' failed after {passed} steps that held ({seconds:.1f} s)", style="bold red")
