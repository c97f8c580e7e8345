"""A streamed chat as its reader sees it: chunks, the time of the first one, the usage, the end mark."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

DATA = "data:"
DONE = "[DONE]"


class StreamCut(Exception):
    """The stream ended without its end mark."""


class ChatStream:
    """Reads the events of one chat, one after the other; its figures grow while it is read."""

    def __init__(
        self, lines: Iterable[str], *, begin: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lines = iter(lines)
        self._begin = begin
        """When the request was sent."""
        self._clock = clock
        self.ttft_seconds: float | None = None
        """Seconds to the first text; ``None`` = none came yet."""
        self.chunks = 0
        self.text = ""
        self.usage: dict[str, Any] | None = None
        """``None`` = the engine sent none yet."""
        self.fingerprint = ""
        self.is_complete = False

    def read(self) -> Iterator[int]:
        """Read on; gives the number of text chunks after each event.

        Raises:
            StreamCut: it ended before its end mark.
        """
        try:
            for line in self._lines:
                if self._take(line):
                    self.is_complete = True
                    return
                yield self.chunks
        except ConnectionError as error:
            raise StreamCut(f"the stream was cut after {self.chunks} chunks: {error}") from None
        raise StreamCut(f"the stream ended after {self.chunks} chunks without its end mark")

    def finish(self) -> "ChatStream":
        """Read to the end; raises `StreamCut`."""
        for _ in self.read():
            pass
        return self

    def _take(self, line: str) -> bool:
        """Whether this line is the end mark."""
        if not line.startswith(DATA):  # comments keep a slow stream open, empty lines end an event
            return False
        payload = line.removeprefix(DATA).strip()
        if payload == DONE:
            return True
        event = self._event(payload)
        if "error" in event:
            raise StreamCut(f"the engine ended the stream after {self.chunks} chunks: {event['error']}")
        self.fingerprint = event.get("system_fingerprint") or self.fingerprint
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices", ()):
            piece = (choice.get("delta") or {}).get("content")
            if piece:
                self.chunks += 1
                self.text += piece
                self.ttft_seconds = self.ttft_seconds or self._clock() - self._begin
        return False

    def _event(self, payload: str) -> dict[str, Any]:
        try:
            event = json.loads(payload)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise StreamCut(f"after {self.chunks} chunks came an event that is no JSON object")
        return event
