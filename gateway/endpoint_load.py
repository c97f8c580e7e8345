"""The load of one endpoint: prompts that wait to be computed, requests that have not ended, the rate of both. Pure."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, takewhile

FADE_SECONDS = 60.0
STALE_SECONDS = 1.0
"""Metrics are read every 200 ms to 1 s; older ones say little about a queue that lives for a second."""
USELESS_SECONDS = 15.0
KV_FULL = 0.8
QUEUE_FULL = 5
_IN_FLIGHT_FULL = 100
"""Requests, where an engine says nothing of itself."""
LEAD_SECONDS = 0.25
"""Prompts that are sent ahead, so that an engine never idles; more would only wait there, out of order."""
_HISTORY_SECONDS = 15.0
_HISTORY_STEP_SECONDS = 0.05
_RATE_KNOWN_TOKENS = 20_000.0
_RATE_MEMORY_TOKENS = 1_000_000.0
_RATE_LEAST_TOKENS = 512
"""Shorter prompts say more about the network and one decoding step than about the rate."""


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """What an engine said of itself."""

    measured_at: float
    """On the gateway's own monotonic clock."""
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0


class InFlight:
    """One request at one endpoint, from its sending to its end. Ending it twice changes nothing."""

    __slots__ = ("_endpoint", "is_watched", "sent_at", "tell", "tokens")

    def __init__(self, endpoint: "EndpointLoad", tokens: int, now: float, *, is_watched: bool) -> None:
        self._endpoint: EndpointLoad | None = endpoint
        self.tokens = tokens
        self.is_watched = is_watched
        self.sent_at = now
        self.tell: Callable[[bool], None] | None = None
        """Told ``False`` with the first token and ``True`` at the end."""
        endpoint.start(self, now)

    @property
    def has_ended(self) -> bool:
        """Whether the end was told."""
        return self._endpoint is None

    def first_token(self, now: float) -> None:
        """The endpoint has computed the prompt."""
        if self._endpoint is not None:
            self._endpoint.computed(self, now)
            if self.tell is not None:
                self.tell(False)

    def end(self, now: float) -> None:
        """The request is over, however it ended."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.end(self, now)
            if self.tell is not None:
                self.tell(True)


class EndpointLoad:
    """What one endpoint has to do."""

    __slots__ = (
        "_first_guess", "_given_at", "_given_tokens", "_head_since", "_history", "_rate_seconds", "_rate_tokens",
        "_waiting", "_waiting_tokens", "in_flight", "metrics", "others_waiting",
    )  # fmt: skip

    def __init__(self, tokens_per_second: float) -> None:
        self.in_flight = 0
        self.metrics: EngineMetrics | None = None
        self.others_waiting = 0
        """Requests of others that waited at the last measurement."""
        self._waiting: dict[InFlight, None] = {}
        self._waiting_tokens = 0
        self._head_since = 0.0
        self._given_tokens = self._given_at = 0.0
        self._first_guess = tokens_per_second
        self._rate_tokens = self._rate_seconds = 0.0
        self._history: deque[tuple[float, int]] = deque([(-math.inf, 0)])
        """(second, prompts waiting) after changes, as far back as late metrics may reach."""

    @property
    def measured_rate(self) -> float | None:
        """Prompt tokens per second; ``None`` until enough prompts were computed to say."""
        return self._rate_tokens / self._rate_seconds if self._rate_tokens >= _RATE_KNOWN_TOKENS else None

    @property
    def tokens_per_second(self) -> float:
        """The measured rate, else the first guess."""
        return self.measured_rate or self._first_guess

    def start(self, request: InFlight, now: float) -> None:
        """A request was sent."""
        if self._waiting:
            self._pass_unwatched(now)
        if not self._waiting:
            self._head_since = now
        self.in_flight += 1
        self._waiting[request] = None
        self._waiting_tokens += request.tokens
        self._given_tokens = self.given_tokens(now) + request.tokens
        self._given_at = now
        self._remember(now)

    def computed(self, request: InFlight, now: float) -> None:
        """The prompt of a request is computed."""
        if self._is_head(request) and request.tokens >= _RATE_LEAST_TOKENS and now > self._head_since:
            self._learn(request.tokens, now - self._head_since)
        self._leave(request, now)

    def end(self, request: InFlight, now: float) -> None:
        """A request has ended."""
        self.in_flight -= 1
        self._leave(request, now)

    def measured(self, metrics: EngineMetrics) -> None:
        """Metrics arrived. What waited then beyond the own requests was sent by others."""
        if self.metrics is None or metrics.measured_at >= self.metrics.measured_at:
            self.metrics = metrics
            self.others_waiting = max(0, metrics.waiting - self._waiting_at(metrics.measured_at))

    def queued_tokens(self, now: float) -> float:
        """Tokens to compute before a new prompt; what the first one has behind it by now is taken off."""
        if self._waiting:
            self._pass_unwatched(now)
        if not self._waiting:
            return 0.0
        head = next(iter(self._waiting))
        done = min(float(head.tokens), max(0.0, now - self._head_since) * self.tokens_per_second)
        return self._waiting_tokens - done

    def fullness(self, now: float, lead_seconds: float = LEAD_SECONDS) -> float:
        """1.0 = it should get nothing more, counting what it was sent since its metrics were read.

        By its own words: KV memory at 80 % or 5 requests waiting. By ours: prompts for so many seconds, where the rate
        is known. Late metrics count no less than what we know ourselves; an engine that says nothing may have 100
        requests at once, and one that has none of ours is never full by old metrics.
        """
        queued, rate = self.queued_tokens(now), self.measured_rate  # first: it takes out of the queue what is computed
        ahead = 0.0 if rate is None else queued / (rate * lead_seconds)
        metrics = self.metrics
        age = math.inf if metrics is None else now - metrics.measured_at
        if metrics is None or age > USELESS_SECONDS:
            return max(ahead, self.in_flight / _IN_FLIGHT_FULL)
        if age > STALE_SECONDS and not self.in_flight:
            return 0.0
        newer = takewhile(lambda request: request.sent_at > metrics.measured_at, reversed(self._waiting))
        waiting = metrics.waiting + sum(1 for _ in islice(newer, QUEUE_FULL))
        if age > STALE_SECONDS:
            waiting = max(waiting, len(self._waiting))
        return max(ahead, metrics.kv_usage / KV_FULL, waiting / QUEUE_FULL)

    def given_tokens(self, now: float) -> float:
        """Uncached tokens that it was given, fading by 1/e in a minute."""
        age = now - self._given_at
        return self._given_tokens * math.exp(-age / FADE_SECONDS) if age > 0 else self._given_tokens

    def _is_head(self, request: InFlight) -> bool:
        return next(iter(self._waiting), None) is request

    def _leave(self, request: InFlight, now: float) -> None:
        if request not in self._waiting:
            return
        if self._is_head(request):
            self._head_since = now
        else:  # it overtook the first one, which has stood still meanwhile
            self._head_since = min(now, self._head_since + request.tokens / self.tokens_per_second)
        del self._waiting[request]
        self._waiting_tokens -= request.tokens
        self._remember(now)

    def _pass_unwatched(self, now: float) -> None:
        """Requests whose first token nobody tells are taken to be computed at the known rate."""
        while (head := next(iter(self._waiting), None)) is not None and not head.is_watched:
            done_at = self._head_since + head.tokens / self.tokens_per_second
            if done_at > now:
                return
            self._leave(head, done_at)

    def _learn(self, tokens: int, seconds: float) -> None:
        if self._rate_tokens > _RATE_MEMORY_TOKENS:
            self._rate_tokens /= 2
            self._rate_seconds /= 2
        self._rate_tokens += tokens
        self._rate_seconds += seconds

    def _remember(self, now: float) -> None:
        history = self._history
        if now - history[-1][0] < _HISTORY_STEP_SECONDS:
            history[-1] = (history[-1][0], len(self._waiting))
            return
        history.append((now, len(self._waiting)))
        while len(history) > 1 and history[1][0] < now - _HISTORY_SECONDS:
            history.popleft()

    def _waiting_at(self, moment: float) -> int:
        """Own prompts that waited at a moment; within a step of the history the larger number counts."""
        later = 0
        for since, count in reversed(self._history):
            if since <= moment:
                return max(count, later)
            later = count
        return later
