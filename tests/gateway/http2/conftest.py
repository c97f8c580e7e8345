"""A client's side of HTTP/2 in bytes, and a user of streams that writes down what it is told."""

import struct
from dataclasses import dataclass, field

import hpack
import pytest

from gateway.http2 import frames
from gateway.http2.connection import Connection
from gateway.http2.limits import Limits

CALL = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/test.Echo/Both"),
    (b":authority", b"gateway"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
)


class Client:
    """Writes frames as a client does."""

    def __init__(self):
        self.encoder = hpack.Encoder()

    def start(self, *settings):
        return frames.PREFACE + frames.settings(settings)

    def headers(self, stream_id, fields=CALL, *, ends=False):
        flags = frames.END_HEADERS | (frames.END_STREAM if ends else 0)
        return frames.frame(frames.HEADERS, flags, stream_id, self.encoder.encode(fields))

    def data(self, stream_id, data=b"", *, ends=False, padding=None):
        flags = frames.END_STREAM if ends else 0
        if padding is not None:
            flags |= frames.PADDED
            data = bytes((padding,)) + data + bytes(padding)
        return frames.frame(frames.DATA, flags, stream_id, data)

    def message(self, stream_id, message, *, ends=False):
        return self.data(stream_id, struct.pack(">BI", 0, len(message)) + message, ends=ends)


@dataclass
class Recorder:
    """Writes down each event; gives bytes back at once unless told otherwise."""

    consumes: bool = True
    events: list = field(default_factory=list)
    streams: dict = field(default_factory=dict)

    def open(self, stream, headers):
        self.streams[stream.id] = stream
        self.events.append((stream.id, "opened", headers))
        return _User(self, stream)

    def of(self, stream_id):
        return [event[1:] for event in self.events if event[0] == stream_id]


class _User:
    def __init__(self, recorder, stream):
        self.recorder, self.stream = recorder, stream

    def note(self, *event):
        self.recorder.events.append((self.stream.id, *event))

    def data(self, data):
        self.note("data", data)
        if self.recorder.consumes:
            self.stream.consume(len(data))

    def ended(self):
        self.note("ended")

    def writable(self):
        self.note("writable")

    def closed(self):
        self.note("closed")


def parsed(data):
    """The frames in what a server sent: (kind, flags, stream, payload)."""
    found = []
    while data:
        size = int.from_bytes(data[:3], "big")
        found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + size]))
        data = data[9 + size :]
    return found


class Server:
    """A connection under test, with what it sent."""

    def __init__(self, limits=None, recorder=None):
        self.recorder = recorder or Recorder()
        self.connection = Connection(self.recorder.open, limits or Limits(), lambda: None)
        self.connection.start()
        self.now = 0.0

    def receive(self, *data):
        for piece in data:
            self.connection.receive(piece, self.now)
        return self

    def sent(self):
        return parsed(self.connection.outlet.take())

    @property
    def fault(self):
        fault = self.connection.fault
        return None if fault is None else fault.code


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def make_client():
    return Client


@pytest.fixture
def make_server():
    return Server


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def recorder():
    return Recorder


@pytest.fixture
def frames_in():
    return parsed


@pytest.fixture
def call_fields():
    return CALL
