"""Reads traces of requests (JSON lines, also gzip) line by line, whatever their length."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MAX_LINE_BYTES = 64 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_LARGEST = 2**53
_MILLISECONDS = 1000.0


class TraceError(Exception):
    """A trace that can't be read; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """One request of a trace."""

    at_seconds: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]
    """Chained ids of the blocks of the prompt; the last may be partial."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What must be known of a whole trace before it is replayed."""

    requests: int
    input_tokens: int
    first_seconds: float
    last_seconds: float
    is_sorted: bool
    widest_block_tokens: float
    """The most tokens that one block of a prompt must have held."""

    @property
    def duration_seconds(self) -> float:
        """From the first request to the last."""
        return self.last_seconds - self.first_seconds


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace file; it is read anew each time, so that its length is no matter of memory."""

    path: Path

    def requests(self) -> Iterator[TracedRequest]:
        """Every request in the order of the file."""
        for number, line in enumerate(self._lines(), start=1):
            if not line.isspace():
                yield _request(_document(line, f"{self.path}: line {number}"), f"{self.path}: line {number}")

    def in_order(self, summary: TraceSummary) -> Iterator[TracedRequest]:
        """Every request in the order of arrival; only a file that is out of order has to be held in memory."""
        if summary.is_sorted:
            return self.requests()
        return iter(sorted(self.requests(), key=lambda request: request.at_seconds))

    def summary(self) -> TraceSummary:
        """Read the whole trace once."""
        count = tokens = 0
        first = last = previous = 0.0
        is_sorted, widest = True, 0.0
        for request in self.requests():
            at = request.at_seconds
            first, last = (at, at) if count == 0 else (min(first, at), max(last, at))
            is_sorted = is_sorted and (count == 0 or at >= previous)
            previous = at
            count += 1
            tokens += request.input_tokens
            widest = max(widest, request.input_tokens / len(request.blocks) if request.blocks else 0.0)
        if tokens == 0:
            raise TraceError(f"{self.path} holds no {'prompt tokens' if count else 'requests'}")
        return TraceSummary(count, tokens, first, last, is_sorted, widest)

    def _lines(self) -> Iterator[bytes]:
        try:
            with self._open() as stream:
                while line := stream.readline(MAX_LINE_BYTES + 1):
                    if len(line) > MAX_LINE_BYTES:
                        raise TraceError(
                            f"{self.path}: a line is longer than {MAX_LINE_BYTES} bytes; no trace has such"
                        )
                    yield line
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise TraceError(f"{self.path} is no whole gzip file: {error}") from error
        except OSError as error:
            raise TraceError(f"{self.path} can't be read: {error.strerror or error}") from error

    def _open(self) -> IO[bytes]:
        with self.path.open("rb") as stream:
            is_gzip = stream.read(len(_GZIP)) == _GZIP
        return gzip.open(self.path, "rb") if is_gzip else self.path.open("rb")


def _document(line: bytes, where: str) -> Mapping[str, object]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise TraceError(f"{where} is no JSON: {reason}") from error
    if not isinstance(document, dict):
        raise TraceError(f"{where} must be an object with timestamp, input_length, output_length and hash_ids")
    return document


def _request(document: Mapping[str, object], where: str) -> TracedRequest:
    return TracedRequest(
        _milliseconds(document, where) / _MILLISECONDS,
        _whole(document, "input_length", where),
        _whole(document, "output_length", where),
        _blocks(document, where),
    )


def _milliseconds(document: Mapping[str, object], where: str) -> float:
    value = document.get("timestamp")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or abs(value) > _LARGEST:
        raise TraceError(f"{where}: timestamp must be a number of milliseconds, not {_shown(document, 'timestamp')}")
    return float(value)


def _whole(document: Mapping[str, object], name: str, where: str) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise TraceError(f"{where}: {name} must be a whole number of tokens, not {_shown(document, name)}")
    return value


def _blocks(document: Mapping[str, object], where: str) -> tuple[int, ...]:
    value = document.get("hash_ids")
    if not isinstance(value, list) or not all(type(block) is int for block in value):
        raise TraceError(f"{where}: hash_ids must be a list of whole numbers, not {_shown(document, 'hash_ids')}")
    return tuple(value)


def _shown(document: Mapping[str, object], name: str) -> str:
    if name not in document:
        return "absent"
    text = json.dumps(document[name])
    return text if len(text) <= 40 else f"{text[:40]}..."
