"""The engine of the gateway's benchmark: answers at once, or streams chunks in time, on uvloop with next to no work.

Run: ``python benchmarks/gateway_engine.py PORT``. It answers the paths that routers ask about health, models and
metrics as well. A stream says ``"usage":null`` and its usage when it is asked for it, as engines do. As in an engine
that batches, each step gives every stream its next chunk, so that chunks come to each contender in the same bunches.
"""

import asyncio
import sys
import time
from functools import partial
from typing import cast

import uvloop

CHUNKS = 400
STEP_SECONDS = 0.005
MODEL = "chat"

_START = b'data: {"id":"chatcmpl-7f2f8f6e5a","object":"chat.completion.chunk","created":1900000000,"model":"chat",'
_CHUNK = _START + b'"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]%b}\n\n'
_USED = b'"usage":{"prompt_tokens":140,"total_tokens":240,"completion_tokens":100}'
_USAGE = _START + b'"choices":[],' + _USED + b"}\n\ndata: [DONE]\n\n"
_NULL = b',"usage":null'
_WHOLE = (
    b'{"id":"chatcmpl-7f2f8f6e5a","object":"chat.completion","created":1900000000,"model":"chat","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"A word or two."},"finish_reason":"stop"}],' + _USED + b"}"
)
_MODELS = b'{"object":"list","data":[{"id":"chat","object":"model","created":0,"owned_by":"mock"}]}'
_METRICS = b"".join(
    b'# TYPE vllm:%b gauge\nvllm:%b{engine="0",model_name="chat"} 0.0\n' % (name, name)
    for name in (b"num_requests_running", b"num_requests_waiting", b"kv_cache_usage_perc")
)
_SERVER_INFO = b'{"model_path":"chat","tokenizer_path":"chat","served_model_name":"chat","version":"0"}'
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_LAST = b"0\r\n\r\n"


def _answer(body: bytes, kind: bytes = b"application/json") -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (kind, len(body), body)


def _piece(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_WHOLE_ANSWER = _answer(_WHOLE)
_OTHERS = {
    b"/v1/models": _answer(_MODELS),
    b"/metrics": _answer(_METRICS, b"text/plain; version=0.0.4; charset=utf-8"),
    b"/server_info": _answer(_SERVER_INFO),
}
_OK = _answer(b"{}")
_BARE_PIECE, _ASKED_PIECE = _piece(_CHUNK % b""), _piece(_CHUNK % _NULL)
_BARE_END, _ASKED_END = _piece(b"data: [DONE]\n\n") + _LAST, _piece(_USAGE) + _LAST


class Steps:
    """The clock of one engine; it stands while nobody has a stream."""

    def __init__(self) -> None:
        self._streams: set[Engine] = set()
        self._due = 0.0

    def add(self, stream: "Engine") -> None:
        """Give it a chunk with each step from the next one on."""
        self._streams.add(stream)
        if len(self._streams) == 1:
            self._due = time.monotonic()
            self._wait()

    def remove(self, stream: "Engine") -> None:
        """It is over; one that is not there is none."""
        self._streams.discard(stream)

    def _step(self) -> None:
        for stream in tuple(self._streams):
            stream.step()
        if self._streams:
            self._wait()

    def _wait(self) -> None:
        self._due += STEP_SECONDS
        asyncio.get_running_loop().call_later(max(0.0, self._due - time.monotonic()), self._step)


class Engine(asyncio.Protocol):
    """One connection."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._sent = 0
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast(asyncio.Transport, transport)  # listeners make stream transports only

    def connection_lost(self, exc: Exception | None) -> None:
        """It left."""
        self._steps.remove(self)

    def data_received(self, data: bytes) -> None:
        """Pieces of requests, one after the other."""
        if self._held:
            data = self._held + data
        end = data.find(b"\r\n\r\n")
        if end < 0 or not _is_whole(data, end + 4):
            self._held = data
            return
        self._held = b""
        if not data.startswith(b"POST /v1/"):
            self._transport.write(_OTHERS.get(data[4 : data.find(b" ", 4)].partition(b"?")[0], _OK))
        elif b'"stream":true' in data or b'"stream": true' in data:
            is_asked = b'"include_usage":true' in data or b'"include_usage": true' in data
            self._transport.write(_HEAD)
            self._piece, self._last = (_ASKED_PIECE, _ASKED_END) if is_asked else (_BARE_PIECE, _BARE_END)
            self._sent = 0
            self._steps.add(self)
        else:
            self._transport.write(_WHOLE_ANSWER)

    def step(self) -> None:
        """Write the next chunk, or the end."""
        if self._sent == CHUNKS:
            self._steps.remove(self)
            self._transport.write(self._last)
        else:
            self._sent += 1
            self._transport.write(self.next_piece())

    def next_piece(self) -> bytes:
        """One chunk as it goes on the wire."""
        return self._piece


def _is_whole(data: bytes, body: int) -> bool:
    head = data[:body].lower()
    at = head.find(b"content-length:")
    if at >= 0:
        return len(data) - body >= int(head[at + 15 : head.index(b"\r", at)])
    return b"transfer-encoding" not in head or data.endswith(_LAST)


async def serve(port: int, connection: type[Engine] = Engine) -> None:
    """Run until ended; the next port is another engine of the same process."""
    loop = asyncio.get_running_loop()
    servers = []
    for number in (port, port + 1):
        made = partial(connection, Steps())
        servers.append(await loop.create_server(made, "127.0.0.1", number, backlog=1024))
    print("ready", flush=True)
    await servers[0].serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
