"""Budgets that the workers of one gateway share, kept by the process that watches them; see `budget_store`."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from gateway.atomic_file import PRIVATE, write_atomically
from gateway.budget_store import Kind, MemoryBudgets, Wish
from gateway.lease_store import Joined, StoreLostError
from gateway.token_lease import Share

MAX_FRAME_BYTES = 4 * 1024 * 1024
PATIENCE_SECONDS = 1.0
_LENGTH_BYTES = 4
_NOTES = b"notes"
"""The first frame of a connection for routing notes; of others it is one of wishes, a list."""
_EPOCH = "hub"
"""Workers end with the process that has this memory, so there is never another one."""
_Words = tuple[str, str, int, str, int, int, int, int, int, int]
_wishes = msgspec.msgpack.Decoder(list[_Words])
_grants = msgspec.msgpack.Decoder(list[int])
_kept = msgspec.json.Decoder(dict[str, int])


class Hub:
    """The store, and the file by which charges of a day or month outlive a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._budgets = MemoryBudgets()
        self._saved: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: set[asyncio.StreamWriter] = set()

    def load(self) -> None:
        """Go on from what was kept; raises OSError, and ValueError for a file that is none of ours."""
        with contextlib.suppress(FileNotFoundError):
            self._saved = _kept.decode(self._path.read_bytes())
            self._budgets.restore(self._saved, time.time())

    def save(self) -> None:
        """Keep what changed; raises OSError."""
        taken = self._budgets.taken()
        if taken != self._saved:
            write_atomically(self._path, msgspec.json.encode(taken), mode=PRIVATE)
            self._saved = taken

    async def listen(self, path: Path) -> asyncio.Server:
        """Serve workers on a Unix socket."""
        return await asyncio.start_unix_server(self._begin, str(path))

    async def close(self) -> None:
        """End every connection."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await _read(reader)
            if first == _NOTES:
                await self._pass_on(reader, writer)
            while True:
                wishes = _wishes.decode(first or await _read(reader))
                first = b""
                now = time.time()
                answers = [self._budgets.take(Wish(words[0], Kind(words[1]), *words[2:]), now) for words in wishes]
                _write(writer, answers)
                await writer.drain()
        except (OSError, EOFError, msgspec.DecodeError, ValueError):
            return
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bring what one worker tells to the others; one that does not read loses its connection."""
        self._listeners.add(writer)
        try:
            while True:
                message = await _read(reader)
                for other in tuple(self._listeners - {writer}):
                    if other.transport.get_write_buffer_size() > MAX_FRAME_BYTES:
                        other.transport.abort()
                    else:
                        _frame(other, message)
        finally:
            self._listeners.discard(writer)


class HubStore:
    """The hub, as one worker sees it."""

    def __init__(self, path: Path, share: Share) -> None:
        self._path = path
        self._share = share
        self._one_at_a_time = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def join(self) -> Joined:
        """It knows its workers."""
        return Joined(_EPOCH, math.inf, self._share)

    async def take(self, wishes: Sequence[Wish], epoch: str) -> Sequence[int | None]:
        """All wishes in one round."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._one_at_a_time:
                reader, writer = self._streams or await asyncio.open_unix_connection(str(self._path))
                self._streams = None  # until its answer came: half an answer must not be taken for the next
                try:
                    _write(writer, [(wish.key, wish.kind.value, *wish[2:]) for wish in wishes])
                    await writer.drain()
                    granted = _grants.decode(await _read(reader))
                except BaseException:
                    writer.close()
                    raise
                self._streams = reader, writer
                return granted
        except (OSError, EOFError, TimeoutError, msgspec.DecodeError) as error:
            raise StoreLostError(f"the process that watches the workers is lost: {type(error).__name__}") from None

    async def leave(self) -> None:
        """Close what is open."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class HubNotes:
    """Messages to the other workers, by the hub."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, message: bytes) -> None:
        """To whoever listens now."""
        writer = self._writer
        if writer is None or writer.is_closing() or writer.transport.get_write_buffer_size() > MAX_FRAME_BYTES:
            raise StoreLostError("the process that watches the workers is lost")
        _frame(writer, message)

    async def messages(self) -> AsyncIterator[bytes]:
        """What the others say, as long as the connection holds."""
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._path))
            _frame(writer, _NOTES)
            self._writer = writer
            while True:
                yield await _read(reader)
        except (OSError, EOFError) as error:
            raise StoreLostError(f"the process that watches the workers is lost: {type(error).__name__}") from None
        finally:
            self._writer = None
            if writer is not None:
                writer.close()

    async def close(self) -> None:
        """The loop that listens closes what is open."""


async def _read(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
    if size > MAX_FRAME_BYTES:
        raise EOFError
    return await reader.readexactly(size)


def _write(writer: asyncio.StreamWriter, message: object) -> None:
    _frame(writer, msgspec.msgpack.encode(message))


def _frame(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
