"""Reads traces of requests (JSON lines, also gzip) line by line, whatever their length."""

import gzip
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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
    block_ids: int
    """How many ids of blocks all prompts have together."""
    odd_prompts: int
    """Prompts with more or fewer ids than blocks of the assumed size."""

    @property
    def duration_seconds(self) -> float:
        """From the first request to the last."""
        return self.last_seconds - self.first_seconds


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace file; it is read anew each time, so that its length is no matter of memory."""

    path: Path
    name: str = ""
    """What messages call it."""

    def __str__(self) -> str:
        return self.name or str(self.path)

    def requests(self) -> Iterator[TracedRequest]:
        """Every request in the order of the file."""
        for number, line in enumerate(self._lines(), start=1):
            if not line.isspace():
                yield _request(line, f"{self}: line {number}")

    def in_order(self, summary: TraceSummary) -> Iterator[TracedRequest]:
        """Every request in the order of arrival; only a file that is out of order has to be held in memory."""
        if summary.is_sorted:
            return self.requests()
        return iter(sorted(self.requests(), key=lambda request: request.at_seconds))

    def summary(self, block_tokens: int) -> TraceSummary:
        """Read the whole trace once."""
        count = tokens = ids = odd = 0
        first = last = previous = 0.0
        is_sorted = True
        for request in self.requests():
            at, blocks = request.at_seconds, len(request.blocks)
            first, last = (at, at) if count == 0 else (min(first, at), max(last, at))
            is_sorted = is_sorted and (count == 0 or at >= previous)
            previous = at
            count += 1
            tokens += request.input_tokens
            ids += blocks
            odd += not (request.input_tokens - 1) // block_tokens <= blocks <= -(-request.input_tokens // block_tokens)
        if tokens == 0:
            raise TraceError(f"{self} holds no {'prompt tokens' if count else 'requests'}")
        return TraceSummary(count, tokens, first, last, is_sorted, ids, odd)

    def _lines(self) -> Iterator[bytes]:
        try:
            with self._open() as stream:
                while line := stream.readline(MAX_LINE_BYTES + 1):
                    if len(line) > MAX_LINE_BYTES:
                        raise TraceError(f"{self}: a line is longer than {MAX_LINE_BYTES} bytes; no trace has such")
                    yield line
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise TraceError(f"{self} is no whole gzip file: {error}") from error
        except OSError as error:
            raise TraceError(f"{self} can't be read: {error.strerror or error}") from error

    def _open(self) -> gzip.GzipFile | BinaryIO:
        with self.path.open("rb") as stream:
            is_gzip = stream.read(len(_GZIP)) == _GZIP
        return gzip.GzipFile(self.path) if is_gzip else self.path.open("rb")


@contextmanager
def trace_at(path: Path) -> Iterator[Trace]:
    """A trace to be read more than once: what comes through a pipe is kept in a temporary file meanwhile."""
    if path.is_dir():
        raise TraceError(f"{path} is a folder; give a file of JSON lines")
    if path.is_file() or not path.exists():
        yield Trace(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "trace"
        try:
            with path.open("rb") as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise TraceError(f"{path} can't be read: {error.strerror or error}") from error
        yield Trace(copy, name=str(path))


def _document(line: bytes, where: str) -> Mapping[str, object]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise TraceError(f"{where} is no JSON: {reason}") from error
    if not isinstance(document, dict):
        raise TraceError(f"{where} must be an object with timestamp, input_length, output_length and hash_ids")
    return document


def _request(line: bytes, where: str) -> TracedRequest:
    document = _document(line, where)
    return TracedRequest(
        _milliseconds(document, where) / _MILLISECONDS,
        _whole(document, "input_length", where),
        _whole(document, "output_length", where),
        _blocks(document, where),
    )


def _milliseconds(document: Mapping[str, object], where: str) -> float:
    value = document.get("timestamp")
    # Comparing also leaves out NaN and infinity.
    if not isinstance(value, int | float) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
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
