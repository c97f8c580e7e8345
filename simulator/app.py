"""The HTTP side of a simulated engine as an ASGI application."""

import asyncio
import hmac
import time
from collections.abc import Mapping
from dataclasses import replace

from simulator.api_errors import ApiError
from simulator.chat_forms import as_chat
from simulator.dialects import metrics_for, wire_for
from simulator.direct_answers import DirectAnswers
from simulator.engine_state import state_of
from simulator.generation import Generation
from simulator.generation_request import Endpoint, GenerationRequest, read_request
from simulator.http_messages import BodyTooLargeError, Handler, Receive, Reply, Request, Scope, Send, send_reply
from simulator.identifiers import fresh_id
from simulator.metrics_book import HttpExchange
from simulator.request_body import read_body
from simulator.runtime import ClientLeftError, EngineBusyError, EngineRuntime
from simulator.settings import Dialect, EngineSettings, Task
from simulator.sse import DONE, event, json_bytes, with_keep_alive
from simulator.wire_messages import message_error

QUICKLY_READ_BYTES = 256 * 1024

_COMMON_PATHS = ("/v1/chat/completions", "/v1/completions")
"""Served by every engine; the other forms of a chat were captured from vLLM alone."""
_ENDPOINTS = {
    **dict(zip(_COMMON_PATHS, (Endpoint.CHAT, Endpoint.COMPLETION), strict=True)),
    "/v1/responses": Endpoint.RESPONSES,
    "/v1/messages": Endpoint.MESSAGES,
}
_SILENT = frozenset({"/metrics", "/health", "/load", "/ping", "/version"})
"""Paths that the engine does not count in its own HTTP metrics."""


class EngineApp:
    """Routes requests of one engine; `runtime` is what it runs."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self._started = int(time.time())
        self._metrics = metrics_for(settings)
        self._wire = wire_for(settings.dialect)
        self.runtime = EngineRuntime(settings, self._metrics)
        self._generation = Generation(settings, self._wire, self.runtime, self._metrics)
        self._direct = DirectAnswers(settings)
        self._is_vllm = settings.dialect is Dialect.VLLM
        self._routes = self._build_routes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        begun = time.perf_counter()
        methods = self._routes.get(request.path)
        try:
            status, sent = await self._answer(request, methods, send)
        except ClientLeftError:
            return
        if request.path not in _SILENT:
            handler = "none" if methods is None or request.method not in methods else request.path
            size = int(request.header(b"content-length") or 0)
            seconds = time.perf_counter() - begun
            self._metrics.note_http(HttpExchange(handler, request.method, status, seconds, size, sent))

    async def _answer(self, request: Request, methods: Mapping[str, Handler] | None, send: Send) -> tuple[int, int]:
        if not self._is_allowed(request):
            reply = Reply(401, json_bytes({"error": "Unauthorized"}))
            return 401, await send_reply(reply, send)
        if methods is None or request.method not in methods:
            status, detail = (404, "Not Found") if methods is None else (405, "Method Not Allowed")
            reply = self._with_headers(request, Reply(status, json_bytes({"detail": detail})))
            return status, await send_reply(reply, send)
        if request.path in _ENDPOINTS:
            return await self._generate(request, _ENDPOINTS[request.path], send)
        try:
            reply = await methods[request.method](request)
        except ApiError as error:
            reply = self._refusal(error)
        return reply.status, await send_reply(self._with_headers(request, reply), send)

    async def _generate(self, request: Request, endpoint: Endpoint, send: Send) -> tuple[int, int]:
        try:
            wanted = await self._read(await request.body(), endpoint)
        except (ApiError, BodyTooLargeError) as error:
            reply = self._refusal(error, endpoint)
            return reply.status, await send_reply(self._with_headers(request, reply), send)
        try:
            head, ticket = self._generation.start(wanted)
        except (ApiError, EngineBusyError) as error:
            reply = self._refusal(error, endpoint, in_stream=wanted.streams)
            return reply.status, await send_reply(self._with_headers(request, reply), send)
        try:
            async with request.watched(lambda: self.runtime.abort(ticket)):
                if wanted.streams:
                    events = with_keep_alive(
                        self._generation.stream(head, ticket), self.settings.api.keep_alive_seconds
                    )
                    reply = Reply(200, content_type="text/event-stream; charset=utf-8", stream=events)
                else:
                    reply = Reply(200, json_bytes(await self._generation.whole(head, ticket)))
                return 200, await send_reply(self._with_headers(request, reply), send)
        finally:
            self.runtime.abort(ticket)

    async def _read(self, raw: bytes, endpoint: Endpoint) -> GenerationRequest:
        """The request; a long one is read beside the others, which go on meanwhile."""
        if len(raw) <= QUICKLY_READ_BYTES:
            return self._wanted(raw, endpoint)
        return await asyncio.to_thread(self._wanted, raw, endpoint)

    def _wanted(self, raw: bytes, endpoint: Endpoint) -> GenerationRequest:
        body = as_chat(read_body(raw), endpoint)
        read_as = Endpoint.COMPLETION if endpoint is Endpoint.COMPLETION else Endpoint.CHAT
        return replace(read_request(body, read_as, self.settings), endpoint=endpoint)

    def _refusal(
        self,
        error: ApiError | BodyTooLargeError | EngineBusyError,
        endpoint: Endpoint = Endpoint.CHAT,
        *,
        in_stream: bool = False,
    ) -> Reply:
        write = message_error if endpoint is Endpoint.MESSAGES else self._wire.error
        if isinstance(error, BodyTooLargeError):
            error = ApiError(413, "BadRequestError", "the request body is larger than 64 MiB")
        if isinstance(error, ApiError):
            return Reply(error.status, json_bytes(write(error)))
        busy = self._wire.busy()
        if in_stream and self.settings.dialect is Dialect.SGLANG:
            # SGLang has answered 200 by the time its queue refuses a stream; the error is an event.
            shown = {**self._wire.error(busy), "type": "SERVICE_UNAVAILABLE"}
            body = event({"error": shown}) + DONE
            return Reply(200, body, "text/event-stream; charset=utf-8")
        return Reply(busy.status, json_bytes(write(busy)))

    def _with_headers(self, request: Request, reply: Reply) -> Reply:
        if not self._is_vllm:
            return reply
        headers: list[tuple[bytes, bytes]] = []
        if self.settings.api.returns_request_ids:
            given = request.header(b"x-request-id") or fresh_id("") + fresh_id("")
            headers.append((b"x-request-id", given.encode("latin-1", "replace")))
        return replace(reply, headers=(*headers, (b"vary", b"Origin")))

    def _is_allowed(self, request: Request) -> bool:
        keys = self.settings.api.api_keys
        if not keys or not request.path.startswith("/v1"):
            return True
        scheme, _, given = (request.header(b"authorization") or "").partition(" ")
        given_bytes = given.strip().encode("latin-1", "replace")
        return scheme.lower() == "bearer" and any(hmac.compare_digest(key.encode(), given_bytes) for key in keys)

    def _build_routes(self) -> Mapping[str, Mapping[str, Handler]]:
        routes: dict[str, Mapping[str, Handler]] = {
            "/health": {"GET": self._empty},
            "/v1/models": {"GET": self._models},
            **self._direct.routes,
        }
        if self.settings.api.task is Task.GENERATE:
            routes |= {path: {"POST": self._empty} for path in _ENDPOINTS if self._is_vllm or path in _COMMON_PATHS}
        if self.settings.api.metrics_are_on:
            routes[self._metrics.path] = {"GET": self._metrics_text}
        match self.settings.dialect:
            case Dialect.VLLM:
                routes["/ping"] = {"GET": self._empty, "POST": self._empty}
                routes["/load"] = {"GET": self._load}
                routes["/version"] = {"GET": self._version}
            case Dialect.SGLANG:
                routes["/health_generate"] = {"GET": self._empty}
                routes["/ping"] = {"GET": self._empty}
                for path in ("/server_info", "/get_server_info", "/model_info", "/get_model_info"):
                    routes[path] = {"GET": self._server_info}
            case Dialect.TENSORRT_LLM:
                routes["/version"] = {"GET": self._version}
                routes["/metrics"] = {"GET": self._iteration_stats}
            case Dialect.LMDEPLOY:
                pass
        return routes

    async def _empty(self, request: Request) -> Reply:
        return Reply(200)

    async def _version(self, request: Request) -> Reply:
        return Reply(200, json_bytes({"version": self.settings.version}))

    async def _load(self, request: Request) -> Reply:
        return Reply(200, json_bytes({"server_load": 0}))

    async def _models(self, request: Request) -> Reply:
        return Reply(200, json_bytes(self._wire.models(self.settings, self._started)))

    async def _metrics_text(self, request: Request) -> Reply:
        text = self._metrics.text(state_of(self.runtime.scheduler))
        return Reply(200, text.encode(), self._metrics.content_type)

    async def _server_info(self, request: Request) -> Reply:
        info = {
            "version": self.settings.version,
            "model_path": self.settings.model,
            "served_model_name": self.settings.api.served_names[0],
            "context_length": self.settings.limits.max_model_len,
            "max_running_requests": self.settings.limits.max_num_seqs,
        }
        return Reply(200, json_bytes(info))

    async def _iteration_stats(self, request: Request) -> Reply:
        return Reply(200, b"[]")
