"""Patterns of tenants: what can match without end is refused with the reason, the rest is held exactly."""

import contextlib
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet.output_policy import CLASSES, FilterPolicy, Mode, OwnPattern
from fleet.pattern_parser import MAX_WIDTH, PatternRefused, literal, parse_pattern
from fleet.pattern_tree import beginnings, least_width, source, width
from gateway.output_filter.detectors import DETECTORS, PHONE
from gateway.output_filter.linear_regex import EncodedText, LinearRegex
from gateway.output_filter.national_ids import NATIONAL_IDS
from gateway.output_filter.policy import BUILT_IN_CLASSES, detectors_of
from gateway.output_filter.quiet_text import Quiet

ATOMS = st.sampled_from(["a", "b", "[ab]", r"\d", ".", "(?:ab|c)", "(a(?:b|cc){1,2})", r"\.", "é", r"[^a]"])
COUNTED = st.tuples(ATOMS, st.sampled_from(["", "", "?", "{2}", "{1,3}", "{0,2}?"])).map("".join)
PATTERNS = st.lists(COUNTED, min_size=1, max_size=4).map("".join)
BUILT_IN = [detector for detector in (*DETECTORS, *NATIONAL_IDS, PHONE) if not detector.tail]


@given(PATTERNS, st.text(alphabet="abc1.é", max_size=12))
def test_the_tree_matches_what_the_pattern_matches(pattern, text):
    try:
        tree = parse_pattern(pattern)
    except PatternRefused:
        return
    assert LinearRegex(source(tree)).match(EncodedText(text), 0) == LinearRegex(pattern).match(EncodedText(text), 0)


@given(PATTERNS, st.text(alphabet="abc1.é", max_size=12))
def test_every_beginning_of_a_match_is_known_as_one(pattern, text):
    try:
        tree = parse_pattern(pattern)
    except PatternRefused:
        return
    end = LinearRegex(source(tree)).match(EncodedText(text), 0)
    ahead = LinearRegex(f"(?:{beginnings(tree)})\\z")
    for place in range((end or 0) + 1):
        assert ahead.match(EncodedText(text[:place]), 0) == place
    assert end is None or least_width(tree) <= end <= width(tree)


@given(PATTERNS, st.text(alphabet="abc", min_size=1, max_size=8), st.sampled_from(" ,!"))
def test_prose_that_is_not_searched_has_no_match_and_no_beginning_of_one(pattern, word, mark):
    try:
        tree = parse_pattern(pattern)
    except PatternRefused:
        return
    text = f"{word}{mark}{word}"
    quiet = Quiet([(tree, False)])
    if not quiet.is_prose(text):
        return
    assert LinearRegex(source(tree)).search(EncodedText(text), 0) is None
    start = LinearRegex(f"(?:{beginnings(tree)})\\z").search(EncodedText(text), 0)
    assert start is not None
    assert start > len(word) or mark in quiet.joints


@given(PATTERNS, st.text(alphabet="abAB ,", max_size=8), st.text(alphabet="abAB ,.", min_size=1, max_size=8))
def test_prose_that_goes_on_is_told_at_a_glance_as_it_is_told_whole(pattern, text, more):
    try:
        quiet = Quiet([(parse_pattern(pattern), False)])
    except PatternRefused:
        return
    if quiet.is_prose(text):
        whole = text + more
        assert quiet.hold(whole, more, was_prose=True) == quiet.hold(whole, more, was_prose=False)


@pytest.mark.parametrize("detector", BUILT_IN, ids=lambda detector: detector.name)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_the_hint_of_a_class_is_in_every_match(detector, data):
    text = data.draw(st.from_regex(re.sub(r"\\x\{(\w+)\}", _char, source(detector.tree)), fullmatch=True))
    assert detector.hint is not None
    assert re.search(detector.hint, text)


def _char(found: re.Match[str]) -> str:
    return re.escape(chr(int(found[1], 16)))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"secret-\w+", r"at character 10: `\+` matches text without end; write a bound, like \{1,64\}"),
        (r".*", "matches text without end"),
        (r"a{3,}", r"write a bound, like \{3,67\}"),
        (r"(ab?)?", "matches the empty text"),
        (r"", "matches the empty text"),
        (r"x{600}", "is no count"),
        (r"(?:x{300}){2}", f"at most {MAX_WIDTH}"),
        (r"^abc", r"asks where a text begins.*write `\\b`"),
        (r"abc$", "asks where a text ends"),
        (r"abc\z", "asks where a text ends"),
        (r"(abc", "a group is not closed"),
        (r"abc)", "closes nothing"),
        (r"[abc", "a class is not closed"),
        (r"(?=abc)x", r"only \(\?:"),
        (r"(?i:abc)", "ignore_case"),
        (r"(a)\1", r"is not known"),
        (r"a{2}{3}", "a count follows a count"),
        (r"?a", "nothing to repeat"),
        (r"\p{Nonsense}x", "RE2 does not take it"),
        ("(" * 30 + "a" + ")" * 30, "nested deeper"),
        ("a" * 3000, "at most 2000"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_what_would_be_right(pattern, reason):
    policy = FilterPolicy(classes={}, patterns=(OwnPattern(name="own", pattern=pattern),))
    with pytest.raises(PatternRefused, match=f"(?s)own: .*{reason}|RE2 does not take it"):
        [LinearRegex(source(detector.tree)) for detector in detectors_of(policy)]


@given(st.text(max_size=60))
def test_any_text_is_read_as_a_pattern_or_refused(pattern):
    with contextlib.suppress(PatternRefused):
        LinearRegex(source(parse_pattern(pattern)))


@given(st.text(min_size=1, max_size=20).filter(lambda text: bool(text.split())))
def test_a_denied_phrase_is_taken_as_it_is_written(text):
    text = text.encode("utf-8", "replace").decode()
    assert LinearRegex(source(literal(text))).match(EncodedText(" ".join(text.split())), 0) is not None


def test_names_are_checked():
    with pytest.raises(PatternRefused, match="there is no class emails; known are email"):
        detectors_of(FilterPolicy(classes={"emails": Mode.MASK}))
    with pytest.raises(PatternRefused, match="the name is taken"):
        detectors_of(FilterPolicy(patterns=(OwnPattern(name="email", pattern="x"),)))
    with pytest.raises(PatternRefused, match="a denied word is empty"):
        detectors_of(FilterPolicy(denied=(" ",)))
    with pytest.raises(ValidationError, match="name"):
        OwnPattern(name="Not a name", pattern="x")
    assert {"email", "phone", "card", "iban", "us_ssn", "ip", "api_key"} <= set(CLASSES)


def test_a_policy_and_the_detectors_know_the_same_classes():
    assert BUILT_IN_CLASSES == CLASSES
