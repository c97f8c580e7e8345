"""Chooses the output filter of a response by the name that the decision left, and by what the engine answers with."""

from collections import Counter
from collections.abc import Callable, Mapping

from fleet.output_policy import NO_FILTER, FailureMode
from gateway.ext_proc_contract import ChosenFilter, ResponseHead
from gateway.output_filter.channel import Answer, CompiledPolicy
from gateway.output_filter.masks import Masks
from gateway.output_filter.stream_filter import StreamFilter
from gateway.output_filter.whole_answer import filter_answer

FILTER_KEY = "x-gateway-output-filter"
"""Of the metadata: the name of the route's filter."""
MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""Of an answer that is filtered as a whole."""
_EVENT_STREAM = "text/event-stream"


class UnknownFilter(LookupError):
    """The route asks for a filter that is not there."""


class AnswerTooLarge(ValueError):
    """An answer that must be filtered as a whole is larger than is kept."""


class OutputFilters:
    """The filters by name. A response without a name or with an unknown one is refused: somebody meant to filter it."""

    def __init__(
        self,
        policies: Mapping[str, CompiledPolicy],
        *,
        key_of: Callable[[Mapping[str, str]], bytes],
        on_counts: Callable[[Mapping[str, str], Counter[str]], None],
    ) -> None:
        """``key_of`` gives the secret of a conversation from the metadata; ``on_counts`` gets values by class."""
        self._policies = policies
        self._key_of = key_of
        self._on_counts = on_counts

    def choose(self, head: ResponseHead) -> ChosenFilter | None:
        """The filter of one response."""
        name = head.metadata.get(FILTER_KEY)
        if name == NO_FILTER:
            return None
        policy = self._policies.get(name or "")
        if policy is None:
            raise UnknownFilter(f"there is no output filter {name!r}; known are {', '.join(self._policies)}")
        made = self._made(policy, head)
        return ChosenFilter(
            made,
            fails_open=policy.failure_mode is FailureMode.OPEN,
            on_closed=lambda: self._on_counts(head.metadata, made.counts),
        )

    def _made(self, policy: CompiledPolicy, head: ResponseHead) -> "StreamFilter | WholeFilter":
        key = self._key_of(head.metadata)
        content_type = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        return StreamFilter(policy, key) if content_type == _EVENT_STREAM else WholeFilter(policy, key)


class WholeFilter:
    """Keeps an answer that is one document until it is whole."""

    has_ended = False

    def __init__(self, policy: CompiledPolicy, key: bytes) -> None:
        self._answer = Answer(policy, Masks(policy.modes, key))
        self._fails_open = policy.failure_mode is FailureMode.OPEN
        self._is_passing = False
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def counts(self) -> Counter[str]:
        """Values by class."""
        return self._answer.counts

    def feed(self, data: bytes, now: float) -> bytes:
        """Nothing yet."""
        if self._is_passing:
            return data
        self._pieces.append(data)
        self._size += len(data)
        if self._size <= MAX_ANSWER_BYTES:
            return b""
        if not self._fails_open:
            self._pieces.clear()
            raise AnswerTooLarge(f"more than {MAX_ANSWER_BYTES} bytes")
        self._is_passing = True
        return self._taken()

    def flush_due(self, now: float) -> bytes:
        """Nothing: a part of a document can't be told apart from the rest."""
        return b""

    def close(self, now: float) -> bytes:
        """All of it."""
        body = self._taken()
        try:
            return filter_answer(body, self._answer) if body else b""
        except Exception:
            if not self._fails_open:
                raise
            return body

    def _taken(self) -> bytes:
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body
