"""docs/reference/policy.md: every key of the policy with its value per environment."""

import inspect
from enum import Enum
from pathlib import Path
from typing import get_args

from layout import attribute_texts, code, page, table

from fleet import policy
from fleet.policy import Denial, Policy
from sources import policy_file

FILE = Path(__file__).resolve().parents[2] / "policies" / "policy.yaml"
MEANINGS = {
    "max_waiver_days": "How far the end of a waiver or triage entry may lie ahead.",
    "denials": "Engines that a workload must not use, as decisions of people.",
}

INTRODUCTION = """
How strict an environment is stands in one YAML file: a section `default`, and one per environment with what it changes.
The file that counts is the one named by `--policy`, else `policies/policy.yaml` of the working tree, else the same file
inside the program. An environment that the file does not name is an error, not the default: a mistyped name must not
get milder rules.

A policy changes how strict rules are. It can't switch a rule off, and it can't allow a malicious release.
"""
DENIALS = """
## Denials
A denial is a decision of people, with its reason. No waiver holds against it. The list is empty by default: that an
engine suits a workload less is a score of the catalogue, not a denial.

```yaml
default:
  denials:
    - {workload: chat, engine: lmdeploy, reason: "decided on 2026-11-03 by the platform team"}
```
"""


def render() -> str:
    """The page."""
    book = policy_file.read(FILE)
    texts = attribute_texts(policy)
    environments = tuple(book.environments)
    keys = [(code(key), _type(key), _default(key), _meaning(key, texts)) for key in Policy.model_fields]
    policies = {name: book.policy_for(name) for name in environments}
    values = [
        (code(key), *(_changed(getattr(policies[name], key), key in book.environments[name]) for name in environments))
        for key in Policy.model_fields
    ]
    return page(
        "Policy",
        "`fleet.policy` and `policies/policy.yaml`",
        INTRODUCTION,
        "## Keys",
        table(("key", "values", "default of the program", "meaning"), keys),
        "## Values per environment\n**Bold** = the environment writes it down; the rest comes from `default`.",
        table(("key", *map(code, environments)), values),
        DENIALS,
    )


def _meaning(key: str, texts: dict[str, str]) -> str:
    found = texts.get(f"{Policy.__name__}.{key}") or MEANINGS.get(key)
    if found is None:
        raise LookupError(f"nothing says what the policy's {key} means; give it a docstring")
    return found.replace("`None`", "`null`")


def _type(key: str) -> str:
    if key == "denials":
        return f"list of {{{', '.join(Denial.model_fields)}}}"
    annotation = Policy.model_fields[key].annotation
    parts = [part for part in (get_args(annotation) or (annotation,)) if part is not type(None)]
    return " or ".join(_word(part) for part in parts)


def _word(part: object) -> str:
    if isinstance(part, str):
        return code(part)
    if inspect.isclass(part) and issubclass(part, Enum):
        return ", ".join(code(item.value) for item in part)
    return {bool: "`true`, `false`"}.get(part, "number of days") if inspect.isclass(part) else "number of days"


def _default(key: str) -> str:
    return _value(getattr(Policy(), key))


def _changed(value: object, is_own: bool) -> str:
    return f"**{_value(value)}**" if is_own else _value(value)


def _value(value: object) -> str:
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple):
        return code([item.model_dump() for item in value])
    return code(value.value) if isinstance(value, Enum) else code(value)
