"""Turns an event of a stream into what is held: feeds its texts to their channels and says where they stand."""

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from gateway.output_filter.channel import Answer, Channel
from gateway.output_filter.event_templates import Templates
from gateway.output_filter.event_texts import FoundText, texts_of
from gateway.output_filter.held_event import Held, HeldEvent, KnownEvent, Slot
from gateway.output_filter.json_spans import UnreadableAnswer, parse
from gateway.output_filter.normal_form import Writing
from gateway.output_filter.shapes import Api, Key, Running, Whole, api_of, ends_of, is_usage_alone, repeats
from gateway.output_filter.whole_answer import whole_change
from gateway.sse import SseEvent

DONE = b"[DONE]"
MAX_CHANNELS = 4_096
_DATA_LINE = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])data(?:: ?|(?=[\r\n])|\Z)([^\r\n]*)")


class EventReader:
    """The texts of one stream."""

    __slots__ = ("_answer", "_channels", "_finished", "_glances", "_last_key", "_templates", "api", "last", "overtakes")

    def __init__(self, answer: Answer) -> None:
        self.api = Api.UNKNOWN
        self.last: dict[str, object] = {}
        """The last event that was read as a JSON object."""
        self.overtakes = False
        """Whether the event that was read last need not wait for those before it."""
        self._answer = answer
        self._glances = answer.policy.matcher.glances
        self._channels: dict[Key, Channel] = {}
        self._finished: set[int] = set()
        self._last_key: Key = ()
        self._templates = Templates()

    @property
    def open_choices(self) -> list[int]:
        """Those that were seen and have not ended."""
        seen = {key[1] for key in self._channels if key[0] == "choice"} - self._finished
        return sorted(index for index in seen if isinstance(index, int))

    def read(self, event: SseEvent, now: float) -> Held:
        """The event with its texts; what it ends is ended."""
        self.overtakes = False
        if (known := self.read_again(event.raw, now)) is not None:
            return known
        held = HeldEvent(event.raw, now)
        try:
            document = parse(event.data)
        except ValueError:
            self._read_plain(event, held)
        else:
            self._read_json(event, document, held)
        return held

    def glance(self, raw: bytes, now: float) -> KnownEvent | None:
        """The event, where it is the last one with other prose in it, as nearly all are; None = it may be anything."""
        template = self._templates.last
        if template is None or not raw.startswith(template.before):
            return None
        start = template.before_length
        end = len(raw) - template.after_length if raw.endswith(template.after) else template.end_before_counts(raw)
        if (glance := self._glances[raw[start:end]]) is None:
            return None
        self._last_key = template.key
        channel = template.channel
        channel.feed_glance(glance)
        return KnownEvent(raw, now, channel, glance.text, start, end)

    def read_again(self, raw: bytes, now: float) -> Held | None:
        """The event, where it is one as seen before but for its text; None = it has to be read."""
        known = self._templates.known(raw)
        if known is None:
            return None
        template, text, start, stop = known
        if not text:
            return HeldEvent(raw, now)
        self._last_key = template.key
        template.channel.feed(text)
        return KnownEvent(raw, now, template.channel, text, start, stop)

    def expire(self, slots: list[Slot]) -> None:
        """What these wait for has waited too long."""
        for slot in slots:
            if not slot.is_decided:
                slot.channel.expire(slot.start + len(slot.text))

    def finish(self, prefix: Key = ()) -> None:
        """The texts whose names begin so are at their end."""
        for key, channel in self._channels.items():
            if key[: len(prefix)] == prefix and channel.decided < channel.length:
                channel.finish()

    def _read_json(self, event: SseEvent, document: object, held: HeldEvent) -> None:
        api = api_of(document)
        if isinstance(document, dict):
            self.last = document
            self.api = self.api if api in (Api.UNKNOWN, Api.ERROR) and self.api is not Api.UNKNOWN else api
        place = _places(event)
        is_counted = not repeats(api, document)
        for found in texts_of(api, document, event.data):
            if isinstance(found.role, Whole):
                change = whole_change(found, event.data, self._answer, is_counted=is_counted)
                held.changes += [(place(change[0]), place(change[1]), change[2])] if change else []
            else:
                held.slots.append(self._feed(found, found.role, place, is_counted=is_counted))
        held.blocked = self._answer.blocked
        self.overtakes = not held.slots and is_usage_alone(api, document)
        self._end(api, document, event, held)

    def _end(self, api: Api, document: object, event: SseEvent, held: HeldEvent) -> None:
        """Ends what the event ends; one that ends nothing may be known again."""
        ends = ends_of(api, document)
        if ends == []:
            self._templates.learn(held, event.data, self._last_key)
        elif ends is None:
            self.finish()
        for prefix in ends or ():
            self.finish(prefix)
            if prefix[0] == "choice" and isinstance(prefix[1], int):
                self._finished.add(prefix[1])

    def _feed(self, found: FoundText, role: Running, place: Callable[[int], int], *, is_counted: bool) -> Slot:
        key, is_spelled = role.key, found.instead is not None
        if not is_spelled and key != self._last_key:
            self._turn_to(key)
        channel = self._channel(key, role.writing, is_counted=is_counted and not is_spelled)
        start = channel.length
        channel.feed(found.text)
        return Slot(channel, start, found.text, place(found.start), place(found.end), found.instead)

    def _turn_to(self, key: Key) -> None:
        """A text begins after another of the same choice, such as a tool's arguments after the content.

        A bare word at the end of the one before need not wait then; anything else waits for its end or its time, since
        the texts may take turns.
        """
        if self._last_key and self._last_key[:2] == key[:2] and key not in self._channels:
            self._channels[self._last_key].release_word()
        self._last_key = key

    def _channel(self, key: Key, writing: Writing | None, *, is_counted: bool = True) -> Channel:
        channel = self._channels.get(key)
        if channel is None:
            if len(self._channels) >= MAX_CHANNELS:
                raise UnreadableAnswer(f"the answer has more than {MAX_CHANNELS} running texts")
            channel = self._channels[key] = Channel(self._answer, writing, is_counted=is_counted)
        return channel

    def _read_plain(self, event: SseEvent, held: HeldEvent) -> None:
        """Data that is no JSON is a running text of its own, or the mark of the end."""
        if event.data == DONE:
            self.finish()
            return
        lines = list(_DATA_LINE.finditer(event.raw))
        if len(lines) != 1 or not event.data:
            text = event.raw.decode("utf-8", "surrogateescape")
            changed = self._answer.whole(text, None)
            held.blocked = self._answer.blocked
            if changed != text:
                held.changes.append((0, len(event.raw), changed.encode("utf-8", "surrogateescape")))
            return
        channel = self._channel(("plain", event.event), Writing.PLAIN)
        text, start = event.data.decode("utf-8", "surrogateescape"), channel.length
        channel.feed(text)
        held.slots.append(Slot(channel, start, text, lines[0].start(1), lines[0].end(1), is_json=False))


def _places(event: SseEvent) -> Callable[[int], int]:
    """From places in an event's data to places in its bytes; no JSON string goes over a line's end."""
    lines = list(_DATA_LINE.finditer(event.raw))
    if len(lines) == 1:
        return lines[0].start(1).__add__
    starts = [0, *accumulate(len(line[1]) + 1 for line in lines)]
    offsets = [line.start(1) - start for line, start in zip(lines, starts, strict=False)]
    return lambda place: place + offsets[bisect_right(starts, place, hi=len(lines)) - 1]
