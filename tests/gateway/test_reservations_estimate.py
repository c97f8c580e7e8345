"""What a request may come to: exact for token ids, on the high side for texts, bounded for the output."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.prompt_parts import PartTokens
from gateway.reservations import Demand
from gateway.text_tokens import text_tokens
from gateway.token_estimate import MOST_SEQUENCES, MOST_TOKENS, BadField, Dialect, TokenEstimate, estimate

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
FIELDS = [
    "messages",
    "prompt",
    "input",
    "system",
    "instructions",
    "documents",
    "query",
    "suffix",
    "tools",
    "functions",
    "n",
    "best_of",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "type",
    "image_url",
    "input_audio",
    "source",
]
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), JSON, max_size=6)
IDS = st.lists(st.integers(0, 200_000), min_size=1, max_size=50)


def tokens(**document):
    return estimate(document, Dialect.CHAT).input_tokens


def user(*content):
    return [{"role": "user", "content": list(content)}]


@given(document=DOCUMENTS, dialect=st.sampled_from(list(Dialect)))
def test_whatever_the_document_it_is_an_estimate_or_a_field_is_named(document, dialect):
    found = estimate(document, dialect)
    if isinstance(found, BadField):
        assert found.name in document
        assert found.name in found.message
    else:
        assert found.input_tokens >= 0
        assert found.sequences >= (dialect not in {Dialect.INPUT_ONLY, Dialect.UPLOAD, Dialect.NOTHING})
        assert found.demand(100).output_tokens <= 100 * found.sequences


@given(ids=IDS)
def test_token_ids_are_counted_exactly(ids):
    assert estimate({"prompt": ids}, Dialect.COMPLETION) == TokenEstimate(len(ids), 1, None)
    assert estimate({"input": ids}, Dialect.INPUT_ONLY) == TokenEstimate(len(ids), 0, None)


@given(prompts=st.lists(IDS, min_size=1, max_size=5), n=st.integers(1, 4), best_of=st.integers(1, 6))
def test_each_prompt_and_each_choice_has_an_output_of_its_own(prompts, n, best_of):
    found = estimate({"prompt": prompts, "n": n, "best_of": best_of, "max_tokens": 7}, Dialect.COMPLETION)
    assert found.input_tokens == sum(map(len, prompts))
    assert found.demand(1000) == Demand(found.input_tokens, 7 * len(prompts) * max(n, best_of), is_output_stated=True)


@given(one=st.text(), other=st.text())
def test_a_longer_text_never_has_fewer_tokens_and_two_have_about_their_sum(one, other):
    both = text_tokens(one + other)
    assert max(text_tokens(one), text_tokens(other)) <= both <= text_tokens(one) + text_tokens(other)
    assert both <= 4 * len((one + other).encode("utf-8", "surrogatepass"))


@given(words=st.lists(st.text(string.ascii_letters, min_size=1, max_size=8), min_size=5, max_size=5))
def test_a_long_text_is_sampled_to_about_what_it_has(words):
    page = " ".join(words) + ". "
    text = page * (100_000 // len(page))
    assert text_tokens(text) == pytest.approx(text_tokens(page) * (100_000 // len(page)), rel=0.35)


@pytest.mark.parametrize(
    ("text", "counted"),
    [  # by the o200k and cl100k vocabularies: the larger of the two counts
        ("Alle Menschen sind frei und gleich an Würde und Rechten geboren. " * 5, 81),
        ("Все люди рождаются свободными и равными в своём достоинстве и правах. " * 5, 181),  # noqa: RUF001 - Russian is meant
        ("人人生而自由，在尊严和权利上一律平等。" * 5, 105),  # noqa: RUF001 - Chinese is meant
    ],
)
def test_texts_of_people_are_estimated_near_or_above_their_count(text, counted):
    assert 0.85 * counted <= text_tokens(text) <= 2 * counted


def test_a_picture_counts_by_its_kind_and_not_by_its_bytes():
    url = "data:image/png;base64," + "A" * 1_000_000
    parts = (
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "input_image", "image_url": url},
        {"image_url": {"url": url}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url}},
    )
    for part in parts:
        without = tokens(messages=user({"type": "text", "text": "hello"}))
        with_it = tokens(messages=user({"type": "text", "text": "hello"}, part))
        assert with_it - without == PartTokens().image
    assert tokens(messages=user(*parts)) > 4 * PartTokens().image


def test_a_sound_and_a_document_count_by_their_size_but_never_less_than_a_usual_one():
    def sound(size):
        return tokens(messages=user({"type": "input_audio", "input_audio": {"data": "A" * size, "format": "mp3"}}))

    assert sound(10) == sound(1000) > PartTokens().audio
    assert sound(8_000_000) > 70_000
    text = {"type": "document", "source": {"type": "text", "data": "x" * 400_000}}
    assert tokens(messages=user(text)) > 90_000


def test_a_picture_cannot_hide_a_text():
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}, "text": "word " * 1000}
    assert tokens(messages=user(part)) > PartTokens().image + 1000


def test_tools_count_with_the_names_of_their_members():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"x" * 300: {"type": "image"}}}}}
    assert tokens(messages=user(), tools=[tool]) - tokens(messages=user()) > 200


def test_a_query_counts_before_every_document():
    document = {"query": "q" * 300, "documents": ["a", "b", "c"]}
    assert estimate(document, Dialect.INPUT_ONLY).input_tokens >= 3 * text_tokens("q" * 300)


def test_a_document_nested_a_thousand_times_is_estimated():
    deep = "hello"
    for _ in range(100_000):
        deep = [deep]
    assert tokens(messages=deep) > 0


@pytest.mark.parametrize("dialect", [Dialect.CHAT, Dialect.COMPLETION, Dialect.MESSAGES])
def test_the_stated_output_is_bounded_by_what_the_model_can_write(dialect):
    assert estimate({"max_tokens": 50}, dialect).demand(100).output_tokens == 50
    assert estimate({"max_tokens": MOST_TOKENS}, dialect).demand(100) == Demand(0, 100, is_output_stated=True)
    assert estimate({"max_tokens": None}, dialect).demand(100, 40) == Demand(0, 40, is_output_stated=False)
    assert estimate({}, dialect).demand(100).output_tokens == 100


def test_of_two_bounds_the_larger_counts_and_one_of_another_dialect_bounds_nothing():
    assert estimate({"max_tokens": 5, "max_completion_tokens": 9}, Dialect.CHAT).stated_output_tokens == 9
    assert estimate({"max_tokens": 9, "max_completion_tokens": 5}, Dialect.CHAT).stated_output_tokens == 9
    assert estimate({"max_output_tokens": 1}, Dialect.CHAT).stated_output_tokens is None
    assert estimate({"max_tokens": 1}, Dialect.RESPONSES).stated_output_tokens is None
    assert estimate({"max_output_tokens": 1}, Dialect.RESPONSES).stated_output_tokens == 1
    assert estimate({"max_tokens": 9}, Dialect.INPUT_ONLY).demand(100).output_tokens == 0


@pytest.mark.parametrize(
    ("document", "name", "shown"),
    [
        ({"max_tokens": -1}, "max_tokens", "is -1"),
        ({"max_tokens": MOST_TOKENS + 1}, "max_tokens", str(MOST_TOKENS + 1)),
        ({"max_tokens": 10**4000}, "max_tokens", "more than 20 digits"),
        ({"max_tokens": "100"}, "max_tokens", "is a text"),
        ({"max_tokens": True}, "max_tokens", "is true or false"),
        ({"max_tokens": 1.5}, "max_tokens", "is no whole number"),
        ({"max_tokens": json.loads("1e999")}, "max_tokens", "is no whole number"),
        ({"max_tokens": [1]}, "max_tokens", "is a list"),
        ({"max_completion_tokens": {}}, "max_completion_tokens", "is an object"),
        ({"n": 0}, "n", "is 0"),
        ({"n": -3}, "n", "is -3"),
        ({"n": MOST_SEQUENCES + 1}, "n", "from 1 to 128"),
    ],
)
def test_a_value_that_cannot_be_meant_names_its_field(document, name, shown):
    found = estimate(document, Dialect.CHAT)
    assert isinstance(found, BadField)
    assert found.name == name
    assert shown in found.message
    assert found.message.endswith("or leave it out.")


def test_a_whole_number_written_with_a_point_is_one():
    assert estimate({"max_tokens": 16.0}, Dialect.CHAT).stated_output_tokens == 16
