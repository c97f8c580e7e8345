"""The metrics port of a gateway with several workers: their pages joined, and whether any of them is ready."""

import asyncio
from collections.abc import Callable, Mapping

import httpx2
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from gateway.exchange import Exchange, HttpResponse
from gateway.http_protocol import HttpRequest, Later
from gateway.metrics_port import MetricsPort
from gateway.worker_metrics import joined_pages

_SECONDS = 2.0
_TEXT = (("content-type", "text/plain; charset=utf-8"),)


class SupervisorPage:
    """Asks the workers when it is asked."""

    def __init__(self, registry: CollectorRegistry, metrics_urls: Callable[[], Mapping[str, str]]) -> None:
        self._registry = registry
        self._metrics_urls = metrics_urls
        self._client: httpx2.AsyncClient | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._port = MetricsPort(self._handle)

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Serve; raises GatewayError for a port that is taken."""
        self._client = httpx2.AsyncClient(trust_env=False, timeout=_SECONDS)
        return await self._port.listen(host, port)

    async def close(self) -> None:
        """End what is open."""
        await self._port.drain(0)
        if self._client is not None:
            await self._client.aclose()

    def _handle(self, request: HttpRequest) -> HttpResponse | Later:
        path = request.target.partition("?")[0]
        if request.method not in {"GET", "HEAD"}:
            return HttpResponse(405, (("allow", "GET, HEAD"),))
        if path == "/livez":
            return HttpResponse(200, _TEXT, b"ok\n")
        if path not in {"/metrics", "/readyz"}:
            return HttpResponse(404, _TEXT, b"served are /metrics, /livez and /readyz\n")

        def begin(exchange: Exchange) -> None:
            task = asyncio.get_running_loop().create_task(self._answer(exchange, path, request.method != "HEAD"))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

        return begin

    async def _answer(self, exchange: Exchange, path: str, has_body: bool) -> None:
        pages = await self._pages(path)
        if path == "/metrics":
            own = generate_latest(self._registry).decode()
            body = (own + joined_pages(pages)).encode()
            exchange.answer(HttpResponse(200, (("content-type", CONTENT_TYPE_LATEST),), body), has_body=has_body)
        elif pages:
            exchange.answer(HttpResponse(200, _TEXT, b"ok\n"), has_body=has_body)
        else:
            exchange.answer(HttpResponse(503, _TEXT, b"no worker is ready\n"), has_body=has_body)

    async def _pages(self, path: str) -> dict[str, str]:
        """What each worker answers; one that does not, or not with 200, is left out."""
        urls = self._metrics_urls()
        found = await asyncio.gather(*(self._page(url.removesuffix("/metrics") + path) for url in urls.values()))
        return {worker: page for worker, page in zip(urls, found, strict=True) if page is not None}

    async def _page(self, url: str) -> str | None:
        if self._client is None:
            return None
        try:
            answer = await self._client.get(url)
        except httpx2.HTTPError:
            return None
        return answer.text if answer.status_code == 200 else None
