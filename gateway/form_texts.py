"""The filter on the texts of an upload: what a model is told beside the sound, such as its prompt."""

from gateway.form_document import text_parts
from gateway.output_filter.channel import Answer
from gateway.output_filter.json_spans import UnreadableAnswer

_SETTINGS = frozenset(
    {
        "chunking_strategy",
        "include[]",
        "language",
        "model",
        "response_format",
        "seed",
        "stream",
        "temperature",
        "timestamp_granularities[]",
        "to_language",
        "top_p",
    }
)
"""Words and numbers for the engine; every other text may be for the model."""


def form_changes(body: bytes, answer: Answer) -> list[tuple[int, int, bytes]]:
    """What the filter would change in a form that was read before: places and new bytes, in order.

    Raises:
        UnreadableAnswer: a part says how long it is, which would be wrong afterwards.
    """
    changes = []
    for part in text_parts(body):
        if part.name in _SETTINGS:
            continue
        text = body[part.start : part.end].decode()
        changed = answer.whole(text, None)
        if changed == text:
            continue
        if part.states_length:
            raise UnreadableAnswer("a part of the form says its length")
        changes.append((part.start, part.end, changed.encode()))
    return changes
