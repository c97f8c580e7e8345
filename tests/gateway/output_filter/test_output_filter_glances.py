"""Prose that is known at a glance: it comes to what a search would have found, piece by piece and event by event."""

import json

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.output_policy import FilterPolicy, OwnPattern
from fleet.pattern_parser import PatternRefused, parse_pattern
from fleet.pattern_tree import beginnings, source
from gateway.output_filter.channel import CompiledPolicy
from gateway.output_filter.glances import LONGEST, MOST, Glances
from gateway.output_filter.linear_regex import EncodedText, LinearRegex
from gateway.output_filter.masks import Masks
from gateway.output_filter.matcher import Matcher
from gateway.output_filter.normal_form import Writing
from gateway.output_filter.policy import detectors_of
from gateway.output_filter.quiet_text import Quiet
from gateway.output_filter.scanner import Scanner
from tests.gateway.output_filter.filtered_streams import DONE, HEAD, line, run_filter

POLICY = CompiledPolicy(FilterPolicy())
OWN = CompiledPolicy(
    FilterPolicy(
        patterns=(OwnPattern(name="room", pattern=r"room .{1,3}\d"), OwnPattern(name="dots", pattern=r"foo\.bar")),
        denied=("falcon", "don't panic"),
    )
)
POLICIES = st.sampled_from([POLICY, OWN])
TOKENS = st.sampled_from(
    [
        *[" the", " The", "s", "'s", ".", ". ", "...", " (", "(or", ")", ", and", " e.g.", "don", "'t", " wor", "d"],
        *[" jane", ".doe", "@example.com", " 4111 1111", " 1111 1111", " 2024", "\n", '"', "\\", " é", ":", " A", "B"],
        *[
            " foo",
            ".bar",
            "(415) 555",
            "-0134",
            " fal",
            "con",
            "room",
            " 1",
            "internationalisations",
            " sk-",
            " I",
            "{",
        ],
    ]
)
TEXTS = st.lists(TOKENS, max_size=30)
PATTERNS = st.text(alphabet="abc.?+*{}()|[]\\d1,2'-", max_size=14)


@settings(max_examples=200)
@given(PATTERNS, st.text(alphabet="abAB ,.'(-", max_size=12))
def test_no_value_is_in_prose_and_none_begins_before_its_last_chain_of_words_and_goes_on(pattern, text):
    try:
        tree = parse_pattern(pattern)
        quiet = Quiet([(tree, False)])
    except PatternRefused:
        return
    if not quiet.is_prose(text) or not text:
        return
    assert LinearRegex(source(tree)).search(EncodedText(text), 0) is None
    start = LinearRegex(f"(?:{beginnings(tree)})\\z").search(EncodedText(text), 0)
    assert start is not None
    assert start >= quiet.chain(text)


@settings(max_examples=200)
@given(st.text(alphabet="abcXY ,.'(", max_size=24))
def test_where_the_last_word_of_prose_begins_is_where_a_search_says_that_a_value_may_begin(text):
    matcher = Matcher(detectors_of(FilterPolicy()))
    assert matcher.quiet.joints >= set(".'")
    if matcher.quiet.is_prose(text) and (start := matcher.quiet.word(text)) is not None:
        assert start == matcher.held_from(EncodedText(text), 0)


@settings(max_examples=200)
@given(TEXTS, POLICIES, st.sampled_from([Writing.PLAIN, Writing.JSON, None]))
def test_pieces_that_are_known_come_to_what_they_come_to_when_read(tokens, policy, writing):
    glancing, reading = (Scanner(policy.matcher, Masks(policy.modes), writing) for _ in range(2))
    for token in tokens:
        glance = policy.matcher.glances[json.dumps(token, ensure_ascii=False).encode()[1:-1]]
        if glance is None or not glancing.feed_glance(glance):
            glancing.feed(token)
        reading.feed(token)
        assert (glancing.decided, glancing.edits) == (reading.decided, reading.edits)
    glancing.finish()
    reading.finish()
    assert glancing.edits == reading.edits


def test_what_may_be_part_of_a_value_is_not_remembered():
    glances = Glances(POLICY.matcher.quiet)
    for literal in (b"", b"jane@x", b"4111", b'a","b', b"a\\u0040", "é".encode(), b"a\n", b"Abc", b"a" * (LONGEST + 1)):
        assert glances[literal] is None
    assert not glances
    assert glances[b" the"] is glances[b" the"]


def test_no_more_is_remembered_than_said():
    glances = Glances(POLICY.matcher.quiet)
    for number in range(MOST + 10):
        assert glances["".join(chr(ord("a") + int(digit)) for digit in str(number)).encode()] is not None
    assert len(glances) == 10


@st.composite
def streams(draw) -> list[bytes]:
    """The events of an answer, with counts that differ from event to event, as engines write them."""
    is_counted, has_times, is_ascii = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    events = []
    for number, token in enumerate(draw(TEXTS)):
        head = {**HEAD, "created": HEAD["created"] + (number // 3 if has_times else 0)}
        choice = {"index": draw(st.integers(0, 1)), "delta": {"content": token}, "finish_reason": None}
        usage = {"usage": {"prompt_tokens": 4, "completion_tokens": number}} if is_counted else {}
        event = line({**head, "choices": [choice], **usage})
        events.append(event if not is_ascii else line_of_ascii(event))
    return [*events, DONE]


def line_of_ascii(event: bytes) -> bytes:
    """The event as engines write it that escape whatever is not ASCII."""
    return b"data: " + json.dumps(json.loads(event[6:]), separators=(",", ":")).encode() + b"\n\n"


@settings(max_examples=150)
@given(streams(), POLICIES)
def test_events_one_by_one_come_to_what_they_come_to_in_one_piece_and_byte_by_byte(events, policy):
    whole, of_whole = run_filter(policy, [b"".join(events)])
    for pieces in (events, [bytes([byte]) for byte in b"".join(events)]):
        out, growing = run_filter(policy, pieces)
        assert out == whole
        assert growing.counts == of_whole.counts


@settings(max_examples=50)
@given(streams(), st.sampled_from([b"\r\n", b"\r"]))
def test_a_line_end_that_comes_apart_from_its_event_changes_nothing(events, ending):
    events = [event.replace(b"\n", ending) for event in events]
    whole, _ = run_filter(POLICY, [b"".join(events)])
    for cut in (1, 2, 3):
        pieces = [piece for event in events for piece in (event[:-cut], event[-cut:])]
        assert run_filter(POLICY, pieces)[0] == whole


@pytest.mark.parametrize("text", ["", "xaab", "é aab", "aab aab", "none", "日aab\n"])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_the_search_beneath_re2_finds_what_re2_finds(text, start):
    encoded, regex = EncodedText(text), LinearRegex("a+b?")
    start = min(start, len(text))
    options = re2.Options()
    options.longest_match = True
    searched, matched = (getattr(re2.compile("a+b?", options), name)(text, start) for name in ("search", "match"))
    assert regex.search(encoded, start) == (None if searched is None else searched.start())
    assert regex.match(encoded, start) == (None if matched is None else matched.end())
