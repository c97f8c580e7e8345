"""An event on its way: its bytes, and the pieces of running texts in it that have to be decided before it leaves."""

from dataclasses import dataclass, field

from gateway.output_filter.channel import Channel
from gateway.output_filter.json_spans import encoded

Left = tuple[bytes, str | None]
"""What leaves of an event, and the class of a value in it before which the answer ends."""


@dataclass(slots=True, repr=False, eq=False)  # not frozen: one is made per chunk, and a frozen one takes 2 us
class Slot:
    """A piece of a running text in the bytes of an event; never changed."""

    channel: Channel
    start: int
    """Of the piece in the running text."""
    text: str
    raw_start: int
    raw_end: int
    instead: bytes | None = None
    """What the bytes become if anything in the piece is edited; None = the edited text."""
    is_json: bool = True
    """The bytes are a JSON string; otherwise the text itself."""

    @property
    def is_decided(self) -> bool:
        """Whether it may leave."""
        return self.channel.decided >= self.start + len(self.text)


@dataclass(slots=True, repr=False, eq=False)
class HeldEvent:
    """One event; without slots it may leave when its turn comes."""

    raw: bytes
    since: float
    """When it came."""
    slots: list[Slot] = field(default_factory=list)
    changes: list[tuple[int, int, bytes]] = field(default_factory=list)
    """What changes in its bytes whatever is decided."""
    expired: float | None = None
    """When it was told to wait for no more text; it then waits for verdicts alone."""
    blocked: str | None = None
    """The class of a value in it, outside of running texts, that ends the answer."""

    @property
    def is_decided(self) -> bool:
        """Whether it may leave."""
        for slot in self.slots:  # noqa: SIM110 (this is asked for every chunk, and `all` takes twice as long)
            if slot.channel.decided < slot.start + len(slot.text):
                return False
        return True

    def leave(self) -> Left | None:
        """Its bytes; only what was changed is written anew. ``None`` = it is not decided."""
        if not self.is_decided:
            return None
        if self.blocked is not None:
            return b"", self.blocked
        if not self.changes and not any(slot.channel.has_edits for slot in self.slots):
            return self.raw, None
        changes, blocked, is_empty = list(self.changes), None, True
        for slot in self.slots:
            text, name = slot.channel.piece(slot.text, slot.start)
            blocked = blocked or name
            is_empty = is_empty and not text
            if text != slot.text:
                changes.append((slot.raw_start, slot.raw_end, self._written(slot, text)))
        if blocked is not None and is_empty:
            return b"", blocked
        return (replaced(self.raw, changes) if changes else self.raw), blocked

    def _written(self, slot: Slot, text: str) -> bytes:
        if slot.instead is not None:
            return slot.instead
        if not slot.is_json:
            return text.encode("utf-8", "surrogateescape")
        return encoded(text, self.raw[slot.raw_start : slot.raw_end])


class KnownEvent:
    """A held event that is as one before but for its text; nearly all of a stream are, and each takes its time."""

    __slots__ = ("_start", "_stop", "_text", "channel", "end", "expired", "raw", "since")

    def __init__(self, raw: bytes, since: float, channel: Channel, text: str, start: int, stop: int) -> None:
        """``start``, ``stop``: where the text stands in the bytes, without its quotation marks."""
        self.raw = raw
        self.since = since
        self.channel = channel
        self.end = channel.length
        """Of its text in the running text; the text was fed just now."""
        self.expired: float | None = None
        self._text = text
        self._start = start
        self._stop = stop

    @property
    def slots(self) -> list[Slot]:
        """Its one text."""
        return [Slot(self.channel, self.end - len(self._text), self._text, self._start - 1, self._stop + 1)]

    def leave(self) -> Left | None:
        """Its bytes; ``None`` = it is not decided."""
        channel = self.channel
        if channel.decided < self.end:
            return None
        if not channel.has_edits:
            return self.raw, None
        return HeldEvent(self.raw, self.since, self.slots).leave()


Held = HeldEvent | KnownEvent


def replaced(raw: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """The bytes with some parts of them replaced."""
    pieces: list[bytes] = []
    at = 0
    for start, end, data in sorted(changes):
        if start < at:  # inside of what is replaced as a whole
            continue
        pieces += (raw[at:start], data)
        at = end
    pieces.append(raw[at:])
    return b"".join(pieces)
