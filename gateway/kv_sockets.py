"""The ZeroMQ sockets over which engines publish their KV events, bounded in what they hold."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # loaded with the first engine that publishes something
    import zmq.asyncio

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""A prompt of a million tokens has about half of that."""
MOST_WAITING = 256
"""Messages that wait for this gateway; more are dropped, which their numbers tell."""
REPLAY_SECONDS = 2.0
"""How long an engine may take to the next message that was missed."""
_TCP = "tcp://"
_LAST_PORT = 65535
_LAST = (-1).to_bytes(8, "big", signed=True)
"""In the place of a number: these were all."""
_OPTIONS = {
    "LINGER": 0,
    "MAXMSGSIZE": MAX_MESSAGE_BYTES,
    "RCVHWM": MOST_WAITING,
    "RECONNECT_IVL": 100,
    "RECONNECT_IVL_MAX": 2_000,
    "HEARTBEAT_IVL": 5_000,
    "HEARTBEAT_TIMEOUT": 15_000,
    "IPV6": 1,
}


class KvMessage(NamedTuple):
    """One message with its number; what it holds is not shown."""

    sequence: int
    payload: bytes

    def __repr__(self) -> str:
        return f"KvMessage({self.sequence})"


Messages = AsyncGenerator[KvMessage, None]


class Publisher(NamedTuple):
    """Where an engine publishes."""

    events: str
    replay: str
    """Where it can be asked for what it has published before; empty = nowhere."""

    @classmethod
    def of(cls, template: str, address: str, rank: int = 0) -> "Publisher":
        """The publisher of one data-parallel rank of the engine at ``ip:port``, by the template of its arm."""
        host, _, port = address.rpartition(":")
        events, _, replay = template.replace("{host}", host).replace("{port}", port).partition(",")
        return cls(_of_rank(events, rank), _of_rank(replay, rank))

    @property
    def is_a_place(self) -> bool:
        """Whether there can be such ports."""
        ports = [int(item.rpartition(":")[2]) for item in self if item.startswith(_TCP)]
        return all(1 <= port <= _LAST_PORT for port in ports)


def _of_rank(address: str, rank: int) -> str:
    """Engines put each rank's publisher at the next port; other addresses have no room for ranks."""
    if not rank or not address.startswith(_TCP):
        return address
    before, _, port = address.rpartition(":")
    return f"{before}:{int(port) + rank}"


def new_context() -> "zmq.asyncio.Context":
    """What the sockets of one event loop share; it has a thread of its own."""
    import zmq.asyncio

    return zmq.asyncio.Context()


def subscribe(context: "zmq.asyncio.Context", publisher: Publisher) -> "zmq.asyncio.Socket":
    """A socket that gets what an engine publishes from now on; lost connections are made anew."""
    import zmq

    socket = _socket(context, zmq.SUB, publisher.events)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    return socket


async def messages(socket: "zmq.asyncio.Socket") -> Messages:
    """What comes over a subscription, without an end."""
    while True:
        message = _message(await socket.recv_multipart())
        if message is not None:
            yield message
        await asyncio.sleep(0)  # a socket with messages never waits, and others have to go on


async def missed_messages(context: "zmq.asyncio.Context", publisher: Publisher, first: int) -> Messages:
    """What an engine has published before, from a number on, as far as it keeps it.

    Raises:
        TimeoutError: it does not answer.
    """
    import zmq

    with _socket(context, zmq.DEALER, publisher.replay) as socket:
        await socket.send_multipart([b"", first.to_bytes(8, "big")])
        while True:
            async with asyncio.timeout(REPLAY_SECONDS):
                frames = await socket.recv_multipart()
            if len(frames) >= 2 and frames[-2] == _LAST:
                return
            message = _message(frames)
            if message is not None:
                yield message
            await asyncio.sleep(0)


def _socket(context: "zmq.asyncio.Context", kind: int, address: str) -> "zmq.asyncio.Socket":
    import zmq

    socket = context.socket(kind)
    for option, value in _OPTIONS.items():
        socket.setsockopt(getattr(zmq, option), value)
    socket.connect(address)
    return socket


def _message(frames: list[bytes]) -> KvMessage | None:
    """A message is named by topics, which differ; its number and what it says come last."""
    if len(frames) < 2 or len(frames[-2]) != 8 or frames[-2] == _LAST:
        return None
    return KvMessage(int.from_bytes(frames[-2], "big"), frames[-1])
