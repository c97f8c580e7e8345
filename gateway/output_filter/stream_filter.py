"""Filters an answer that comes as server-sent events: bytes in, bytes out, in the order in which they came."""

from collections import Counter, deque
from collections.abc import Iterator

from fleet.output_policy import FailureMode
from gateway.output_filter import endings
from gateway.output_filter.channel import Answer, CompiledPolicy
from gateway.output_filter.event_reader import EventReader
from gateway.output_filter.held_event import Held
from gateway.output_filter.masks import Masks
from gateway.output_filter.sentences import Question
from gateway.sse import DEFAULT_LIMIT_BYTES, SseEvent, SseKind, SseReader

MAX_HELD_EVENTS = 512
MAX_HELD_BYTES = 512 * 1024
_DATA = SseKind.DATA
NO_VERDICT = "NoVerdict"
"""A failure: the moderation service did not judge in time."""
VERDICT_SPREAD = 8
"""As many times more may be held while sentences wait for verdicts."""


class StreamFilter:
    """One streamed answer.

    An event leaves when everything in it is decided, and everything before it; what has no match leaves byte for byte.
    At the time bound, at a keep-alive and where too much is held, a bare word that is held leaves (if it grows into a
    value, the rest of that is masked), and anything else that is held is masked by what it may become.
    """

    __slots__ = (
        "_answer", "_held", "_held_bytes", "_is_between", "_is_open", "_most_bytes", "_most_events", "_reader",
        "_texts", "failure", "has_ended",
    )  # fmt: skip

    def __init__(self, policy: CompiledPolicy, key: bytes = b"", limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        """``key``: secret, the same for every answer of a conversation (see ``Masks``)."""
        self.has_ended = False
        """Whether the filter has ended the answer; the engine may be stopped."""
        self.failure: str | None = None
        """What went wrong, as the name of an error, which quotes nothing; None = nothing did."""
        self._answer = Answer(policy, Masks(policy.modes, key))
        self._reader = SseReader(limit_bytes)
        self._is_between = True  # the next byte begins an event
        self._texts = EventReader(self._answer)
        self._held: deque[Held] = deque()
        self._held_bytes = 0
        self._is_open = False
        spread = 1 if policy.moderation is None else VERDICT_SPREAD
        self._most_events, self._most_bytes = MAX_HELD_EVENTS * spread, MAX_HELD_BYTES * spread

    @property
    def counts(self) -> Counter[str]:
        """Values by class."""
        return self._answer.counts

    @property
    def blocked(self) -> str | None:
        """The class of the value before which the answer was ended; None = it was not."""
        return self._answer.blocked

    @property
    def is_full(self) -> bool:
        """Whether the engine had better wait for the verdicts that are missing."""
        return len(self._held) > MAX_HELD_EVENTS or self._held_bytes > MAX_HELD_BYTES

    @property
    def is_passing(self) -> bool:
        """Whether it failed, and its policy lets the answer pass from there on."""
        return self._is_open

    @property
    def due(self) -> float | None:
        """When ``flush_due`` has something to do; None = nothing is held."""
        if not self._held:
            return None
        first, policy = self._held[0], self._answer.policy
        if first.expired is None or policy.moderation is None:
            return first.since + policy.hold_seconds
        return first.expired + policy.moderation.wait_seconds

    @property
    def is_over(self) -> bool:
        """After ``close``: whether nothing waits for a verdict any more."""
        return not self._held

    def questions(self) -> list[Question]:
        """The sentences that wait for a verdict, each told once."""
        asked, self._answer.questions = self._answer.questions, []
        return asked

    def verdict(self, number: int, *, may_pass: bool) -> bytes:
        """What leaves after the verdict on a sentence; the answer ends before one that may not pass."""
        if self.has_ended or self._is_open:
            return b""
        try:
            self._answer.verdict(number, may_pass=may_pass)
            return self._leave()
        except Exception as error:  # as in _through
            return self._fail(error)

    def no_verdict(self, number: int) -> bytes:
        """What leaves when a sentence will get no verdict: the policy says what happens then."""
        moderation = self._answer.policy.moderation
        if self.has_ended or self._is_open or moderation is None:
            return b""
        self.failure = NO_VERDICT
        if moderation.failure_mode is FailureMode.CLOSED:
            return self._fail_closed()
        return self.verdict(number, may_pass=True)

    def feed(self, data: bytes, now: float) -> bytes:
        """What can leave after the next bytes of the engine."""
        if self.has_ended:
            return b""
        if self._is_open:
            return data
        if self._is_between:
            try:  # mostly it is one event as seen before, which need be neither cut out nor read
                held = self._texts.glance(data, now) or self._read_again(data, now)
                if held is not None:
                    return self._hold(held, now)
            except Exception as error:  # as in _through
                return self._fail(error, data)
        return self._through(self._reader.feed(data), now)

    def expire(self, now: float) -> bytes:
        """What leaves because the stream is silent: all that is held, unless a verdict is missing."""
        try:
            return self._expire_all(now)
        except Exception as error:  # as in _through
            return self._fail(error)

    def flush_due(self, now: float) -> bytes:
        """What leaves because it was held for too long."""
        out = []
        try:
            while (due := self.due) is not None and due <= now:
                out.append(self._expire_first(now))
        except Exception as error:  # as in _through
            out.append(self._fail(error))
        return b"".join(out)

    def close(self, now: float) -> bytes:
        """The rest, when the engine's stream has ended."""
        if self.has_ended or self._is_open:
            return b""
        out = self._through(self._reader.close(), now)
        try:
            self._texts.finish()
            return out + self._leave()
        except Exception as error:  # as in _through
            return out + self._fail(error)

    def _read_again(self, data: bytes, now: float) -> Held | None:
        is_whole = data.endswith(b"\n\n") and b"\r" not in data
        return self._texts.read_again(data, now) if is_whole else None

    def _through(self, events: Iterator[SseEvent], now: float) -> bytes:
        out: list[bytes] = []
        raw = b""
        try:
            for event in events:
                raw = event.raw
                out.append(self._event(event, now))
                raw = b""
        except Exception as error:
            # Whatever goes wrong in here, nothing may pass by accident: the route says what happens.
            out.append(self._fail(error, raw))
        self._is_between = self._reader.is_between
        return b"".join(out)

    def _event(self, event: SseEvent, now: float) -> bytes:
        if self.has_ended:
            return b""
        if event.kind is not _DATA:
            return self._comment(event, now)
        held = self._texts.read(event, now)
        if self._texts.overtakes:
            return (held.leave() or (b"",))[0]
        return self._hold(held, now)

    def _hold(self, held: Held, now: float) -> bytes:
        waiting = self._held
        waiting.append(held)
        self._held_bytes += len(held.raw)
        out = self._leave()
        while len(waiting) > self._most_events or self._held_bytes > self._most_bytes:
            out += self._expire_first(now)
        return out

    def _expire_first(self, now: float) -> bytes:
        """The event that came first waits for no more text; if it was told so before, for no verdict either."""
        first, moderation = self._held[0], self._answer.policy.moderation
        if first.expired is None or moderation is None:
            first.expired = now
            self._texts.expire(first.slots)
            return self._leave()
        self.failure = NO_VERDICT
        if moderation.failure_mode is FailureMode.CLOSED:
            return self._fail_closed()
        self._answer.let_all_pass()
        return self._leave()

    def _comment(self, event: SseEvent, now: float) -> bytes:
        """A keep-alive says that the engine is silent: what is held leaves before it, unless a verdict is missing."""
        out = self._expire_all(now)
        text = event.raw.decode("utf-8", "surrogateescape")
        return out + self._answer.whole(text, None).encode("utf-8", "surrogateescape")

    def _expire_all(self, now: float) -> bytes:
        out = b""
        while self._held and self._answer.policy.moderation is None:
            out += self._expire_first(now)
        return out

    def _leave(self) -> bytes:
        out: list[bytes] = []
        waiting = self._held
        while waiting and (left := waiting[0].leave()) is not None:
            out.append(left[0])
            if left[1] is not None:
                out.append(self._block(left[1]))
                break
            self._held_bytes -= len(waiting.popleft().raw)
        return b"".join(out)

    def _block(self, name: str) -> bytes:
        """The answer ends before a value of this class."""
        self._answer.blocked = name
        self._end()
        return endings.blocked(self._texts.api, name, self._texts.last, self._texts.open_choices)

    def _fail(self, error: Exception, raw: bytes = b"") -> bytes:
        """``raw``: the event that was at hand."""
        self.failure = type(error).__name__
        if self._answer.policy.failure_mode is FailureMode.CLOSED:
            return self._fail_closed()
        held = [event.raw for event in self._held]
        rest = b"".join([*held, *([] if raw in held[-1:] else [raw]), self._reader.pending])
        self._held.clear()
        self._is_open = True
        return rest

    def _fail_closed(self) -> bytes:
        self._end()
        return endings.failed(self._texts.api)

    def _end(self) -> None:
        self.has_ended = True
        self._held.clear()
