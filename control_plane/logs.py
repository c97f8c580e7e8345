"""Structured logs on stderr, one JSON object a line; event names are constants. Never a token, key or prompt."""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from typing import Any, TextIO, cast


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


with _absent("rich"):  # else it is loaded for tracebacks in colours, which nobody sees in JSON
    import structlog

SERVER_STARTED = "server.started"
SERVER_STOPPED = "server.stopped"
REQUEST_DONE = "request.done"
REQUEST_FAILED = "request.failed"
FEED_READ = "feed.read"
FEED_LOST = "feed.lost"
FEED_BACK = "feed.back"
RECORD_QUARANTINED = "record.quarantined"
REVIEW_DONE = "review.done"
LOOP_FAILED = "loop.failed"
REPLICA_STARTED = "replica.started"
REPLICA_ENDED = "replica.ended"
REPLICA_DIED = "replica.died"
RECORD_NOT_KEPT = "replica.record_not_kept"
TOKEN_CREATED = "token.created"
HOSTED_LEFT_OUT = "route.hosted_left_out"

_SECRET_KEYS = frozenset({"token", "secret", "authorization", "key", "password"})


def configure(level: int = logging.INFO) -> None:
    """Send structlog's events and those of the standard library to stderr as JSON."""
    stream = cast(TextIO, _Unfailing(sys.stderr))
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_secrets,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)


class _Unfailing:
    """A stream for lines that nobody waits for: a full disk costs the line, never what the line is about."""

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


def get() -> structlog.typing.FilteringBoundLogger:
    """The room's logger."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger("control_plane")
    return logger


def _without_secrets(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in _SECRET_KEYS & event.keys():
        event[name] = "[removed]"
    return event
