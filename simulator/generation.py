"""Turns a request into choices for the engine, and their tokens into an answer or a stream."""

import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace

from simulator.answer import Choice, Delta, Head, Json, Timing, Usage, Wire
from simulator.composition import Piece, Wish, compose
from simulator.generation_request import Endpoint, GenerationRequest
from simulator.identifiers import fresh_id
from simulator.runtime import EngineRuntime, Ticket
from simulator.scheduler import Sequence
from simulator.settings import EngineSettings
from simulator.signals import Measure, Recorder
from simulator.sse import DONE, event
from simulator.wire_messages import MessageScript, message_body
from simulator.wire_responses import ResponseScript, response_body
from simulator.words import seed_of

_ID_PREFIXES = {
    Endpoint.CHAT: "chatcmpl-",
    Endpoint.COMPLETION: "cmpl-",
    Endpoint.RESPONSES: "resp_",
    Endpoint.MESSAGES: "chatcmpl-",
}
_SCRIPTS: Mapping[Endpoint, Callable[[Head], ResponseScript | MessageScript]] = {
    Endpoint.RESPONSES: ResponseScript,
    Endpoint.MESSAGES: MessageScript,
}


class Generation:
    """Answers generation requests of one engine."""

    def __init__(self, settings: EngineSettings, wire: Wire, runtime: EngineRuntime, recorder: Recorder) -> None:
        self._settings = settings
        self._wire = wire
        self._runtime = runtime
        self._recorder = recorder
        self._arrivals = itertools.count()

    def start(self, request: GenerationRequest) -> tuple[Head, Ticket]:
        """Queue a request; raises what makes it impossible before anything is answered."""
        arrival = 0 if request.is_repeatable else next(self._arrivals) + 1
        sequences = [
            Sequence(
                prompt=prompt.tokens,
                pieces=compose(self._wish(request, place, choice, arrival)),
                salt=request.cache_salt,
                adapter=request.adapter,
                streams=request.streams,
            )
            for place, prompt in enumerate(request.prompts)
            for choice in range(request.choices_per_prompt)
        ]
        ticket = self._runtime.submit(sequences, request.choices_per_prompt)
        self._recorder.measure(Measure.ASKED_CHOICES, request.choices_per_prompt)
        self._recorder.measure(Measure.ASKED_TOKENS, request.max_tokens)
        return Head(fresh_id(_ID_PREFIXES[request.endpoint]), int(time.time()), request, self._settings), ticket

    async def whole(self, head: Head, ticket: Ticket) -> Json:
        """Return the body of a complete answer."""
        pieces: list[list[Piece]] = [[] for _ in ticket.sequences]
        async for token in self._runtime.tokens(ticket):
            pieces[token.choice].append(token.piece)
        choices = [Choice(index, tuple(made), self._echo(head.request, index)) for index, made in enumerate(pieces)]
        usage = Usage(ticket.prompt_tokens, sum(map(len, pieces)), ticket.cached_tokens)
        match head.request.endpoint:
            case Endpoint.CHAT:
                return self._wire.chat(head, choices, usage, self._timing(ticket))
            case Endpoint.COMPLETION:
                return self._wire.completion(head, choices, usage, self._timing(ticket))
            case Endpoint.RESPONSES:
                return response_body(head, choices, usage)
            case Endpoint.MESSAGES:
                return message_body(head, choices, usage)

    async def stream(self, head: Head, ticket: Ticket) -> AsyncIterator[bytes]:
        """Yield the events of a streamed answer."""
        if head.request.endpoint in _SCRIPTS:
            async for told in self._told(head, ticket):
                yield told
            return
        started: set[int] = set()
        prompt_tokens = ticket.prompt_tokens
        made = 0
        async for token in self._runtime.tokens(ticket):
            piece = token.piece
            is_first = token.choice not in started
            if is_first:
                usage = Usage(prompt_tokens, made, ticket.cached_tokens)
                for opening in self._openings(head, token.choice, usage, is_very_first=not started):
                    yield event(opening)
                started.add(token.choice)
                piece = replace(piece, text=self._echo(head.request, token.choice) + piece.text)
            made += 1
            usage = Usage(prompt_tokens, made, ticket.cached_tokens)
            delta = Delta(token.choice, piece, is_first, ticket.unfinished == 0, usage)
            for chunk in self._wire.chunks(head, delta):
                yield event(chunk)
        if head.request.includes_usage:
            usage = Usage(prompt_tokens, made, ticket.cached_tokens)
            yield event(self._wire.closing(head, usage, self._timing(ticket)))
        yield DONE

    async def _told(self, head: Head, ticket: Ticket) -> AsyncIterator[bytes]:
        """Yield the events of an API that names them."""
        script = _SCRIPTS[head.request.endpoint](head)
        made: list[Piece] = []
        async for token in self._runtime.tokens(ticket):
            if not made:
                for told in script.opening(Usage(ticket.prompt_tokens, 0, ticket.cached_tokens)):
                    yield told
            made.append(token.piece)
            for told in script.piece(token.piece):
                yield told
        usage = Usage(ticket.prompt_tokens, len(made), ticket.cached_tokens)
        for told in script.closing(Choice(0, tuple(made)), usage):
            yield told

    def _openings(self, head: Head, choice: int, usage: Usage, *, is_very_first: bool) -> list[Json]:
        everyone = range(len(head.request.prompts) * head.request.choices_per_prompt)
        if self._wire.opens_all_choices_at_once:
            opened: Iterable[int] = everyone if is_very_first else ()
        else:
            opened = (choice,)
        chunks = (self._wire.opening(head, index, usage) for index in opened)
        return [chunk for chunk in chunks if chunk is not None]

    def _wish(self, request: GenerationRequest, place: int, choice: int, arrival: int) -> Wish:
        prompt = request.prompts[place]
        own_seed = self._settings.pace.seed
        return Wish(
            prompt=prompt.text,
            seed=seed_of(own_seed, request.seed, prompt.text or prompt.tokens, place, choice, arrival),
            max_tokens=request.max_tokens,
            min_tokens=request.min_tokens,
            ignores_end=request.ignores_end,
            stops=request.stops,
            forced=request.forced,
            tool=request.tool,
        )

    @staticmethod
    def _echo(request: GenerationRequest, index: int) -> str:
        return request.prompts[index // request.choices_per_prompt].text if request.echoes else ""

    def _timing(self, ticket: Ticket) -> Timing | None:
        sequence = ticket.sequences[0]
        if not self._settings.api.reports_request_metrics or sequence.first_token is None:
            return None
        scheduled = sequence.first_token if sequence.scheduled is None else sequence.scheduled
        return Timing(
            first_token_ms=(sequence.first_token - scheduled) * 1_000,
            generation_ms=(sequence.last_token - sequence.first_token) * 1_000,
            queue_ms=(scheduled - sequence.arrived) * 1_000,
            tokens=sequence.emitted,
        )
