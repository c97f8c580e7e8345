"""The output filter that a route names, ready for use, and what one request takes of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.affinity import conversation_key
from gateway.body_edits import Edit
from gateway.form_texts import form_changes
from gateway.hash_secret import conversation_secret
from gateway.moderation import Judge
from gateway.output_filter.channel import Answer, CompiledPolicy
from gateway.output_filter.masks import Masks
from gateway.output_filter.stream_filter import StreamFilter
from gateway.output_filter.whole_answer import request_changes


class FilterWatch(Protocol):
    """Whoever counts what filters do."""

    def answered(self, model: str, counts: Mapping[str, int], blocked: str | None, failure: str | None) -> None:
        """One answer: values by class, the class that ended it, and what went wrong."""

    def asked(self, model: str, counts: Mapping[str, int], blocked: str | None) -> None:
        """One request: values by class, and the class that ended it."""


@dataclass(frozen=True, slots=True)
class RouteFilter:
    """One filter; it is kept as long as its policy stays."""

    policy: CompiledPolicy
    watch: FilterWatch
    secret: bytes = field(repr=False)
    judge: Judge | None = None
    """Of its moderation; ``None`` = nobody is asked."""

    def of(self, tenant: str, model: str, document: Mapping[str, object]) -> "AnswerFilter":
        """The filter of one request's answer."""
        key = b""
        if self.policy.hashes:
            key = conversation_secret(self.secret, conversation_key(tenant, model, document))
        return AnswerFilter(self, model, key)


class AnswerFilter:
    """The filter of one request's answer, and of the request where its policy asks for that."""

    __slots__ = ("_is_told", "_key", "_model", "_route", "request_edits")

    def __init__(self, route: RouteFilter, model: str, key: bytes) -> None:
        self._route = route
        self._model = model
        self._key = key
        self._is_told = False
        self.request_edits: tuple[Edit, ...] = ()
        """What is done to the texts of the request."""

    @property
    def model(self) -> str:
        """The public model of its route, for logs and metrics."""
        return self._model

    @property
    def policy(self) -> CompiledPolicy:
        """What is looked for, and how it fails."""
        return self._route.policy

    @property
    def judge(self) -> Judge | None:
        """Whoever judges its sentences."""
        return self._route.judge

    def stream(self) -> StreamFilter:
        """For an answer of events."""
        return StreamFilter(self.policy, self._key)

    def answer(self) -> Answer:
        """For an answer that is one document."""
        return Answer(self.policy, Masks(self.policy.modes, self._key))

    def read_request(self, body: bytes, *, is_form: bool = False) -> str | None:
        """Find the edits of the request; the class of a value that ends it, or ``None``."""
        asked = self.answer()
        changes = form_changes(body, asked) if is_form else request_changes(body, asked)
        self.request_edits = tuple(Edit(*change) for change in changes)
        self._route.watch.asked(self._model, asked.counts, asked.blocked)
        return asked.blocked

    def told(self, counts: Counter[str], blocked: str | None, failure: str | None) -> None:
        """The answer is over; only the first call counts."""
        if not self._is_told:
            self._is_told = True
            self._route.watch.answered(self._model, counts, blocked, failure)
