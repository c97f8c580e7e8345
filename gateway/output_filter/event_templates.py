"""Knows an event again that differs from an earlier one in one text and in counts, as nearly all of a stream do."""

import re

from gateway.output_filter.channel import Channel
from gateway.output_filter.held_event import HeldEvent
from gateway.output_filter.json_spans import Span, decoded_strictly, spans
from gateway.output_filter.shapes import Key

MOST = 16
"""Kept at once: one per choice, for answers with as many choices."""
MOST_LEARNED = 64
"""Learned from one stream: where events keep differing, learning costs more than it saves."""
_NUMBER = rb"-?[0-9][0-9.eE+-]{0,30}"
_INSIDE = rb'([^"\\]*(?:\\.[^"\\]*)*)'
_UP_TO_DIGITS = re.compile(rb"(?:.*[0-9])?", re.DOTALL)


class Template:
    """What stands before and after the text."""

    __slots__ = ("_event", "_mark", "_pattern", "after", "after_length", "before", "before_length", "channel", "key")

    def __init__(self, event: HeldEvent, data: bytes, key: Key) -> None:
        slot = event.slots[0]
        self.before, self.after = event.raw[: slot.raw_start + 1], event.raw[slot.raw_end - 1 :]
        self.before_length, self.after_length = len(self.before), len(self.after)
        self.channel: Channel = slot.channel
        self.key = key
        found = _UP_TO_DIGITS.match(self.before)
        self._mark = self.before[found.end() :] if found else self.before
        self._event: tuple[bytes, bytes, int] = (event.raw, data, slot.raw_start)
        self._pattern: re.Pattern[bytes] | None = None

    def place(self, raw: bytes) -> tuple[int, int] | None:
        """Where the text stands in an event that differs in numbers too; indexes are kept: they say whose text it is.

        The pattern takes a millisecond to make, as long as a hundred events take: most streams never need it, since
        what does not even name the text in the same way can't match.
        """
        if self._mark not in raw:
            return None
        if self._pattern is None:
            self._pattern = re.compile(_pattern(*self._event), re.DOTALL)
        found = self._pattern.fullmatch(raw)
        return None if found is None else found.span(1)


Known = tuple[Template, str, int, int]
"""A template that fits an event, the event's text, and where it stands in the bytes."""


class Templates:
    """The events seen lately, the last one first."""

    __slots__ = ("_learned", "_templates")

    def __init__(self) -> None:
        self._templates: list[Template] = []
        self._learned = 0

    def known(self, raw: bytes) -> Known | None:
        """The event's text, where nothing else in it can be text that was not seen before."""
        for place, template in enumerate(self._templates):
            start, end = template.before_length, len(raw) - template.after_length
            if start <= end and raw.startswith(template.before) and raw.endswith(template.after):
                return self._taken(place, raw, start, end)
        for place, template in enumerate(self._templates):
            if (found := template.place(raw)) is not None:
                return self._taken(place, raw, *found)
        return None

    def learn(self, event: HeldEvent, data: bytes, key: Key) -> None:
        """Keeps an event on one line with a single text and nothing else that may be text."""
        if len(event.slots) != 1 or event.changes or data not in event.raw or self._learned >= MOST_LEARNED:
            return
        if event.slots[0].instead is not None or not event.slots[0].is_json:
            return
        self._learned += 1
        self._templates.insert(0, Template(event, data, key))
        del self._templates[MOST:]

    def _taken(self, place: int, raw: bytes, start: int, end: int) -> Known | None:
        literal = raw[start:end]
        if b"\\" in literal or b'"' in literal or not literal.isascii() or not (text := literal.decode()).isprintable():
            try:
                text = decoded_strictly(b'"' + literal + b'"')
            except ValueError:  # it is not the inside of one string
                return None
        if place:
            self._templates.insert(0, self._templates.pop(place))
        return self._templates[0], text, start - 1, end + 1


def _pattern(raw: bytes, data: bytes, text_start: int) -> bytes:
    offset = raw.find(data)
    pieces: list[bytes] = []
    at = 0
    for span in spans(data):
        start, end = span.start + offset, span.end + offset
        if start == text_start:
            pieces += (re.escape(raw[at : start + 1]), _INSIDE)
            at = end - 1
        elif _is_count(span, data):
            pieces += (re.escape(raw[at:start]), _NUMBER)
            at = end
    return b"".join([*pieces, re.escape(raw[at:])])


def _is_count(span: Span, data: bytes) -> bool:
    name = span.path[-1] if span.path else 0
    return isinstance(name, str) and not name.endswith("index") and data[span.start] in b"-0123456789"
