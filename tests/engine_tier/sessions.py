"""Conversations of several turns whose prompts share all that was said before, and what came of their turns."""

import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx2

CHAT = "/v1/chat/completions"
SESSIONS, TURNS = 6, 4
FIRST_WORDS, MORE_WORDS = 2_750, 30
ANSWER_TOKENS = 8
SHORT = "the of a and its for you who are not in one all on at to it is as we be by he or so up if no do go"
WORDS = tuple(SHORT.split())
"""A token each for the model and about as much by the gateway's estimate, by which it knows what a pool holds."""


@dataclass(frozen=True)
class Turn:
    """One request of a session."""

    session: int
    number: int
    """0 = the first, which nobody can have cached."""
    ttft_seconds: float
    prompt_tokens: int
    cached_tokens: int


@dataclass
class Session:
    """A conversation as its client keeps it."""

    number: int
    words: random.Random
    messages: list[dict[str, str]] = field(default_factory=list)

    def ask(self) -> list[dict[str, str]]:
        """The messages of the next turn."""
        count = MORE_WORDS if self.messages else FIRST_WORDS
        text = " ".join(self.words.choice(WORDS) for _ in range(count))
        self.messages.append({"role": "user", "content": f"{self.number} {self.words.random()} {text}"})
        return self.messages


def play(client: httpx2.Client, model_of: Callable[[int], str], seed: int, name: str) -> list[Turn]:
    """All turns of all sessions, one request after the other; the order of sessions is another one in each round.

    ``model_of`` names the model of the nth request. The seed makes the order, with the name also the texts: two names
    have no prompt in common.
    """
    order = random.Random(seed)  # noqa: S311 - the same order each time
    sessions = [Session(number, random.Random(f"{name}-{seed}-{number}")) for number in range(SESSIONS)]  # noqa: S311
    turns: list[Turn] = []
    for number in range(TURNS):
        order.shuffle(sessions)
        for session in sessions:
            turns.append(take_turn(client, model_of(len(turns)), session, number))
    return turns


def take_turn(client: httpx2.Client, model: str, session: Session, number: int) -> Turn:
    """One streamed answer, whose text becomes part of the conversation."""
    body = {
        "model": model,
        "messages": session.ask(),
        "max_tokens": ANSWER_TOKENS,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    first, text, usage = 0.0, "", {}
    begin = time.monotonic()
    with client.stream("POST", CHAT, json=body) as answer:
        if answer.status_code != 200:
            raise AssertionError(f"{answer.status_code}: {answer.read().decode()[:300]}")
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            document = json.loads(line.removeprefix("data: "))
            said = "".join(choice["delta"].get("content") or "" for choice in document["choices"])
            first = first or (time.monotonic() - begin if said else 0.0)
            text += said
            usage = document.get("usage") or usage
    session.messages.append({"role": "assistant", "content": text})
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Turn(session.number, number, first, usage["prompt_tokens"], cached)


def cached_ratio(turns: Sequence[Turn]) -> float:
    """Cached tokens among those of all prompts but the first of each session."""
    later = [turn for turn in turns if turn.number]
    return sum(turn.cached_tokens for turn in later) / sum(turn.prompt_tokens for turn in later)


def ttft_p50(turns: Sequence[Turn]) -> float:
    """The median time to the first token, without the first turns."""
    return statistics.median(turn.ttft_seconds for turn in turns if turn.number)
