"""docs/reference/rules.md: every rule with what it asks for, what waives it, and a real example."""

import re

from layout import code, page, plain, table
from rule_examples import examples

from fleet.rules import RULES, Rule, WaivedBy

WAIVERS = {
    WaivedBy.RULE: "A waiver that names the rule and the identity.",
    WaivedBy.ADVISORY: "A waiver that names the advisory and the identity; one advisory at a time.",
    WaivedBy.NOTHING: "Nothing: the manifest, the policy or the facts have to change.",
}

DIGEST = re.compile(r"(?<=sha256:)[0-9a-f]{64}")
INTRODUCTION = """
Each rule judges one manifest. A **mandatory** violation refuses: `enginehouse review` exits 3, the admin API answers
422. An **advisory** violation is shown and refuses nothing. The severity below is the usual one. Under
`residuals_need_triage_from` of the [policy](policy.md), `advisory-residual` refuses too; policy, a triage entry or a
valid waiver make others milder; and some findings of a rule are advisory from the start. `enginehouse rules` prints
this table.

The examples are real: manifests that break the rule, judged on the bundled snapshot under the policy of `prod`. Image
digests, waivers, the denial and the malware record in them are invented; digests are shortened.
"""


def render() -> str:
    """The page."""
    rows = [
        (
            f"[`{rule.id}`](#{rule.id})",
            rule.severity.value,
            rule.title,
            _short(rule),
            "yes" if rule.judges_canary else "no",
        )
        for rule in RULES
    ]
    head = ("rule", "severity", "asks for", "waived by", "judges a canary too")
    return page("Rules", "`fleet.rules.RULES`", INTRODUCTION, table(head, rows), *map(_section, RULES))


def _short(rule: Rule) -> str:
    return "nothing" if rule.waived_by is WaivedBy.NOTHING else f"its {rule.waived_by.value}"


def _short_digests(text: str) -> str:
    return DIGEST.sub(lambda found: f"{found[0][:4]}…" if len(set(found[0])) == 1 else "…", text)


def _section(rule: Rule) -> str:
    shown = examples()[rule.id]
    milder = f", here {shown.severity.value}" if shown.severity is not rule.severity else ""
    lines = [
        f"## {rule.id}",
        plain(rule.check.__doc__ or rule.title),
        f"- Severity: {rule.severity.value}{milder}",
        f"- Waived by: {WAIVERS[rule.waived_by]}",
        f"- Place: {code(shown.pointer or '/')}",
        f"- Message: {_short_digests(shown.message)}",
        f"- Remedy: {_short_digests(shown.remedy)}",
    ]
    return f"{lines[0]}\n\n{lines[1]}\n\n" + "\n".join(lines[2:])
