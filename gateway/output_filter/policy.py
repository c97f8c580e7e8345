"""What a route asks of its output filter: classes with their modes, own patterns, denied words, how it fails."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fleet.value import Value
from gateway.output_filter.api_keys import API_KEYS
from gateway.output_filter.detectors import DETECTORS, PHONE, WORD, Detector, alone, whole
from gateway.output_filter.national_ids import NATIONAL_IDS
from gateway.output_filter.pattern_parser import PatternRefused, literal, parse_pattern
from gateway.output_filter.pattern_tree import Choice, Node, width

DENIED = "denied"
"""The class of a tenant's denied words."""
MODERATION = "moderation"
"""The class of a sentence that the moderation service does not let pass."""
MAX_TERM = 100
MAX_TERMS = 1_000
_BUILT_IN = (*DETECTORS, *NATIONAL_IDS, *API_KEYS, PHONE)
CLASSES = tuple(dict.fromkeys(detector.name for detector in _BUILT_IN))
"""What is known without a tenant's own patterns."""

ClassName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,30}$")]


class Mode(StrEnum):
    """What happens to a value."""

    MASK = "mask"
    """`[EMAIL]` stands in its place."""
    HASH = "hash"
    """`[EMAIL:abcdefgh]`: the same letters for the same value within a conversation."""
    BLOCK = "block"
    """The answer ends before it."""


class FailureMode(StrEnum):
    """What happens to an answer when the filter itself cannot go on."""

    CLOSED = "closed"
    """It ends with an error."""
    OPEN = "open"
    """It passes unfiltered from there on."""


class OwnPattern(Value):
    """A tenant's own class of values, as an RE2 pattern that can't match without end."""

    name: ClassName
    pattern: str
    mode: Mode = Mode.MASK
    ignore_case: bool = False


class Moderation(Value):
    """Sentences wait for the verdict of a service."""

    window: Annotated[int, Field(ge=40, le=4_000)] = 400
    """The most characters of a sentence."""
    wait_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    failure_mode: FailureMode = FailureMode.CLOSED
    """What happens where no verdict comes."""


class FilterPolicy(Value):
    """The filter of a route."""

    classes: Mapping[str, Mode] = Field(default_factory=lambda: dict.fromkeys(CLASSES, Mode.MASK))
    """Absent = not looked for."""
    patterns: tuple[OwnPattern, ...] = ()
    denied: tuple[Annotated[str, Field(min_length=1, max_length=MAX_TERM)], ...] = ()
    """Words and phrases that never stand in an answer, in any case of letters."""
    denied_mode: Mode = Mode.BLOCK
    failure_mode: FailureMode = FailureMode.CLOSED
    moderation: Moderation | None = None
    """None = nobody is asked."""
    hold_seconds: Annotated[float, Field(gt=0, le=60)] = 2.0
    """How long the end of a text may be held while nothing comes after it."""


def modes_of(policy: FilterPolicy) -> dict[str, Mode]:
    """The mode of each class."""
    own = {pattern.name: pattern.mode for pattern in policy.patterns}
    denied = {DENIED: policy.denied_mode} if policy.denied else {}
    return {**policy.classes, **own, **denied, MODERATION: Mode.BLOCK}


def detectors_of(policy: FilterPolicy) -> tuple[Detector, ...]:
    """The detectors of a policy, a tenant's own first; a pattern that can't be used is refused with its name."""
    if unknown := sorted(policy.classes.keys() - set(CLASSES)):
        raise PatternRefused(f"there is no class {unknown[0]}; known are {', '.join(CLASSES)}")
    own = tuple(_own(pattern) for pattern in policy.patterns)
    return (*own, *_denied(policy), *(one for one in _BUILT_IN if one.name in policy.classes))


def _own(pattern: OwnPattern) -> Detector:
    if pattern.name in (*CLASSES, DENIED, MODERATION):
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
