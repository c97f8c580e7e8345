"""Spans of members: each holds exactly its value, whatever the text looks like."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.member_spans import closing_brace, member_spans

BLANK = st.text(" \n\t\r", max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def spelt(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """An object, and one of its texts with blanks in any place between members."""
    document = draw(st.dictionaries(st.text(), VALUES, max_size=6))
    is_ascii = draw(st.booleans())
    parts = [
        f"{draw(BLANK)}{json.dumps(name, ensure_ascii=is_ascii)}{draw(BLANK)}:{draw(BLANK)}"
        f"{json.dumps(value, ensure_ascii=is_ascii, indent=draw(st.sampled_from([None, 1])))}{draw(BLANK)}"
        for name, value in document.items()
    ]
    text = f"{draw(BLANK)}{{{','.join(parts)}}}{draw(BLANK)}"
    return document, text.encode("utf-8", "surrogatepass")


@given(spelt())
def test_each_span_holds_exactly_its_value(case: tuple[dict[str, Any], bytes]) -> None:
    document, body = case
    spans = member_spans(body)
    assert {
        name: json.loads(body[span.start : span.end].decode("utf-8", "surrogatepass")) for name, span in spans.items()
    } == document
    assert all(body[span.start : span.end].strip() == body[span.start : span.end] for span in spans.values())


@given(spelt())
def test_the_closing_brace_is_the_last_one(case: tuple[dict[str, Any], bytes]) -> None:
    _, body = case
    assert body[closing_brace(body) :].strip() == b"}"


def test_an_escaped_quote_ends_no_text() -> None:
    body = rb'{"a": "x\"},\\", "b": [1, {"c": "]"}], "c": 2}'
    assert {name: body[span.start : span.end] for name, span in member_spans(body).items()} == {
        "a": rb'"x\"},\\"',
        "b": b'[1, {"c": "]"}]',
        "c": b"2",
    }
