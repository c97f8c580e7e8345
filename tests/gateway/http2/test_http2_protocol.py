"""The asyncio side on a fake transport: no bytes raise, and everything ends with the connection."""

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.access_log_service import METHOD as LOG
from gateway.access_log_service import AccessLogReceiver
from gateway.ext_proc import METHOD, ExternalProcessor
from gateway.grpc_health import health_methods
from gateway.http2 import frames
from gateway.http2.grpc_server import grpc_server


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written, self.closing, self.reading = b"", False, True

    def write(self, data):
        assert not self.closing
        self.written += data

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    abort = close

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


def service(failures):
    loop = asyncio.get_running_loop()
    processor = ExternalProcessor(clock=loop.time, call_later=loop.call_later)
    log = AccessLogReceiver(failures.append, namespaces=[], on_failure=lambda: None)
    methods = {METHOD: processor.open, LOG: log.open, **health_methods({"liveness": lambda: True})}
    return grpc_server(methods, clock=loop.time, on_failure=lambda: failures.append("failed"))


async def talk(pieces):
    """A connection that gets these bytes and is lost."""
    failures = []
    server, transport = service(failures), Transport()
    connection = server.connection()
    connection.connection_made(transport)
    for piece in pieces:
        if transport.closing:
            break
        connection.data_received(piece)
        await asyncio.sleep(0)
    connection.connection_lost(None)
    connection.data_received(b"late")
    await asyncio.sleep(0)
    assert connection.closed.done()
    assert not server.connections
    assert len(asyncio.all_tasks()) == 1
    assert failures == []
    return transport.written


PATHS = st.sampled_from([METHOD, LOG, "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/other"])
ANY_DATA = st.binary(max_size=60) | st.builds(lambda b: bytes((0, 0, 0, 0, len(b))) + b, st.binary(max_size=60))
NOISE = st.builds(frames.frame, st.integers(0, 10), st.integers(0, 63), st.sampled_from([0, 1, 3]), ANY_DATA)


@given(path=PATHS, noise=st.lists(NOISE, max_size=8), cut=st.integers(0, 400))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_raise_and_nothing_is_left(make_client, call_fields, path, noise, cut):
    client = make_client()
    fields = [*call_fields[:2], (b":path", path.encode()), *call_fields[3:]]
    stream = client.start() + client.headers(1, fields) + b"".join(noise)
    asyncio.run(talk([stream[:cut], stream[cut:]] if cut else [stream]))


def test_what_is_sent_in_one_turn_is_written_at_once(client, frames_in):
    written = asyncio.run(talk([client.start() + frames.frame(frames.PING, 0, 0, bytes(8))]))
    kinds = [kind for kind, *_ in frames_in(written)]
    assert kinds == [frames.SETTINGS, frames.WINDOW_UPDATE, frames.SETTINGS, frames.PING]


def test_reading_stops_while_the_peer_takes_nothing():
    async def paused():
        connection, transport = service([]).connection(), Transport()
        connection.connection_made(transport)
        connection.pause_writing()
        stopped = not transport.reading
        connection.resume_writing()
        connection.connection_lost(None)
        return stopped, transport.reading

    assert asyncio.run(paused()) == (True, True)
