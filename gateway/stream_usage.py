"""The usage in an engine's stream: read, and taken out where it was asked for in the client's place."""

import json

from gateway.sse import SseEvent, SseEventTooLong, SseKind, SseReader
from gateway.token_usage import TokenUsage, usage_of

_USAGE = b'"usage"'
"""In a text of JSON the quotes would be escaped, so that these bytes are a member's name."""
_NO_CHOICES = b'"choices":[]'
_NULLS = (b',"usage":null', b', "usage": null')
_END = b"\n\n"
_DATA = SseKind.DATA
_DELTA = "delta"
_OPENING = b'"message_start"'
"""Anthropic's first event, which knows the input; the output comes with the last but one."""
_DONE = b"[DONE]"
_DONE_EVENT = b"data: [DONE]\n\n"


class StreamUsage:
    """Takes an engine's bytes and gives the client's.

    Where usage was not injected, they are the same bytes. Where it was, the chunk that holds nothing but usage is
    gone, and so are the members that say ``null`` until it comes.
    """

    def __init__(self, *, is_injected: bool) -> None:
        self.events = 0
        """Events with output that were sent on. Where events have names, those of deltas; ``[DONE]`` is none."""
        self._opening: TokenUsage | None = None
        """What a stream said at its beginning, of its input."""
        self._usage: TokenUsage | None = None
        self._is_injected = is_injected
        self._reader = SseReader()

    @property
    def usage(self) -> TokenUsage | None:
        """What the stream said so far. Of one that was cut before it told its output, what was sent on counts."""
        if self._opening is None or self._usage is not None:
            return _together(self._opening, self._usage)
        opening = self._opening
        return TokenUsage(opening.input_tokens, opening.cached_tokens, max(opening.output_tokens, self.events))

    @property
    def is_between_events(self) -> bool:
        """Whether the client has whole events only, so that something can stand between them."""
        return self._reader.is_between

    def feed(self, data: bytes) -> bytes:
        """What the client gets of some bytes."""
        if self._reader.is_between and _is_plain(data):
            self.events += data.count(_END) - data.count(_DONE_EVENT)
            return _without_nulls(data) if self._is_injected and _USAGE in data else data
        shown = self._read(data)
        return shown if self._is_injected else data

    def finish(self) -> bytes:
        """What is left at the end of the stream, as it is."""
        rest, self._reader = self._reader.pending, SseReader()
        return rest if self._is_injected else b""

    def _read(self, data: bytes) -> bytes:
        shown: list[bytes] = []
        try:
            shown += map(self._seen, self._reader.feed(data))
        except SseEventTooLong:  # no usage is as long as that: it passes as it is
            shown.append(self._reader.pending)
            self._reader = SseReader()
        return b"".join(shown)

    def _seen(self, event: SseEvent) -> bytes:
        if event.kind is not _DATA or event.data == _DONE:
            return event.raw
        is_output = not event.event or event.event.endswith(_DELTA)
        self.events += is_output
        if _USAGE not in event.raw:
            return event.raw
        found = _stated(event.data)
        if _OPENING in event.raw:
            self._opening = found
        else:
            self._usage = _together(self._usage, found)
        if not self._is_injected:
            return event.raw
        if found is not None and _NO_CHOICES in event.raw.replace(b" ", b""):
            self.events -= is_output
            return b""
        return _without_nulls(event.raw)


def _is_plain(data: bytes) -> bool:
    """Whether it is whole events of data, with no figures, comment, empty line or other kind of line end in them."""
    if not (data.startswith(b"data:") and data.endswith(_END)):
        return False
    if b"\r" in data or b"\n:" in data or b"\n\n\n" in data:  # `any` takes 5 us
        return False
    return _USAGE not in data or (_OPENING not in data and data.count(_USAGE) == sum(map(data.count, _NULLS)))


def _stated(data: bytes) -> TokenUsage | None:
    """The usage of an event, wherever its API puts it."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    holders = (document, document.get("response"), document.get("message"))
    stated = (usage_of(holder.get("usage")) for holder in holders if isinstance(holder, dict))
    return next((usage for usage in stated if usage is not None), None)


def _together(before: TokenUsage | None, after: TokenUsage | None) -> TokenUsage | None:
    """Two statements about one answer: Anthropic's first one knows the input, its last one the output."""
    if before is None or after is None:
        return before or after
    return TokenUsage(
        max(before.input_tokens, after.input_tokens),
        max(before.cached_tokens, after.cached_tokens),
        max(before.output_tokens, after.output_tokens),
    )


def _without_nulls(raw: bytes) -> bytes:
    for null in _NULLS:
        raw = raw.replace(null, b"")
    return raw
