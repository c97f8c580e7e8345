"""Reviews: one deployment before it is stored, and every deployment after something changed.

Deployments that differ only in what no rule looks at share a review key, and with it one review.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from control_plane.records import Condition, ConditionType, Document, ReviewSubject, Truth
from fleet.canonical import canonical_json, digest, sha256_hex
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import AnyManifest, PinnedManifest
from fleet.placement import Choice, repin
from fleet.rules import review
from fleet.violation import Enforcement, Violation, refuses

AFFECTED = "AdvisoryAffected"
BROKEN = "RuleBroken"
REVIEWED = "Reviewed"
RESIDUALS = "ReviewedWithResiduals"
_SHOWN = 3
"""Violations that a condition's message names; the rest is counted."""
_OWN_PARTS = ("served_name", "scaling", "access", "objectives")
"""Parts of a spec that no rule looks at: deployments that differ only here share a review."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say about one manifest."""

    violations: tuple[Violation, ...]
    facts: Facts

    @property
    def is_refused(self) -> bool:
        """Whether any rule refuses it."""
        return refuses(self.violations)


def judge(manifest: AnyManifest, facts: Facts, catalogue: EngineCatalogue) -> Verdict:
    """Review one manifest."""
    return Verdict(tuple(review(manifest, facts, catalogue)), facts)


def is_refused(violations: Sequence[Document]) -> bool:
    """Whether any of these refuses."""
    return any(item["severity"] == Enforcement.MANDATORY for item in violations)


def review_key(manifest: PinnedManifest) -> str:
    """64 hex digits over everything that a review can look at."""
    plain = manifest.model_dump(mode="json", exclude_none=True)
    spec = {name: value for name, value in plain["spec"].items() if name not in _OWN_PARTS}
    spec["model"] = {name: value for name, value in spec["model"].items() if name != "alternatives"}
    pin = {name: value for name, value in plain["pin"].items() if name != "source_digest"}
    return sha256_hex(canonical_json({"spec": spec, "pin": pin}))


def as_member(proposal: Document, member: Document) -> Document:
    """A proposal made for one deployment of a review key, as the proposal of another one of the same key."""
    own: Document = {name: member["spec"][name] for name in _OWN_PARTS if name in member["spec"]}
    shared = {name: value for name, value in proposal["spec"].items() if name not in _OWN_PARTS}
    model = dict(shared["model"])
    model.pop("alternatives", None)
    if "alternatives" in member["spec"]["model"]:
        model["alternatives"] = member["spec"]["model"]["alternatives"]
    pin = proposal["pin"] | {"source_digest": member["pin"]["source_digest"]}
    return proposal | {"metadata": member["metadata"], "spec": shared | {"model": model} | own, "pin": pin}


def compliance(violations: Sequence[Document], *, before: Condition | None, generation: int, now: str) -> Condition:
    """The condition Compliant that follows from a review; the moment moves only with the status."""
    return _compliance(_words(violations), before=before, generation=generation, now=now)


def _compliance(words: tuple[Truth, str, str], *, before: Condition | None, generation: int, now: str) -> Condition:
    status, reason, message = words
    is_same_status = before is not None and before.status is status
    return Condition(
        type=ConditionType.COMPLIANT,
        status=status,
        reason=reason,
        message=message,
        last_transition=before.last_transition if before is not None and is_same_status else now,
        observed_generation=generation,
    )


def _words(violations: Sequence[Document]) -> tuple[Truth, str, str]:
    mandatory = [item for item in violations if item["severity"] == Enforcement.MANDATORY]
    if mandatory:
        about_advisories = any(item.get("advisory") for item in mandatory)
        return Truth.FALSE, AFFECTED if about_advisories else BROKEN, _sentence(mandatory)
    if violations:
        return Truth.TRUE, RESIDUALS, _sentence(violations)
    return Truth.TRUE, REVIEWED, "no rule is broken"


def _sentence(violations: Sequence[Document]) -> str:
    shown = "; ".join(str(item["message"]) for item in violations[:_SHOWN])
    more = len(violations) - _SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def changed_conditions(
    subjects: Iterable[ReviewSubject], found: Mapping[str, Sequence[Document]], *, now: str
) -> list[tuple[ReviewSubject, Condition]]:
    """The deployments whose condition Compliant is another one now."""
    words = {key: _words(violations) for key, violations in found.items()}
    changes = []
    for subject in subjects:
        if subject.review_key not in words:
            continue
        before = subject.compliant
        if before is not None and (before.status, before.reason, before.message) == words[subject.review_key]:
            continue
        after = _compliance(words[subject.review_key], before=before, generation=subject.generation, now=now)
        changes.append((subject, after))
    return changes


def propose(pinned: PinnedManifest, facts: Facts, catalogue: EngineCatalogue) -> tuple[Document | None, str]:
    """A pinned manifest at an acceptable version of the same engine, and why; or why there is none."""
    if pinned.spec.engine is None:
        return None, "a hosted engine has no version of ours to change"
    choice = repin(pinned, facts, catalogue)
    if choice.pinned is None or choice.pinned.identity == pinned.identity:
        return None, _no_proposal(choice)
    before, after = pinned.spec.engine, choice.pinned.spec.engine
    version = after.version if after else None
    reason = f"{before.name} {version} is the newest version that no rule refuses; {before.version} is refused"
    return plain(choice.pinned), reason


def _no_proposal(choice: Choice) -> str:
    found = next((item for item in choice.violations if item.severity is Enforcement.MANDATORY), None)
    if found is not None:
        return f"no version can be pinned: {found.message}"
    if choice.rejections:
        return f"no version is acceptable; the newest: {choice.rejections[0].reason}"
    return "no version is acceptable"


def plain(value: AnyManifest | Violation) -> dict[str, Any]:
    """A value as JSON data; what is not set is left out."""
    return value.model_dump(mode="json", exclude_none=True)


@lru_cache(maxsize=4096)
def condition_digest(condition: Condition) -> str:
    """The digest of a condition: thousands of deployments often get the same one."""
    return digest(condition.document())
