"""Turns the policy of a route's output filter into detectors and modes."""

from fleet.output_policy import FilterPolicy, Mode, OwnPattern
from fleet.pattern_parser import PatternRefused, literal, parse_pattern
from fleet.pattern_tree import Choice, Node, width
from gateway.output_filter.api_keys import API_KEYS
from gateway.output_filter.detectors import DETECTORS, PHONE, WORD, Detector, alone, whole
from gateway.output_filter.national_ids import NATIONAL_IDS

DENIED = "denied"
"""The class of a tenant's denied words."""
MODERATION = "moderation"
"""The class of a sentence that the moderation service does not let pass."""
MAX_TERMS = 1_000
_BUILT_IN = (*DETECTORS, *NATIONAL_IDS, *API_KEYS, PHONE)
BUILT_IN_CLASSES = tuple(dict.fromkeys(detector.name for detector in _BUILT_IN))
"""What is known without a tenant's own patterns; a policy names them by `fleet.output_policy.CLASSES`."""


def modes_of(policy: FilterPolicy) -> dict[str, Mode]:
    """The mode of each class."""
    own = {pattern.name: pattern.mode for pattern in policy.patterns}
    denied = {DENIED: policy.denied_mode} if policy.denied else {}
    return {**policy.classes, **own, **denied, MODERATION: Mode.BLOCK}


def detectors_of(policy: FilterPolicy) -> tuple[Detector, ...]:
    """The detectors of a policy, a tenant's own first; a pattern that can't be used is refused with its name."""
    if unknown := sorted(policy.classes.keys() - set(BUILT_IN_CLASSES)):
        raise PatternRefused(f"there is no class {unknown[0]}; known are {', '.join(BUILT_IN_CLASSES)}")
    own = tuple(_own(pattern) for pattern in policy.patterns)
    return (*own, *_denied(policy), *(one for one in _BUILT_IN if one.name in policy.classes))


def _own(pattern: OwnPattern) -> Detector:
    if pattern.name in (*BUILT_IN_CLASSES, DENIED, MODERATION):
        raise PatternRefused(f"pattern {pattern.name}: the name is taken; choose another")
    try:
        tree = parse_pattern(pattern.pattern)
    except PatternRefused as refusal:
        raise PatternRefused(f"pattern {pattern.name}: {refusal}") from None
    return Detector(pattern.name, pattern.name.upper(), tree, whole, ignore_case=pattern.ignore_case, is_own=True)


def _denied(policy: FilterPolicy) -> tuple[Detector, ...]:
    if not policy.denied:
        return ()
    if len(policy.denied) > MAX_TERMS:
        raise PatternRefused(f"there are {len(policy.denied)} denied words; at most {MAX_TERMS} are looked for")
    terms = [_term(term) for term in policy.denied]
    tree = terms[0] if len(terms) == 1 else Choice(tuple(sorted(terms, key=width, reverse=True)))
    return (Detector(DENIED, "REMOVED", tree, alone, ignore_case=True, not_after=WORD, is_own=True),)


def _term(term: str) -> Node:
    if not term.split():
        raise PatternRefused("a denied word is empty; write at least one character")
    return literal(term)
