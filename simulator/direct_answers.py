"""What an engine answers without writing anything: tokens counted, embeddings, ranks, and what is said in a sound."""

from collections.abc import AsyncIterator, Mapping, Sequence

from simulator.api_errors import ApiError
from simulator.chat_forms import as_chat
from simulator.generation_request import Endpoint, model_of
from simulator.http_messages import Handler, Reply, Request
from simulator.pooling import embeddings, ranks
from simulator.prompts import chat_text
from simulator.request_body import Body, read_body
from simulator.settings import Dialect, EngineSettings, Task
from simulator.sse import json_bytes
from simulator.tokens import pieces_of, token_ids
from simulator.transcription import read_upload, transcription, transcription_events, words_of


class DirectAnswers:
    """The handlers of one engine."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings

    @property
    def routes(self) -> Mapping[str, Mapping[str, Handler]]:
        """Return the handlers of what the engine was started for."""
        is_vllm = self._settings.dialect is Dialect.VLLM
        routes: dict[str, Mapping[str, Handler]] = {"/tokenize": {"POST": self._tokenize}}
        match self._settings.api.task:
            case Task.GENERATE:
                if is_vllm:
                    routes["/v1/messages/count_tokens"] = {"POST": self._count}
            case Task.EMBED:
                routes["/v1/embeddings"] = {"POST": self._embeddings}
            case Task.RANK:
                paths = ("/rerank", "/v1/rerank", "/v2/rerank") if is_vllm else ("/v1/rerank",)
                routes |= {path: {"POST": self._ranks} for path in paths}
            case Task.TRANSCRIBE:
                routes["/v1/audio/transcriptions"] = {"POST": self._transcription}
        return routes

    async def _tokenize(self, request: Request) -> Reply:
        tokens = _tokens(read_body(await request.body()))
        limit = self._settings.limits.max_model_len
        answer = {"count": len(tokens), "max_model_len": limit, "tokens": list(tokens), "token_strs": None}
        return Reply(200, json_bytes(answer))

    async def _count(self, request: Request) -> Reply:
        body = read_body(await request.body())
        model_of(body, self._settings)
        return Reply(200, json_bytes({"input_tokens": len(_tokens(as_chat(body, Endpoint.MESSAGES)))}))

    async def _embeddings(self, request: Request) -> Reply:
        body = read_body(await request.body())
        return Reply(200, json_bytes(embeddings(body, model_of(body, self._settings))))

    async def _ranks(self, request: Request) -> Reply:
        body = read_body(await request.body())
        return Reply(200, json_bytes(ranks(body, model_of(body, self._settings))))

    async def _transcription(self, request: Request) -> Reply:
        fields, sound = read_upload(request.header(b"content-type") or "", await request.body())
        model = model_of(Body(fields), self._settings)
        if not sound:
            raise ApiError(400, "BadRequestError", "the file is empty", "file")
        pieces, seconds = words_of(sound, self._settings.pace.seed)
        if fields.get("stream") == "true":
            events = _all_of(transcription_events(model, pieces))
            return Reply(200, content_type="text/event-stream; charset=utf-8", stream=events)
        text, content_type = transcription(fields, pieces, seconds)
        return Reply(200, text, content_type)


def _tokens(body: Body) -> Sequence[int]:
    text = body.text("prompt")
    if text is None:
        body.need("messages")
        text, _ = chat_text(body.items("messages"), body.items("tools"))
    return token_ids(pieces_of(text))


async def _all_of(events: Sequence[bytes]) -> AsyncIterator[bytes]:
    for one in events:
        yield one
