"""A stream on its way through its filter: when its time is over, what is held leaves, and sentences get verdicts."""

import asyncio
from collections.abc import Callable

import structlog

from gateway.answer_filter import AnswerFilter
from gateway.judge_breaker import LeftAlone
from gateway.moderation import Judge, NoVerdict
from gateway.output_filter.sentences import Question

_ENDS_OF_EVENTS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_log = structlog.get_logger("gateway.filter")


class FilteredStream:
    """The engine's bytes in, the client's out, each time the filter lets some go."""

    def __init__(
        self,
        chosen: AnswerFilter,
        write: Callable[[bytes], None],
        *,
        on_flow: Callable[[bool], None],
        on_over: Callable[[], None],
    ) -> None:
        """``on_flow`` is told ``False`` when so much waits for verdicts that the engine has to wait, and ``True`` then.

        ``on_over`` is told once: nothing leaves any more, since all has left or the filter has ended the answer.
        """
        self._loop = asyncio.get_running_loop()
        self._chosen = chosen
        self._judge = chosen.judge
        self._filter = chosen.stream()
        self._write = write
        self._on_flow = on_flow
        self._on_over = on_over
        self._timer: asyncio.TimerHandle | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._is_over = False

    @property
    def is_passing(self) -> bool:
        """Whether the filter failed and lets pass what comes."""
        return self._filter.is_passing

    @property
    def has_ended(self) -> bool:
        """Whether the filter, and not the engine, ended the answer."""
        return self._filter.has_ended

    def feed(self, data: bytes) -> None:
        """The next bytes of the engine."""
        if shown := self._filter.feed(data, self._loop.time()):
            self._write(shown)
        if self._timer is None or self._judge is not None or self._filter.has_ended:
            self._go_on()

    def expire(self) -> None:
        """The stream is silent: what is held leaves, unless a verdict is missing."""
        self._send(self._filter.expire(self._loop.time()))

    def close(self) -> None:
        """The engine's stream has ended."""
        self._is_closed = True
        self._send(self._filter.close(self._loop.time()))

    def break_off(self) -> None:
        """The engine's stream broke off: what can be decided leaves, what waits for a verdict does not."""
        if self._is_over:
            return
        rest = self._filter.close(self._loop.time())
        if rest and not rest.endswith(_ENDS_OF_EVENTS):
            rest += b"\n\n"
        self._write(rest)
        self.stop()

    def stop(self) -> None:
        """Nothing leaves any more."""
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._asking:
            task.cancel()
        growing = self._filter
        if growing.failure is not None:
            _log.warning("filter.failed", model=self._chosen.model, error=growing.failure)
        self._chosen.told(growing.counts, growing.blocked, growing.failure)

    def _send(self, data: bytes) -> None:
        if data:
            self._write(data)
        self._go_on()

    def _go_on(self) -> None:
        """See to what the filter waits for, or to its end."""
        growing = self._filter
        if self._is_over:
            return
        if growing.has_ended or (self._is_closed and growing.is_over):
            self.stop()
            self._on_over()
            return
        if self._judge is not None:
            self._on_flow(not growing.is_full)
            self._ask_of(self._judge, growing.questions())
        if self._timer is None and (due := growing.due) is not None:
            self._timer = self._loop.call_at(due, self._look)

    def _ask_of(self, judge: Judge, questions: list[Question]) -> None:
        if questions:
            task = self._loop.create_task(self._ask(judge, questions))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    def _look(self) -> None:
        self._timer = None
        self._send(self._filter.flush_due(self._loop.time()))

    async def _ask(self, judge: Judge, questions: list[Question]) -> None:
        moderation = self._chosen.policy.moderation
        try:
            async with asyncio.timeout(moderation.wait_seconds if moderation else None):
                verdicts = await judge.may_pass([question.text for question in questions])
        except (NoVerdict, TimeoutError) as error:
            if not isinstance(error, LeftAlone):  # that was said once
                _log.warning("filter.no_verdict", model=self._chosen.model, error=_why(error))
            for question in questions:
                self._send(self._filter.no_verdict(question.number))
            return
        for question, may_pass in zip(questions, verdicts, strict=True):
            self._send(self._filter.verdict(question.number, may_pass=may_pass))


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, NoVerdict) else "the moderation service is too slow"
