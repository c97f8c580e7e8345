"""An answer on its way out: what every dialect needs to write it as JSON."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from simulator.api_errors import ApiError
from simulator.composition import Finish, Piece
from simulator.generation_request import GenerationRequest
from simulator.settings import CacheSettings, EngineSettings

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one request."""

    prompt: int
    completion: int
    cached: int

    def written(self, cache: CacheSettings) -> int:
        """Tokens of the prompt that the cache got with it: whole blocks that it did not have."""
        whole = self.prompt // cache.block_size * cache.block_size
        return max(0, whole - self.cached) if cache.prefix_caching else 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one request, for engines that report them."""

    first_token_ms: float
    generation_ms: float
    queue_ms: float
    tokens: int

    def as_json(self) -> Json:
        """Return the object that vLLM adds with --enable-per-request-metrics."""
        steps = max(self.tokens - 1, 1)
        seconds = max(self.generation_ms, 1e-6) / 1_000
        return {
            "time_to_first_token_ms": self.first_token_ms,
            "generation_time_ms": self.generation_ms,
            "queue_time_ms": self.queue_ms,
            "mean_itl_ms": self.generation_ms / steps,
            "tokens_per_second": (self.tokens - 1) / seconds if self.tokens > 1 else 0.0,
        }


@dataclass(frozen=True, slots=True)
class Head:
    """What all chunks of one answer share."""

    answer_id: str
    created: int
    request: GenerationRequest
    settings: EngineSettings


@dataclass(frozen=True, slots=True)
class Choice:
    """One complete choice."""

    index: int
    pieces: tuple[Piece, ...]
    prefix: str = ""

    @property
    def text(self) -> str:
        """Return the visible text."""
        return self.prefix + "".join(piece.text for piece in self.pieces)

    @property
    def last(self) -> Piece:
        """Return the piece that ended it."""
        return self.pieces[-1]


@dataclass(frozen=True, slots=True)
class Delta:
    """One token of a stream, with what the dialects may add to it."""

    index: int
    piece: Piece
    is_first: bool
    is_last_of_all: bool
    usage: Usage


class Wire(Protocol):
    """How one engine writes its answers."""

    opens_all_choices_at_once: bool

    def chat(self, head: Head, choices: Sequence[Choice], usage: Usage, timing: Timing | None) -> Json:
        """Return the body of a complete chat."""

    def completion(self, head: Head, choices: Sequence[Choice], usage: Usage, timing: Timing | None) -> Json:
        """Return the body of a complete completion."""

    def opening(self, head: Head, index: int, usage: Usage) -> Json | None:
        """Return the chunk that opens a choice of a chat stream; `None` for completions."""

    def chunks(self, head: Head, delta: Delta) -> Sequence[Json]:
        """Return the chunks of one token."""

    def closing(self, head: Head, usage: Usage, timing: Timing | None) -> Json:
        """Return the usage chunk."""

    def error(self, error: ApiError) -> Json:
        """Return the body of an error."""

    def busy(self) -> ApiError:
        """Return the error of a full queue."""

    def models(self, settings: EngineSettings, started: int) -> Json:
        """Return the list of models."""


def finish_reason(request: GenerationRequest, piece: Piece, *, tells_named_tools: bool = False) -> str | None:
    """Return the reason as the API names it: a required tool that ended by itself says so, a named one may."""
    if piece.finish is None:
        return None
    called = request.tool is not None and (tells_named_tools or not request.tool.was_named)
    return "tool_calls" if called and piece.finish is Finish.STOP else piece.finish.value


def token_logprobs(pieces: Sequence[Piece], alternatives: int) -> Json:
    """Return made-up log probabilities, the same for the same token."""
    return {"content": [_token_logprob(piece.text, alternatives) for piece in pieces if not piece.is_end_token]}


def _token_logprob(text: str, alternatives: int) -> Json:
    shown = [_one_logprob(text), *(_one_logprob(f"{text}{rank}") for rank in range(1, alternatives))]
    return {**_one_logprob(text), "top_logprobs": shown[:alternatives]}


def _one_logprob(text: str) -> Json:
    raw = text.encode("utf-8", "surrogatepass")
    return {"token": text, "logprob": -(zlib.crc32(raw) % 9_000) / 1_000, "bytes": list(raw)}
