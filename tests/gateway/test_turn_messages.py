"""Laws of the messages of a turn: what is said, and how an answer in pieces becomes messages."""

import asyncio
import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.turn_answer import MOST_WAITING_BYTES, TurnAnswer
from gateway.turn_messages import DONE, Cancel, Turn, WrongTurn, error_message, said

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
DOCUMENTS = st.dictionaries(st.text().filter(lambda name: name != "stream"), VALUES)
STREAM = (("content-type", "text/event-stream; charset=utf-8"),)


@given(DOCUMENTS, st.sampled_from(["", " ", "\n"]), st.booleans())
def test_a_turn_is_the_clients_document_and_a_stream(document, blank, is_stated):
    stated = {**document, "stream": True} if is_stated else document
    heard = said(blank + json.dumps(stated) + blank)
    if document == {"type": "cancel"} and not is_stated:
        assert isinstance(heard, Cancel)
        return
    assert isinstance(heard, Turn)
    assert json.loads(heard.body) == {**document, "stream": True}
    if is_stated:
        assert heard.body == (blank + json.dumps(stated) + blank).encode()


@given(st.text())
def test_every_text_is_something(text):
    heard = said(text)
    if isinstance(heard, Turn) and not heard.body.lstrip().startswith(b"{"):
        assert heard.body == text.encode()


@pytest.mark.parametrize("stream", [False, None, 1, "true", []])
def test_a_turn_that_is_no_stream_is_refused(stream):
    heard = said(json.dumps({"model": "m", "stream": stream}))
    assert isinstance(heard, WrongTurn)
    assert json.loads(heard.message)["error"]["param"] == "stream"


@example(b"[" * 100_000)
@given(st.binary())
def test_whatever_an_engine_says_to_refuse_is_an_error_object(body):
    assert json.loads(error_message(503, body, "3")).keys() == {"error", "status", "retry_after"}


class Connection:
    """An engine's connection that notes what is done to it."""

    def __init__(self):
        self.flows, self.cuts = [], 0

    def send(self, request, reader):
        self.request = request

    def flow(self, goes):
        self.flows.append(goes)

    def cut(self):
        self.cuts += 1


async def messages_of(answer):
    messages = []
    while (message := await asyncio.wait_for(answer.next(), 5)) is not None:
        messages.append(message)
    return messages


def asked():
    answer, connection = TurnAnswer(), Connection()
    answer.ask(connection, b"request")
    return answer, connection


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1), max_size=6),
    st.lists(st.integers(0, 400), max_size=6),
    st.booleans(),
)
def test_each_events_data_is_a_message_however_it_comes(texts, cuts, is_done):
    texts = [text for text in map(str.strip, texts) if text and text != DONE]
    stream = b": comment\n\n" + b"".join(f"data: {text}\n\n".encode() for text in texts)
    stream += b"data: [DONE]\n\n" if is_done else b""

    async def read():
        answer, _ = asked()
        answer.on_head(200, STREAM)
        edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
        for start, end in itertools.pairwise(edges):
            answer.on_piece(stream[start:end])
        answer.on_end()
        return await messages_of(answer)

    assert asyncio.run(read()) == [*texts, DONE]


async def test_what_the_client_does_not_take_waits_where_it_comes_from():
    answer, connection = asked()
    answer.on_head(200, STREAM)
    piece = b"data: " + b"x" * 65_536 + b"\n\n"
    while False not in connection.flows:
        answer.on_piece(piece)
    assert answer._waiting_bytes <= MOST_WAITING_BYTES + len(piece)
    while True not in connection.flows:
        assert await answer.next() == "x" * 65_536
    answer.fail(499, "cancelled", "It was cancelled.")
    assert connection.cuts == 1
    error, done = await messages_of(answer)
    assert (json.loads(error)["error"]["code"], done) == ("cancelled", DONE)
    answer.on_end()
    answer.on_lost()
    assert await answer.next() is None


async def test_a_refusal_an_answer_that_is_whole_and_one_that_broke_off_end_a_turn_alike():
    answer, _ = asked()
    answer.on_head(429, (("content-type", "application/json"), ("retry-after", "7")))
    answer.on_piece(b'{"error": {"code": "rate_limit_exceeded"}}')
    answer.on_end()
    error, done = await messages_of(answer)
    assert json.loads(error) == {"error": {"code": "rate_limit_exceeded"}, "status": 429, "retry_after": "7"}
    assert done == DONE
    answer, _ = asked()
    answer.on_head(200, (("content-type", "application/json"),))
    answer.on_piece(b'{"id": 1}')
    answer.on_end()
    assert await messages_of(answer) == ['{"id": 1}', DONE]
    answer, _ = asked()
    answer.on_lost()
    error, done = await messages_of(answer)
    assert (json.loads(error)["error"]["code"], done) == ("engine_lost", DONE)


async def test_a_turn_that_was_cancelled_before_it_was_asked_for_is_never_asked():
    answer, connection = TurnAnswer(), Connection()
    answer.fail(499, "cancelled", "It was cancelled.")
    answer.ask(connection, b"request")
    assert connection.cuts == 1
    assert not hasattr(connection, "request")
    assert len(await messages_of(answer)) == 2


async def test_an_event_without_end_ends_the_turn():
    answer, connection = asked()
    answer.on_head(200, STREAM)
    for _ in range(5):
        answer.on_piece(b"data: " + b"x" * 1_000_000)
    assert connection.cuts
    error, done = await messages_of(answer)
    assert (json.loads(error)["error"]["code"], done) == ("engine_lost", DONE)
