"""Waivers and triage entries as people send them: what the API demands before it keeps one."""

from datetime import date
from typing import TypeVar

from pydantic import ValidationError

from control_plane.errors import Invalid
from control_plane.records import Document
from fleet.manifest import Problem, problems_of
from fleet.nearest import did_you_mean
from fleet.policy import Policy
from fleet.rules import RULES_BY_ID, WaivedBy
from fleet.value import Value
from fleet.waiver import Triage, Waiver

Kept = TypeVar("Kept", Waiver, Triage)


def waiver_spec(name: str, spec: Document, *, today: date, policy: Policy) -> Document:
    """The spec of a waiver, checked; raises `Invalid`."""
    waiver = _parsed(Waiver, name, spec)
    problems = [*_end_problems(waiver.expires, today), *_blank_problems(waiver)]
    if (waiver.advisory is None) == (waiver.rule is None):
        problems.append(Problem("/spec", "a waiver names either an advisory or a rule; give one of the two"))
    if waiver.rule is not None:
        problems += _rule_problems(waiver.rule)
    days = (waiver.expires - today).days
    if days > policy.max_waiver_days:
        message = f"{waiver.expires} is {days} days ahead; this environment takes at most {policy.max_waiver_days}"
        problems.append(Problem("/spec/expires", message))
    return _accepted("waiver", waiver, problems)


def triage_spec(name: str, spec: Document, *, today: date) -> Document:
    """The spec of a triage entry, checked; raises `Invalid`."""
    triage = _parsed(Triage, name, spec)
    return _accepted("triage entry", triage, [*_end_problems(triage.expires, today), *_blank_problems(triage)])


def _parsed(model: type[Kept], name: str, spec: Document) -> Kept:
    try:
        return model.model_validate({**spec, "name": name})
    except ValidationError as error:
        problems = [Problem(f"/spec{item.pointer}", item.message) for item in problems_of(error, model)]
        raise Invalid("the spec can't be read", problems) from None


def _end_problems(expires: date, today: date) -> list[Problem]:
    if expires >= today:
        return []
    return [Problem("/spec/expires", f"{expires} has passed (today is {today}); give a day ahead")]


def _blank_problems(value: Waiver | Triage) -> list[Problem]:
    named = [("owner", value.owner), ("reason", value.reason)]
    if isinstance(value, Triage):
        named += [("reference", value.reference)]
    return [
        Problem(f"/spec/{name}", "is blank; people must be able to ask back")
        for name, text in named
        if not text.strip()
    ]


def _rule_problems(rule: str) -> list[Problem]:
    known = RULES_BY_ID.get(rule)
    if known is None:
        return [Problem("/spec/rule", f"there is no rule '{rule}'{did_you_mean(rule, RULES_BY_ID)}")]
    if known.waived_by is WaivedBy.RULE:
        return []
    if known.waived_by is WaivedBy.ADVISORY:
        return [Problem("/spec/rule", f"'{rule}' is waived for one advisory at a time; give 'advisory' instead")]
    return [Problem("/spec/rule", f"'{rule}' can't be waived: the manifest, the policy or the facts have to change")]


def _accepted(word: str, value: Value, problems: list[Problem]) -> Document:
    if problems:
        raise Invalid(f"the {word} can't be kept", problems)
    document: Document = value.model_dump(mode="json", exclude_none=True, exclude={"name"})
    return document
