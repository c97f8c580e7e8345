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
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_UP_TO_DIGITS = re.compile(rb"(?:.*[0-9])?", re.DOTALL)


class Template:
    """What stands before and after the text."""

    __slots__ = (
        "_event", "_mark", "_patterns", "after", "after_length", "before", "before_length", "channel",
        "is_lined", "key",
    )  # fmt: skip

    def __init__(self, event: HeldEvent, data: bytes, key: Key) -> None:
        slot = event.slots[0]
        self.before, self.after = event.raw[: slot.raw_start + 1], event.raw[slot.raw_end - 1 :]
        self.before_length, self.after_length = len(self.before), len(self.after)
        self.channel: Channel = slot.channel
        self.key = key
        self.is_lined = self.after.endswith(b"\n\n") and b"\r" not in event.raw
        """Whether its lines end with LF alone."""
        found = _UP_TO_DIGITS.match(self.before)
        self._mark = self.before[found.end() :] if found else self.before
        self._event: tuple[bytes, bytes, int] = (event.raw, data, slot.raw_start)
        self._patterns: tuple[re.Pattern[bytes], re.Pattern[bytes]] | None = None

    def end_before_counts(self, raw: bytes) -> int:
        """Where the text of an event that begins the same ends, if after it only counts differ; otherwise 0."""
        end = raw.find(b'"', self.before_length)
        return end if self._patterns is not None and self._patterns[1].fullmatch(raw, end) else 0

    def place(self, raw: bytes) -> tuple[int, int] | None:
        """Where the text stands in an event that differs in it alone, or in numbers too.

        Indexes have to be the same: they say whose text it is.
        """
        start = self.before_length if raw.startswith(self.before) else self._start(raw)
        if start is None or (found := _INSIDE.match(raw, start)) is None:
            return None
        end = found.end()
        if len(raw) - end == self.after_length and raw.endswith(self.after):
            return start, end
        return (start, end) if self._made()[1].fullmatch(raw, end) else None

    def _start(self, raw: bytes) -> int | None:
        """Where the text begins, behind other numbers than before; they mostly stay for a while, as the time does.

        What does not even name the text in the same way can't match.
        """
        if self._mark not in raw or (found := self._made()[0].match(raw)) is None:
            return None
        self.before, self.before_length = found[0], found.end()
        return found.end()

    def _made(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
        """The patterns; they take a millisecond to make, as long as hundreds of events take: most never need them."""
        if self._patterns is None:
            before, after = _written(*self._event)
            self._patterns = (re.compile(before, re.DOTALL), re.compile(after, re.DOTALL))
        return self._patterns


Known = tuple[Template, str, int, int]
"""A template that fits an event, the event's text, and where it stands in the bytes, without quotation marks."""


class Templates:
    """The events seen lately, the last one first."""

    __slots__ = ("_learned", "_templates", "last")

    def __init__(self) -> None:
        self.last: Template | None = None
        """The one that fitted last, unless its lines end in a way of which a piece may not have all."""
        self._templates: list[Template] = []
        self._learned = 0

    def known(self, raw: bytes) -> Known | None:
        """The event's text, where nothing else in it can be text that was not seen before."""
        for number, template in enumerate(self._templates):
            if (found := template.place(raw)) is not None:
                return self._taken(number, raw, *found)
        return None

    def learn(self, event: HeldEvent, data: bytes, key: Key) -> None:
        """Keeps an event on one line with a single text and nothing else that may be text."""
        if len(event.slots) != 1 or event.changes or data not in event.raw or self._learned >= MOST_LEARNED:
            return
        if event.slots[0].instead is not None or not event.slots[0].is_json:
            return
        self._learned += 1
        template = Template(event, data, key)
        self._templates.insert(0, template)
        del self._templates[MOST:]
        self._glance_at(template)

    def _glance_at(self, template: Template) -> None:
        self.last = template if template.is_lined else None

    def _taken(self, number: int, raw: bytes, start: int, end: int) -> Known | None:
        literal = raw[start:end]
        if b"\\" in literal or not literal.isascii() or not (text := literal.decode()).isprintable():
            try:
                text = decoded_strictly(b'"' + literal + b'"')
            except ValueError:  # it is not the inside of a string
                return None
        if number:
            self._templates.insert(0, self._templates.pop(number))
        template = self._templates[0]
        self._glance_at(template)
        return template, text, start, end


def _written(raw: bytes, data: bytes, text_start: int) -> tuple[bytes, bytes]:
    """Patterns of what stands before and after the text in an event."""
    offset = raw.find(data)
    pieces: list[bytes] = []
    before: list[bytes] = []
    at = 0
    for span in spans(data):
        start, end = span.start + offset, span.end + offset
        if start == text_start:
            before, pieces = [*pieces, re.escape(raw[at : start + 1])], []
            at = end - 1
        elif _is_count(span, data):
            pieces += (re.escape(raw[at:start]), _NUMBER)
            at = end
    return b"".join(before), b"".join([*pieces, re.escape(raw[at:])])


def _is_count(span: Span, data: bytes) -> bool:
    name = span.path[-1] if span.path else 0
    return isinstance(name, str) and not name.endswith("index") and data[span.start] in b"-0123456789"
