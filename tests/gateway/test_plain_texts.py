"""Chats that are nothing but texts: what is found in their texts is what is found in the whole document."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.affinity import conversation_key, prompt_blocks
from gateway.plain_texts import plain_texts
from gateway.token_estimate import Dialect, estimate

TEXT = st.text(max_size=20) | st.text(st.characters(codec=None), min_size=1, max_size=9).map(lambda text: text * 300)
ROLES = st.sampled_from(["system", "developer", "user", "assistant"]) | st.text(max_size=5)
MESSAGE = st.fixed_dictionaries({"role": ROLES, "content": TEXT})
CHATS = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(MESSAGE, min_size=1, max_size=6)},
    optional={"max_tokens": st.integers(1, 99), "n": st.integers(1, 3), "stream": st.booleans(), "user": TEXT},
)
OTHER = st.one_of(
    st.fixed_dictionaries({"role": ROLES}),
    st.fixed_dictionaries({"role": ROLES, "content": st.none() | st.lists(TEXT, max_size=2)}),
    st.fixed_dictionaries({"role": ROLES, "content": TEXT, "name": TEXT}),
    st.fixed_dictionaries({"role": st.none() | st.integers(), "content": TEXT}),
    st.none() | TEXT | st.lists(TEXT, max_size=2),
)
PROMPTS = st.sampled_from(
    ["prompt", "input", "system", "instructions", "documents", "query", "suffix", "tools", "functions"]
)


@given(CHATS)
def test_the_texts_of_a_chat_say_what_its_document_says(document):
    texts = plain_texts(document)
    assert texts is not None
    assert estimate(document, Dialect.CHAT, texts=texts) == estimate(document, Dialect.CHAT)
    assert conversation_key("a", "m", document, texts) == conversation_key("a", "m", document)
    assert prompt_blocks(document, model="m", texts=texts) == prompt_blocks(document, model="m")


@given(CHATS, OTHER, st.integers(0, 5))
def test_a_chat_with_anything_else_in_a_message_is_not_plain(document, other, place):
    document["messages"].insert(place, other)
    assert plain_texts(document) is None


@given(CHATS, PROMPTS)
def test_a_chat_with_another_prompt_beside_it_is_not_plain(document, name):
    assert plain_texts({**document, name: "x"}) is None


@given(st.dictionaries(PROMPTS | st.just("messages"), st.none() | TEXT | st.lists(st.none(), max_size=1)))
def test_what_is_no_chat_is_not_plain(document):
    assert plain_texts(document) is None
