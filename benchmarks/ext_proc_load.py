"""The engine and the clients of the ext_proc benchmark, each a process of its own on uvloop."""

import asyncio
import json
import sys
import time

import uvloop

KEY = "eh-bench-0123456789"
CHUNK = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word"}}]}\n\n'
)
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 540}]}).encode()
STREAM_BODY = BODY.replace(b'"model"', b'"stream":true,"model"', 1)
CHUNKS = 100
CHUNK_SECONDS = 0.005
_ANSWER = b'{"id":"chatcmpl-1","object":"chat.completion","choices":[]}'
_WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_PIECE = b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK)
_LAST = b"0\r\n\r\n"


class Engine(asyncio.Protocol):
    """Answers whole requests, one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection of the proxy."""
        self._transport = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        """Pieces of a request."""
        self._held += data
        head, _, body = self._held.partition(b"\r\n\r\n")
        whole = body.endswith(_LAST) if b"chunked" in head else len(body) >= len(BODY)
        if not whole:
            return
        is_stream = b'"stream"' in self._held
        self._held = b""
        if is_stream:
            self._transport.write(_HEAD)
            self._next(CHUNKS)
        else:
            self._transport.write(_WHOLE)

    def _next(self, left: int) -> None:
        if not left or self._transport.is_closing():
            self._transport.write(_LAST)
            return
        self._transport.write(_PIECE)
        asyncio.get_running_loop().call_later(CHUNK_SECONDS, self._next, left - 1)


class Client(asyncio.Protocol):
    """Sends the next request when the last one is answered."""

    done = 0
    chunks = 0
    failed = 0
    until = 0.0

    def __init__(self, body: bytes) -> None:
        self._is_stream = b'"stream"' in body
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
        self._request = b"%scontent-length: %d\r\n\r\n%s" % (head.encode(), len(body), body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start."""
        self._transport = transport
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, or a failure when it comes before."""
        Client.failed += exc is not None
        self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Pieces of an answer; each kind of answer ends in its own way."""
        if self._is_stream:
            Client.chunks += data.count(b"data: ")
            if not data.endswith(_LAST):
                return
        elif not data.endswith((b"}", _LAST)):
            return
        if data.startswith(b"HTTP/1.1 5"):
            Client.failed += 1
        Client.done += 1
        if time.monotonic() < Client.until:
            self._transport.write(self._request)
        else:
            self._transport.close()


async def serve() -> None:
    """Run an engine; its port is printed."""
    server = await asyncio.get_running_loop().create_server(Engine, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def load(port: int, connections: int, seconds: float, *, streams: bool) -> None:
    """Run clients; what they got is printed."""
    loop = asyncio.get_running_loop()
    Client.until = time.monotonic() + seconds
    body = STREAM_BODY if streams else BODY
    made = [await loop.create_connection(lambda: Client(body), "127.0.0.1", port) for _ in range(connections)]
    await asyncio.gather(*(client.closed for _, client in made))
    print(json.dumps({"requests": Client.done, "chunks": Client.chunks, "failed": Client.failed}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "engine":
        uvloop.run(serve())
    else:
        uvloop.run(load(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), streams=sys.argv[1] == "streams"))
