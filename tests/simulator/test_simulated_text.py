"""Laws of the tokenizer, the made-up text, and text that is forced."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.composition import Constraint, Finish, Forced, ToolCall, Wish, compose
from simulator.regex_text import RegexError, text_for_regex
from simulator.schema_value import SchemaError, value_for_schema
from simulator.tokens import pieces_of, token_ids

PII = "Contact jane.doe@example.com or +1 415 555 0134, card 4111 1111 1111 1111, SSN 078-05-1120. Bye"


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - a simulation, nothing secret


def text_of(pieces):
    return "".join(piece.text for piece in pieces)


@given(st.text())
def test_pieces_join_to_the_text_and_are_small(text):
    pieces = pieces_of(text)
    assert "".join(pieces) == text
    assert all(0 < len(piece.strip(" ")) <= 4 or not piece.strip(" ") for piece in pieces)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_token_ids_are_the_same_every_time(text):
    assert token_ids(pieces_of(text)) == token_ids(pieces_of(text))


@given(st.integers(0, 2**63), st.text(max_size=80), st.integers(1, 300), st.booleans())
def test_an_answer_ends_once_and_never_passes_its_limit(seed, prompt, limit, ignores_end):
    pieces = compose(Wish(prompt, seed, limit, ignores_end=ignores_end))
    assert 1 <= len(pieces) <= limit
    assert [piece.finish is not None for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert (pieces[-1].finish is Finish.LENGTH) == (len(pieces) == limit and not pieces[-1].is_end_token)
    assert not (ignores_end and pieces[-1].is_end_token)


@given(st.integers(0, 2**63), st.text(max_size=40), st.integers(1, 60))
def test_a_shorter_limit_gives_the_beginning_of_the_longer_answer(seed, prompt, limit):
    long = text_of(compose(Wish(prompt, seed, 200)))
    assert long.startswith(text_of(compose(Wish(prompt, seed, limit))))


@given(st.integers(0, 2**63), st.sampled_from(["e", "the", " ca", ". ", "zzz"]))
def test_a_stop_text_is_never_shown_and_cuts_at_its_first_place(seed, stop):
    free = text_of(compose(Wish("fleet", seed, 120)))
    cut = compose(Wish("fleet", seed, 120, stops=(stop,)))
    assert text_of(cut) == free.partition(stop)[0]
    assert (cut[-1].stop_text == stop) == (stop in free)


def test_an_early_stop_text_waits_for_the_least_number_of_tokens():
    assert len(compose(Wish("fleet", 5, 60, min_tokens=20, stops=("e",)))) >= 20


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_a_literal_regex_gives_exactly_its_text(text):
    assert text_for_regex(re.escape(text), seeded(0)) == text


@pytest.mark.parametrize(
    "pattern",
    [r"[abc]{3}-\d{4}", r"^(yes|no)$", r"(?:ab|cd)+x?", r"[^a-z]{2,5}", r"\w*\s.", r"a{2,}", r"cost: 5\$", "[-+]1"],
)
def test_text_for_a_regex_matches_it(pattern):
    for seed in range(20):
        assert re.fullmatch(pattern, text_for_regex(pattern, seeded(seed)))


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "(?P<x>a)(?P=x)"])
def test_a_regex_that_cannot_be_served_is_refused_by_name(pattern):
    with pytest.raises(RegexError, match="egex"):
        text_for_regex(pattern, seeded(0))


@given(st.integers(0, 2**63))
def test_a_value_for_a_schema_has_its_types_and_enums(seed):
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": ["alice", "bob"]},
            "n": {"type": "integer", "minimum": 3, "maximum": 5},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 2},
            "code": {"type": "string", "pattern": "[A-F]{2}"},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "exact": {"const": 7},
        },
        "$defs": {"tag": {"type": "string", "minLength": 6, "maxLength": 8}},
    }
    value = value_for_schema(schema, seeded(seed))
    assert value["name"] in {"alice", "bob"}
    assert 3 <= value["n"] <= 5
    assert [6 <= len(tag) <= 8 for tag in value["tags"]] == [True, True]
    assert re.fullmatch("[A-F]{2}", value["code"])
    assert value["maybe"] is None
    assert value["exact"] == 7


def test_a_schema_of_an_unknown_type_or_without_an_end_is_refused():
    with pytest.raises(SchemaError, match="Invalid type: nonsense"):
        value_for_schema({"type": "nonsense"}, seeded(0))
    with pytest.raises(SchemaError, match="without an end"):
        value_for_schema({"$ref": "#"}, seeded(0))


def test_forced_text_comes_exactly_and_in_small_pieces_that_cut_secrets():
    pieces = compose(Wish("x", 1, 200, forced=Forced(Constraint.REGEX, re.escape(PII))))
    assert text_of(pieces) == PII
    assert len(pieces) > 40
    assert pieces[-1].is_end_token
    assert not any("@example.com" in piece.text or "4111 1111" in piece.text for piece in pieces)


def test_a_forced_choice_that_is_too_long_ends_by_length():
    pieces = compose(Wish("x", 1, 3, forced=Forced(Constraint.CHOICE, (PII,))))
    assert text_of(pieces) == "".join(pieces_of(PII)[:3])
    assert pieces[-1].finish is Finish.LENGTH


def test_tool_arguments_are_json_for_their_schema():
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris"]}, "days": {"enum": [1]}}}
    pieces = compose(Wish("x", 1, 200, tool=ToolCall("get_weather", schema, was_named=True)))
    assert json.loads(text_of(pieces)) == {"city": "Paris", "days": 1}
    assert pieces[0].text == ""


@pytest.mark.parametrize("pattern", ["(a{4000}){4000}", "((((a{99}){99}){99}){99}){99}", "(?:[ab]{4096}){1000000}"])
def test_counts_within_counts_are_bounded(pattern):
    with pytest.raises(RegexError, match="smaller counts"):
        text_for_regex(pattern, seeded(0))
