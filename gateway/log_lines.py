"""Structured lines on stderr; one that can't be written is lost, and stops nothing."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO, cast


def configure() -> None:
    """Send every event to stderr as JSON."""
    with _absent("rich"):  # else it is loaded for tracebacks in colours, which cost a tenth of a start and 6 MB
        import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Unfailing(sys.stderr))),
    )


@contextlib.contextmanager
def _absent(package: str) -> Iterator[None]:
    """What is loaded meanwhile finds no such package; one that is there already stays."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]


class _Unfailing:
    """A stream on which a full disk costs the line, never the request or the loop that the line is about."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write past the stream's own buffer, which would keep a line that can't be written and fail at the exit."""
        with contextlib.suppress(OSError, ValueError):
            self._write(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def _write(self, text: str) -> None:
        try:
            descriptor = self._stream.fileno()
        except io.UnsupportedOperation:
            self._stream.write(text)
        else:
            os.write(descriptor, text.encode("utf-8", "backslashreplace"))
