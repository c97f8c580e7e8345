"""What a client gets where its route has an output filter: the engine's answer without what is masked in it."""

import asyncio
from collections import Counter
from collections.abc import Callable

import structlog

from fleet.output_policy import FailureMode
from gateway.answer_filter import AnswerFilter
from gateway.answer_headers import is_encoded, is_event_stream, without_bytes
from gateway.exchange import Exchange, Headers
from gateway.filtered_stream import FilteredStream
from gateway.filtered_whole import WholeAnswer, filtered_whole, judged
from gateway.outlet import Outlet
from gateway.passage import Passage
from gateway.refusals import Reason, refuse

AT_ONCE_BYTES = 64 * 1024
"""Of an answer that is filtered at once; a longer one would keep everybody else waiting."""
_FAILED = "The answer could not be filtered; nothing more of it is passed on."
_log = structlog.get_logger("gateway.filter")


def outlet_of(exchange: Exchange, path: str, passage: Passage) -> Outlet:
    """The client's side of a request, with the filter of its route."""
    chosen, is_injected = passage.output_filter, passage.is_usage_injected
    if chosen is None:
        return Outlet(exchange, path, is_usage_injected=is_injected)
    return FilteredOutlet(exchange, path, chosen, is_usage_injected=is_injected)


class BothFlow:
    """Lets an engine go on while neither the client nor the filter holds it back."""

    def __init__(self, engine: Callable[[bool], None]) -> None:
        self._engine = engine
        self._client_goes = self._filter_goes = self._goes = True

    def client(self, goes: bool) -> None:
        """Whether the client reads fast enough."""
        self._client_goes = goes
        self._tell()

    def filter(self, goes: bool) -> None:
        """Whether verdicts come fast enough."""
        self._filter_goes = goes
        self._tell()

    def let_go(self) -> None:
        """The engine has said all; its connection may serve another request now."""
        if not self._goes:
            self._engine(True)
        self._engine = lambda _: None

    def _tell(self) -> None:
        goes = self._client_goes and self._filter_goes
        if goes is not self._goes:
            self._goes = goes
            self._engine(goes)


class FilteredOutlet(Outlet):
    """Usage is read from the engine's bytes and taken out where it was injected; what is left passes the filter."""

    def __init__(self, exchange: Exchange, path: str, chosen: AnswerFilter, *, is_usage_injected: bool) -> None:
        super().__init__(exchange, path, is_usage_injected=is_usage_injected)
        self._chosen = chosen
        self._filtered: FilteredStream | None = None
        self._is_passing = False
        """The answer can't be filtered, and its policy lets it pass then."""
        self._written = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._flow = BothFlow(lambda _: None)

    def flow_to(self, engine: Callable[[bool], None]) -> Callable[[bool], None]:
        """The engine also waits while too much waits for verdicts."""
        self._flow = BothFlow(engine)
        return self._flow.client

    def begin(self, status: int, headers: Headers) -> None:
        """The engine's status and headers; what is no stream of events comes in pieces only where it is too long."""
        if self._filtered is None and not self._is_passing:
            if is_encoded(headers):
                self._can_not("EncodedAnswer")
            elif is_event_stream(headers):
                self._filtered = FilteredStream(
                    self._chosen, self._exchange.write, on_flow=self._filter_flows, on_over=self._ended
                )
            else:
                self._can_not("AnswerTooLarge")
        if not self._exchange.is_begun:
            super().begin(status, headers if self._is_passing else without_bytes(headers))

    def write(self, data: bytes) -> None:
        """Bytes of the engine's; nothing leaves where there is no filter, unless the policy says so."""
        shown = self._stream.feed(data)
        if self._filtered is not None:
            self._filtered.feed(shown)
        elif self._is_passing:
            self._exchange.write(shown)

    def keep_alive(self) -> None:
        """A comment; what is held leaves before it."""
        if self._filtered is not None and self.is_open:
            self._filtered.expire()
        super().keep_alive()

    def end(self) -> None:
        """The stream is whole; some of it may wait for verdicts still."""
        if self._filtered is None:
            super().end()
            self._written.set()
            return
        self._flow.let_go()
        self._filtered.feed(self._stream.finish())
        self._filtered.close()

    async def over(self) -> None:
        """Returns when the client has got all that it gets of an answer that the engine ended."""
        if self._task is not None:
            await self._task
        elif self._filtered is not None:
            await self._written.wait()

    def close(self) -> None:
        """The request is over."""
        super().close()
        if self._filtered is not None:
            self._filtered.stop()
        if self._task is not None:
            self._task.cancel()
        self._filtered = self._task = None  # they hold this one: what is no cycle is gone without the collector
        self._flow = BothFlow(lambda _: None)

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """The engine's whole answer, which is no stream."""
        self._read_usage(status, body)
        if is_encoded(headers) and body:
            self._can_not("EncodedAnswer")
            if self._is_passing:
                self._give(status, headers, body)
            return
        if len(body) <= AT_ONCE_BYTES and self._chosen.judge is None:
            self._give_filtered(status, headers, filtered_whole(self._chosen, body))
        else:
            self._task = asyncio.get_running_loop().create_task(self._answer_later(status, headers, body))

    async def _answer_later(self, status: int, headers: Headers, body: bytes) -> None:
        whole = await asyncio.to_thread(filtered_whole, self._chosen, body)
        if self._chosen.judge is not None and status < 400:
            whole = await judged(self._chosen, self._chosen.judge, whole)
        self._give_filtered(status, headers, whole)

    def _give_filtered(self, status: int, headers: Headers, whole: WholeAnswer) -> None:
        self._chosen.told(whole.counts, whole.blocked, whole.failure)
        if whole.failure is not None:
            _log.warning("filter.failed", model=self._chosen.model, error=whole.failure)
        if whole.blocked is not None:
            message = f"The answer was withheld by the output filter ({whole.blocked})."
            self.refuse(refuse(Reason.BLOCKED, message))
        elif whole.body is None:
            self.fail(503, Reason.FILTER_UNAVAILABLE, _FAILED)
        else:
            self._give(status, without_bytes(headers), whole.body)

    def _can_not(self, error: str) -> None:
        """The answer is of a kind that can't be filtered."""
        self._chosen.told(Counter(), None, error)
        _log.warning("filter.failed", model=self._chosen.model, error=error)
        self._is_passing = self._chosen.policy.failure_mode is FailureMode.OPEN
        if not self._is_passing:
            self.fail(503, Reason.FILTER_UNAVAILABLE, _FAILED)
            self.on_stopped()

    def _filter_flows(self, goes: bool) -> None:
        self._flow.filter(goes)

    def _ended(self) -> None:
        """Nothing of the stream is held any more, or the filter has ended it."""
        self._exchange.end()
        self._written.set()
        if self._filtered is not None and self._filtered.has_ended:
            self.on_stopped()

    @property
    def _is_between_events(self) -> bool:
        """A filter lets whole events go, as long as it filters."""
        if self._is_passing or (self._filtered is not None and self._filtered.is_passing):
            return self._stream.is_between_events
        return True

    def _say(self, status: int, code: str, message: str, headers: Headers, body: bytes) -> None:
        if self._filtered is not None and self.is_open:
            self._filtered.break_off()
            if self._filtered.has_ended:
                self._exchange.end()
                return
        super()._say(status, code, message, headers, body)
