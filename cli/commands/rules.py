"""``enginehouse rules``: the table of rules that judge every manifest."""

from cli.output import Format, Output, emit
from fleet.rules import RULES


def rules(output: Output = Format.TABLE) -> None:
    """List the rules: id, whether they refuse, what they ask for, and what can waive them."""
    rows = [
        {
            "rule": rule.id,
            "severity": str(rule.severity),
            "asks_for": rule.title,
            "waived_by": str(rule.waived_by),
        }
        for rule in RULES
    ]
    emit({"rules": rows}, output=output, rows=rows, names=[rule.id for rule in RULES])
