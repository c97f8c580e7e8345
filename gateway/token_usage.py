"""How many tokens an answer took, as engines say it in OpenAI's and Anthropic's words."""

import math
from collections.abc import Mapping
from typing import NamedTuple

SOUND_TOKENS_PER_SECOND = 25
"""As engines' audio encoders give."""
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
"""Where the cached ones stand: of chats, of responses, of realtime sessions."""
_MOST_SECONDS = 10**6
_MOST = 10**9
"""More tokens than any answer has; a figure above it is no figure."""


class TokenUsage(NamedTuple):
    """Tokens of one answer."""

    input_tokens: int
    """Of the prompt, cached ones included."""
    cached_tokens: int
    """Of the prompt, found in the engine's cache; at most `input_tokens`."""
    output_tokens: int


def usage_of(stated: object) -> TokenUsage | None:
    """The usage that an engine states; ``None`` = it is none, or can't be one.

    OpenAI's chats and completions say ``prompt_tokens`` and ``completion_tokens``, its responses ``input_tokens`` and
    ``output_tokens`` with the cached ones among the input. Anthropic's ``input_tokens`` leaves out what was read from
    or written to the cache. Transcriptions say ``{"type": "duration", "seconds": 3}``.
    """
    if not isinstance(stated, dict):
        return None
    if stated.get("type") == "duration":
        return _of_sound(stated.get("seconds"))
    written, read = _count(stated, "cache_creation_input_tokens"), _count(stated, "cache_read_input_tokens")
    stated_input = _first_count(stated, "prompt_tokens", "input_tokens")
    stated_output = _first_count(stated, "completion_tokens", "output_tokens")
    if stated_input is None and stated_output is None:
        return None
    whole = (stated_input or 0) + (written or 0) + (read or 0)
    cached = read or _cached(stated)
    return TokenUsage(whole, min(cached, whole), stated_output or 0)


def _of_sound(seconds: object) -> TokenUsage | None:
    """A transcription says how long the sound is."""
    is_length = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= _MOST_SECONDS
    if not is_length or not isinstance(seconds, int | float):
        return None
    return TokenUsage(math.ceil(seconds * SOUND_TOKENS_PER_SECOND), 0, 0)


def _cached(stated: Mapping[str, object]) -> int:
    for name in _DETAILS:
        details = stated.get(name)
        if isinstance(details, dict) and (count := _count(details, "cached_tokens")):
            return count
    return 0


def _first_count(stated: Mapping[str, object], first: str, second: str) -> int | None:
    count = _count(stated, first)
    return _count(stated, second) if count is None else count


def _count(stated: Mapping[str, object], key: str) -> int | None:
    value = stated.get(key)
    return value if type(value) is int and 0 <= value <= _MOST else None
