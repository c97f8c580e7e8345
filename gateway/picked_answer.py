"""The answer to a picked request on its way to the client: its usage is read, and its route's filter sees to it.

Where nothing is filtered and no usage was asked for in the client's place, every byte passes as it is.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import structlog

from fleet.output_policy import FailureMode
from gateway.answer_filter import AnswerFilter
from gateway.attempt import MAX_WHOLE_BYTES
from gateway.ext_proc_contract import Reply
from gateway.filtered_whole import filtered_whole
from gateway.passage import End
from gateway.refusals import Reason, refuse
from gateway.stream_usage import StreamUsage
from gateway.token_usage import TokenUsage, usage_of

_FAILED = "The answer could not be filtered; nothing of it was passed on."
_JSON = ("content-type", "application/json")
_log = structlog.get_logger("gateway.picked_answer")


class AnswerTooLarge(ValueError):
    """An answer that must be filtered as a whole is larger than is kept."""


class AnswerWatch(NamedTuple):
    """Who is told of an answer."""

    began: Callable[[], None]
    """Its first byte has come."""
    over: Callable[[End, TokenUsage | None, int], None]
    """With its usage and the events that passed; only the first call counts."""


class StreamAnswer:
    """A stream of events."""

    def __init__(self, watch: AnswerWatch, *, is_usage_injected: bool) -> None:
        self._watch = watch
        self._stream = StreamUsage(is_injected=is_usage_injected)
        self._has_begun = False

    @property
    def has_ended(self) -> bool:
        """Only the engine ends it."""
        return False

    @property
    def usage(self) -> TokenUsage | None:
        """What it said of its tokens so far."""
        return self._stream.usage

    @property
    def events(self) -> int:
        """Events with output that passed."""
        return self._stream.events

    def feed(self, data: bytes, now: float) -> bytes:
        """The client's bytes."""
        if not self._has_begun and data:
            self._has_begun = True
            self._watch.began()
        return self._stream.feed(data)

    def flush_due(self, now: float) -> bytes:
        """Nothing is held."""
        return b""

    def close(self, now: float) -> bytes:
        """The engine has ended it."""
        rest = self._stream.finish()
        self._over(End.WHOLE)
        return rest

    def _over(self, end: End) -> None:
        self._watch.over(end, self.usage, self.events)


class FilteredStreamAnswer(StreamAnswer):
    """A stream of events through the filter of its route."""

    def __init__(self, watch: AnswerWatch, chosen: AnswerFilter, *, is_usage_injected: bool) -> None:
        super().__init__(watch, is_usage_injected=is_usage_injected)
        self._chosen = chosen
        self._filter = chosen.stream()

    @property
    def has_ended(self) -> bool:
        """The filter has ended it: the engine may be stopped."""
        return self._filter.has_ended

    def feed(self, data: bytes, now: float) -> bytes:
        """What may leave."""
        return self._after(self._filter.feed(super().feed(data, now), now))

    def flush_due(self, now: float) -> bytes:
        """What was held for long enough."""
        return self._after(self._filter.flush_due(now))

    def close(self, now: float) -> bytes:
        """The rest."""
        shown = self._filter.feed(self._stream.finish(), now) + self._filter.close(now)
        self._over(End.FILTERED if self._filter.has_ended else End.WHOLE)
        return shown

    def tell(self) -> None:
        """The answer is over, whoever ended it."""
        growing = self._filter
        if growing.failure is not None:
            _log.warning("filter.failed", model=self._chosen.model, error=growing.failure)
        self._chosen.told(growing.counts, growing.blocked, growing.failure)

    def _after(self, shown: bytes) -> bytes:
        if self._filter.has_ended:
            self._over(End.FILTERED)
        return shown


class WholeAnswer:
    """An answer that is no stream of events: it passes in pieces, and is kept for its usage as far as there is room."""

    has_ended = False

    def __init__(self, watch: AnswerWatch) -> None:
        self._watch = watch
        self._kept: bytearray | None = bytearray()
        """``None`` = there was no room for it."""
        self._has_begun = False

    def feed(self, data: bytes, now: float) -> bytes:
        """The same bytes."""
        if not self._has_begun and data:
            self._has_begun = True
            self._watch.began()
        if self._kept is not None:
            self._kept += data
            if len(self._kept) > MAX_WHOLE_BYTES:
                self._kept = None
        return data

    def flush_due(self, now: float) -> bytes:
        """Nothing is held."""
        return b""

    def close(self, now: float) -> bytes:
        """It is whole."""
        self._watch.over(End.WHOLE, _usage(bytes(self._kept or b"")), 0)
        return b""


class FilteredWholeAnswer(WholeAnswer):
    """An answer that is no stream of events, which leaves when it is whole and filtered."""

    def __init__(self, watch: AnswerWatch, chosen: AnswerFilter) -> None:
        super().__init__(watch)
        self._chosen = chosen
        self._may_pass = chosen.policy.failure_mode is FailureMode.OPEN
        self._instead: Reply | None = None

    def feed(self, data: bytes, now: float) -> bytes:
        """Nothing, unless there is too much of it and the policy lets it pass then."""
        if self._kept is None:
            return data if self._may_pass else b""
        if len(self._kept) + len(data) <= MAX_WHOLE_BYTES:
            super().feed(data, now)
            return b""
        kept = bytes(self._kept)
        super().feed(data, now)
        self._tell(Counter(), None, AnswerTooLarge.__name__)
        if not self._may_pass:
            raise AnswerTooLarge(f"more than {MAX_WHOLE_BYTES} bytes")
        return kept + data

    def close(self, now: float) -> bytes:
        """All of it, or nothing and something else instead."""
        body = None if self._kept is None else bytes(self._kept)
        super().close(now)
        if body is None:
            return b""
        whole = filtered_whole(self._chosen, body)
        self._tell(whole.counts, whole.blocked, whole.failure)
        if whole.blocked is not None:
            self._refuse(Reason.BLOCKED, f"The answer was withheld by the output filter ({whole.blocked}).")
        elif whole.body is None:
            self._refuse(Reason.FILTER_UNAVAILABLE, _FAILED)
        return whole.body or b""

    def instead(self) -> Reply | None:
        """What the client gets in the place of an answer that may not pass."""
        return self._instead

    def _refuse(self, reason: Reason, message: str) -> None:
        refused = refuse(reason, message)
        self._instead = Reply(refused.status, refused.body, (_JSON,), reason.value)

    def _tell(self, counts: Counter[str], blocked: str | None, failure: str | None) -> None:
        if failure is not None:
            _log.warning("filter.failed", model=self._chosen.model, error=failure)
        self._chosen.told(counts, blocked, failure)


def _usage(body: bytes) -> TokenUsage | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return usage_of(document.get("usage")) if isinstance(document, dict) else None
