"""Filters an answer that comes as one JSON document, and the texts of a request."""

from gateway.output_filter.channel import Answer
from gateway.output_filter.endings import CODE, error_body
from gateway.output_filter.event_texts import FoundText, texts_of
from gateway.output_filter.held_event import replaced
from gateway.output_filter.json_spans import encoded, parse
from gateway.output_filter.shapes import api_of


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
    is_counted = is_counted and found.instead is None
    text = answer.whole(found.text, found.role.writing, is_counted=is_counted)
    if text == found.text:
        return None
    literal = data[found.start : found.end]
    return (found.start, found.end, encoded(text, literal) if found.instead is None else found.instead)
