"""Counts what the answers of a realtime session take, by the messages of both sides. No I/O, no clock."""

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from gateway.exhausted import Exhausted
from gateway.passage import End
from gateway.session_budget import HeldAnswer
from gateway.token_usage import TokenUsage, usage_of

ASKS = "response.create"
_AUDIO = "input_audio_buffer.append"
_BYTES_PER_TOKEN = 4
_AUDIO_CHARACTERS_PER_TOKEN = 2048
"""Of base64: 24,000 samples of two bytes make 64,000 characters a second, and about 25 tokens."""
_BEGINS = "response.created"
_ENDS = frozenset({"response.done", "transcription.done"})
_FAILED = "error"


class Holds(Protocol):
    """Where answers are held and charged."""

    def hold(self, input_tokens: int, stated_output_tokens: int | None) -> HeldAnswer | Exhausted:
        """What an answer may come to."""

    def heard(self, answer: HeldAnswer) -> None:
        """A piece of it came."""

    def never_began(self, answer: HeldAnswer) -> None:
        """The engine did not take it on."""

    def end(self, answer: HeldAnswer, end: End, usage: TokenUsage | None) -> None:
        """It is over."""


class RealtimeMeter:
    """Holds something for each answer before it begins, whoever began it, and charges it when it ends."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._answers: deque[HeldAnswer] = deque()
        self._asked_for = 0
        """Answers that the client asked for and the engine did not begin."""
        self._context_tokens = 0
        self._new_tokens = 0
        self._stated_output_tokens: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no answer is on its way."""
        return not self._answers

    def client_said(self, message: Mapping[str, object], size: int) -> Exhausted | None:
        """A message for the engine; what a budget has no room for must not reach it."""
        kind = message.get("type")
        tokens = -(-size // (_AUDIO_CHARACTERS_PER_TOKEN if kind == _AUDIO else _BYTES_PER_TOKEN))
        self._new_tokens += tokens
        stated = _stated_output(message)
        if kind != ASKS:
            self._stated_output_tokens = stated or self._stated_output_tokens
            return None
        exhausted = self._hold(stated or self._stated_output_tokens)
        if exhausted is None:
            self._asked_for += 1
        else:
            self._new_tokens -= tokens
        return exhausted

    def engine_said(self, message: Mapping[str, object]) -> Exhausted | None:
        """A message for the client; an engine that answers by itself, as to a voice, is held for as well."""
        kind = str(message.get("type"))
        if kind == _BEGINS:
            return self._began()
        if kind in _ENDS:
            self._ended(message)
        elif kind == _FAILED and self._asked_for:
            self._asked_for -= 1
            self._holds.never_began(self._answers.pop())
        elif kind.endswith(".delta"):
            exhausted = None if self._answers else self._hold(self._stated_output_tokens)
            if self._answers:
                self._holds.heard(self._answers[0])
            return exhausted
        return None

    def close(self, end: End) -> None:
        """The session is over: what was on its way is charged by what came of it."""
        while self._answers:
            self._holds.end(self._answers.popleft(), end, None)

    def _began(self) -> Exhausted | None:
        if not self._asked_for:
            return self._hold(self._stated_output_tokens)
        self._asked_for -= 1
        return None

    def _hold(self, stated_output_tokens: int | None) -> Exhausted | None:
        held = self._holds.hold(self._context_tokens + self._new_tokens, stated_output_tokens)
        if isinstance(held, Exhausted):
            return held
        self._answers.append(held)
        return None

    def _ended(self, message: Mapping[str, object]) -> None:
        response = message.get("response")
        holder = response if isinstance(response, Mapping) else message
        usage = usage_of(holder.get("usage"))
        if usage is not None:
            self._context_tokens, self._new_tokens = usage.input_tokens + usage.output_tokens, 0
        if self._answers:
            self._holds.end(self._answers.popleft(), End.WHOLE, usage)
            self._asked_for = min(self._asked_for, len(self._answers))  # it may never have said that one began


def _stated_output(message: Mapping[str, object]) -> int | None:
    """The longest answer that the client asks for, of one or of all."""
    for name in ("response", "session"):
        holder = message.get(name)
        if not isinstance(holder, Mapping):
            continue
        stated = holder.get("max_output_tokens", holder.get("max_response_output_tokens"))
        if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0:
            return stated
    return None
