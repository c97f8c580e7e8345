"""Fields that reach a closed code path: named where they are, and everything else goes on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.closed_fields import CLOSABLE, closed_field

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
INLINE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def chat(*content: object, **more: object) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": list(content) or "hi"}], **more}


CASES = [
    ("multimodal", chat({"type": "text", "text": "a"}, IMAGE), "/messages/0/content/1"),
    ("multimodal", chat({"type": "input_audio", "input_audio": {"data": "x"}}), "/messages/0/content/0"),
    ("multimodal", chat({"type": "something_new"}), "/messages/0/content/0"),
    ("multimodal", chat({"image": "x"}), "/messages/0/content/0"),
    ("multimodal", chat(mm_processor_kwargs={"a": 1}), "/mm_processor_kwargs"),
    ("multimodal", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "/input/0/content/0"),
    (
        "multimodal",
        chat({"type": "tool_result", "content": [{"type": "image", "source": {}}]}),
        "/messages/0/content/0/content/0",
    ),
    ("multimodal", chat({**IMAGE, "role": "user"}), "/messages/0/content/0"),
    ("media-ssrf", chat({"role": "user", "image_url": "https://example.com/a.png"}), "/messages/0/content/0"),
    (
        "media-ssrf",
        chat({"type": "text", "text": "a", "uuid": "u", "image_url": "https://example.com/a.png"}),
        "/messages/0/content/0",
    ),
    ("multimodal", {"input": [{"role": "user", "image": "https://example.com/a.png"}]}, "/input/0"),
    ("multimodal", {"input": [{"type": "text", "text": "a", "image": "x"}]}, "/input/0"),
    ("multimodal", chat(mm_payload={"a": 1}), "/mm_payload"),
    ("structured-output", chat(output_config={"format": {"type": "json_schema"}}), "/output_config"),
    ("media-ssrf", chat(IMAGE), "/messages/0/content/0"),
    ("media-ssrf", chat({"type": "video_url", "video_url": {"url": " FILE:///etc/passwd"}}), "/messages/0/content/0"),
    ("structured-output", chat(guided_regex="a+"), "/guided_regex"),
    ("structured-output", chat(response_format={"type": "json_schema"}), "/response_format"),
    ("structured-output", chat(tool_choice="required"), "/tool_choice"),
    ("structured-output", chat(tools=[{"type": "function", "function": {"strict": True}}]), "/tools/0"),
    ("structured-output", {"input": "x", "text": {"format": {"type": "json_schema"}}}, "/text/format"),
    ("tool-parser", chat(tools=[{"type": "function"}]), "/tools"),
    ("chat-template", chat(chat_template="{{ x }}"), "/chat_template"),
    ("prompt-embeds", {"prompt_embeds": "AAAA"}, "/prompt_embeds"),
    ("structured-output", chat(tool_choice={"type": "any"}), "/tool_choice"),
    ("structured-output", chat(tool_choice={"type": "tool", "name": "t"}), "/tool_choice"),
    ("tool-parser", chat(tool_choice={"type": "auto"}), "/tool_choice"),
    ("weight-endpoints", chat(custom_logit_processor="x"), "/custom_logit_processor"),
]


@pytest.mark.parametrize(("path", "document", "pointer"), CASES)
def test_a_field_of_a_closed_path_is_named(path: str, document: dict[str, Any], pointer: str) -> None:
    assert closed_field(document, {path}) == (pointer, path)
    assert closed_field(document, ()) is None
    assert closed_field(document, {"core", "lora"}) is None


@pytest.mark.parametrize(
    "document",
    [
        chat(),
        chat({"type": "text", "text": "https://example.com"}),
        chat(response_format={"type": "text"}, tool_choice="none", tools=[], modalities=["text"]),
        chat(tool_choice={"type": "none"}, output_config={"effort": "low"}),
        {"prompt": [[1, 2], [3]]},
        {"prompt": ["a", "b"], "guided_json": None},
        {"input": "text", "text": {"format": {"type": "text"}}},
        {"query": "q", "documents": ["a", "b"]},
        {"messages": [{"role": "assistant", "content": "x", "audio": None}, {"role": "user", "content": "y"}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}]},
        {"system": [{"type": "text", "text": "x"}], "messages": [{"role": "user", "content": "x"}]},
    ],
)
def test_text_passes_with_every_path_closed(document: dict[str, Any]) -> None:
    assert closed_field(document, CLOSABLE) is None


def test_inline_media_is_no_place_to_fetch_from() -> None:
    assert closed_field(chat(INLINE), {"media-ssrf"}) is None
    assert closed_field(chat(INLINE), {"multimodal"}) is not None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "content", "url"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["messages", "tools", "input", "text", "tool_choice", "regex"]), VALUES))
def test_any_document_gets_an_answer_that_quotes_no_value(document: dict[str, Any]) -> None:
    found = closed_field(document, CLOSABLE)
    if found is not None:
        assert all(part.isdigit() or part.isidentifier() for part in found.pointer.split("/")[1:])
