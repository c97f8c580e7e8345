"""The engine of the benchmark of filtered streams: writes an invented text with planted values, token by token.

Run: ``python benchmarks/output_filter_engine.py PORT``. It is the engine of the gateway's benchmark with another text.
"""

import asyncio
import random
import sys

import uvloop
from gateway_engine import Engine, serve
from output_filter import chat, texts

_COUNT = 20_000


def _piece(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_PIECES = [_piece(chat(text)) for text in texts(_COUNT, random.Random(7))[0]]  # noqa: S311


class TextEngine(Engine):
    """One connection; each goes through the text from a place of its own."""

    _chance = random.Random(11)  # noqa: S311

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        super().connection_made(transport)
        self._at = self._chance.randrange(len(_PIECES))

    def next_piece(self) -> bytes:
        """The text goes on."""
        self._at = (self._at + 1) % len(_PIECES)
        return _PIECES[self._at]


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), TextEngine))
