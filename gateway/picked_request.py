"""A request that was picked for an engine and is carried there by somebody else's proxy: what comes of it."""

from fleet.output_policy import FailureMode
from gateway.admitted import Admitted
from gateway.answer_headers import is_encoded, is_event_stream
from gateway.ext_authz import SERVED_MODEL_HEADER, header_name
from gateway.ext_proc_contract import ChosenFilter, Pairs, ResponseFilter, ResponseHead
from gateway.passage import End, Ending
from gateway.picked_answer import AnswerWatch, FilteredStreamAnswer, FilteredWholeAnswer, StreamAnswer, WholeAnswer
from gateway.token_usage import TokenUsage

_ENGINE_ERROR = 500


class PickedRequest:
    """One request, from the pick to its end. It ends once, by the first that says so."""

    def __init__(self, admitted: Admitted, endpoints: tuple[str, ...], client_headers: Pairs) -> None:
        """``endpoints``: as the proxy was told, in their order."""
        self._admitted = admitted
        self._endpoints = endpoints
        self._client_headers = client_headers
        self._status = 0
        self._answer: ResponseFilter | None = None
        self._watch = AnswerWatch(admitted.began, self._over)
        admitted.sent_to(endpoints[0])

    def responded(self, status: int, served: str | None) -> None:
        """An answer begins; without ``served`` it is taken for one of the first endpoint.

        A proxy that reaches no engine answers itself, and looks like an engine that is broken.
        """
        self._status = status
        admitted, address = self._admitted, self._endpoints[0] if served is None else served
        if address not in self._endpoints:  # the proxy chose by itself: it says nothing about those that were picked
            return
        for one in self._endpoints[: self._endpoints.index(address)]:
            admitted.failed(one)
        admitted.answered_by(address, None)
        if status < _ENGINE_ERROR:
            admitted.went_well(address)
        else:
            admitted.failed(address)

    def filter_of(self, head: ResponseHead) -> ChosenFilter | None:
        """What its answer passes: whoever reads the usage, and the output filter of its route."""
        chosen, headers = self._admitted.output_filter, tuple(head.headers.items())
        if is_encoded(headers) and chosen is None:
            return None  # it can't be read: it is charged what it holds
        self._answer = made = self._reader(headers)
        served = () if self._status >= _ENGINE_ERROR else self._told
        if chosen is None:
            return ChosenFilter(made, headers_to_set=served, is_timed=False)
        return ChosenFilter(
            made,
            fails_open=chosen.policy.failure_mode is FailureMode.OPEN,
            on_closed=made.tell if isinstance(made, FilteredStreamAnswer) else lambda: None,
            headers_to_set=served,
            is_timed=isinstance(made, FilteredStreamAnswer),
            instead=made.instead if isinstance(made, FilteredWholeAnswer) else None,
        )

    def ended(self, *, is_whole: bool) -> None:
        """The proxy has no more to say of it. That an engine broke off looks as if the client had left."""
        answer = self._answer
        if isinstance(answer, StreamAnswer):
            self._over(End.CLIENT_LEFT, answer.usage, answer.events)
        else:
            self._over(End.WHOLE if is_whole and self._status else End.CLIENT_LEFT, None, 0)

    @property
    def _told(self) -> Pairs:
        return (*self._client_headers, (SERVED_MODEL_HEADER, header_name(self._admitted.model)))

    def _reader(self, headers: Pairs) -> StreamAnswer | WholeAnswer:
        chosen, is_injected = self._admitted.output_filter, self._admitted.is_usage_injected
        if is_event_stream(headers):
            if chosen is None:
                return StreamAnswer(self._watch, is_usage_injected=is_injected)
            return FilteredStreamAnswer(self._watch, chosen, is_usage_injected=is_injected)
        if chosen is None:
            return WholeAnswer(self._watch)
        return FilteredWholeAnswer(self._watch, chosen)

    def _over(self, end: End, usage: TokenUsage | None, events: int) -> None:
        """An error has no usage, whatever it says."""
        stated = usage if self._status < 400 else None
        self._admitted.end(Ending(end, self._status, stated, events))
