"""Filters an answer that comes as one JSON document, and the texts of a request."""

from gateway.output_filter.channel import Answer
from gateway.output_filter.endings import CODE, error_body
from gateway.output_filter.event_texts import FoundText, texts_of
from gateway.output_filter.held_event import replaced
from gateway.output_filter.json_spans import decoded, encoded, parse, spans
from gateway.output_filter.scanner import NUMBER_IN_JSON
from gateway.output_filter.sentences import SentenceGate
from gateway.output_filter.shapes import Whole, api_of, role_of

_ASKED = frozenset({"messages", "prompt", "input", "instructions", "system", "suffix", "documents", "query"})
_NOT_TEXT = frozenset({"name", "data", "file_data", "media_type", "format", "detail"})


def filter_answer(body: bytes, answer: Answer) -> bytes:
    """The body with every value in its texts replaced, other bytes as they were; an error where one is blocked."""
    try:
        document = parse(body)
    except ValueError:
        text = body.decode("utf-8", "surrogateescape")
        changed = answer.whole(text, None).encode("utf-8", "surrogateescape")
    else:
        api = api_of(document)
        found = list(texts_of(api, document, body))
        changes = [change for text in found if (change := whole_change(text, body, answer)) is not None]
        changed = replaced(body, changes) if changes else body
    if answer.blocked is None:
        return changed
    return error_body(f"The answer was withheld by the output filter ({answer.blocked}).", CODE)


def whole_change(
    found: FoundText, data: bytes, answer: Answer, *, is_counted: bool = True
) -> tuple[int, int, bytes] | None:
    """What a text of its own becomes; None = it stays as it is."""
    if not found.text:
        return (found.start, found.end, found.instead or b"null")
    is_counted = is_counted and found.instead in (None, NUMBER_IN_JSON.encode())
    text = answer.whole(found.text, found.role.writing, is_counted=is_counted)
    if text == found.text:
        return None
    literal = data[found.start : found.end]
    return (found.start, found.end, encoded(text, literal) if found.instead is None else found.instead)


def request_changes(body: bytes, answer: Answer) -> list[tuple[int, int, bytes]]:
    """What a filter on requests would change in a body: the texts a model is asked with, and nothing else.

    Places and new bytes, in order, for whoever edits the body; ValueError where it is no JSON.
    """
    document = parse(body)
    changes = []
    for span in spans(body):
        if not span.is_string or not span.path or span.path[0] not in _ASKED or span.path[-1] in _NOT_TEXT:
            continue
        text = decoded(body[span.start : span.end])
        role = role_of(api_of(document), document, span.path, text)
        if role is None or text.startswith("data:"):
            continue
        change = whole_change(FoundText(text, span.start, span.end, Whole(role.writing)), body, answer)
        changes += [change] if change else []
    return changes


def texts_to_judge(body: bytes, window: int) -> list[str]:
    """The sentences of a whole answer, for a moderation service; the body is filtered before."""
    try:
        document = parse(body)
    except ValueError:
        texts = [body.decode("utf-8", "replace")]
    else:
        found = texts_of(api_of(document), document, body)
        texts = [text.text for text in found if text.text and text.instead is None]
    asked: list[str] = []
    for text in texts:
        gate = SentenceGate(window)
        gate.feed(text)
        asked += [sentence for _, _, sentence in gate.cut(len(text), is_end=True)]
    return asked
