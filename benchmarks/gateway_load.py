"""Load for the gateway's benchmark: requests at random moments, and streams side by side; figures as JSON on stdout.

Run: ``python benchmarks/gateway_load.py latency|streams JSON`` with the arguments as one JSON object.
"""

import asyncio
import json
import random
import sys
import time

import uvloop

_LAST = b"0\r\n\r\n"
_WARM_REQUESTS = 20


class Connection(asyncio.Protocol):
    """Sends requests one after the other and knows when an answer is whole."""

    def __init__(self) -> None:
        self.chunks = 0
        self._tail = b""
        self._left: int | None = None
        self._status = b""
        self._is_chunked = False
        self._answered: asyncio.Future[bool] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, which fails what waits."""
        self._finish(is_good=False)

    def ask(self, request: bytes) -> "asyncio.Future[bool]":
        """Send one request; the future says whether the answer was 200 and whole."""
        self._tail, self._left, self._is_chunked = b"", None, False
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        """Pieces of an answer."""
        if self._left is None and not self._is_chunked:
            data = self._tail + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._tail = data
                return
            head, data = data[:end].lower(), data[end + 4 :]
            self._tail, self._status = b"", head[9:12]
            self._is_chunked = b"transfer-encoding: chunked" in head
            if not self._is_chunked:
                self._left = int(head.partition(b"content-length:")[2].split()[0])
        if self._is_chunked:
            self.chunks += data.count(b"data: ")
            self._tail = (self._tail + data)[-len(_LAST) :]
            if self._tail == _LAST:
                self._finish(is_good=self._status == b"200")
        elif self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                self._finish(is_good=self._status == b"200")

    def _finish(self, *, is_good: bool) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(is_good)


class Target:
    """One address, and connections to it that are used again."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port = port
        self._request = request
        self._idle: list[Connection] = []
        self.seconds: list[float] = []
        self.failed = 0

    async def ask(self, due: float, *, is_counted: bool = True) -> None:
        """One request that was due at a moment; late sending counts as waiting."""
        if self._idle:
            connection = self._idle.pop()
        else:
            _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", self._port)
        if not await connection.ask(self._request):
            self.failed += 1
            return
        if is_counted:
            self.seconds.append(time.perf_counter() - due)
        self._idle.append(connection)


async def latency(told: dict[str, object]) -> dict[str, object]:
    """Each target in turn, for a few seconds at a time, so that all see the same machine."""
    chance = random.Random(6)  # noqa: S311
    targets = {name: Target(port, body.encode()) for name, (port, body) in dict(told["targets"]).items()}
    for target in targets.values():
        for _ in range(_WARM_REQUESTS):
            await target.ask(time.perf_counter(), is_counted=False)
    for _ in range(int(told["rounds"])):
        for target in targets.values():
            await _poisson(target, chance, float(told["rate"]), float(told["seconds"]))
    return {name: {"seconds": sorted(t.seconds), "failed": t.failed} for name, t in targets.items()}


async def _poisson(target: Target, chance: random.Random, rate: float, seconds: float) -> None:
    due = time.perf_counter()
    end, asked = due + seconds, []
    while (due := due + chance.expovariate(rate)) < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asked.append(asyncio.ensure_future(target.ask(due)))
    await asyncio.gather(*asked)


async def streams(told: dict[str, object]) -> dict[str, object]:
    """Streams side by side for some seconds; each that began is read to its end.

    They begin one after the other within the first ``spread_seconds``, as clients come: of many that come at once a
    gateway that watches the queues of engines lets some wait.
    """
    port, request = int(told["port"]), str(told["request"]).encode()
    count, spread_seconds = int(told["connections"]), float(told["spread_seconds"])
    loop, end = asyncio.get_running_loop(), time.perf_counter() + float(told["seconds"])
    done = [0, 0, 0]

    async def one(number: int) -> None:
        await asyncio.sleep(spread_seconds * number / count)
        _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        while time.perf_counter() < end:
            done[0] += 1
            if not await connection.ask(request):
                done[2] += 1
                break
        done[1] += connection.chunks
        connection.transport.close()

    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    return {"streams": done[0], "chunks": done[1], "failed": done[2], "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    print(json.dumps(uvloop.run({"latency": latency, "streams": streams}[sys.argv[1]](json.loads(sys.argv[2])))))
