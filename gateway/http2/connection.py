"""The server's side of one HTTP/2 connection: frames in, calls of streams' users, frames out. No I/O, no clock."""

from collections.abc import Callable

from gateway.http2 import frames, peer_settings
from gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from gateway.http2.frames import FrameReader
from gateway.http2.header_blocks import HeaderBlock, Headers, HeaderUnpacker, trailers_fault
from gateway.http2.limits import Budget, Limits
from gateway.http2.peer_settings import PeerSettings
from gateway.http2.streams import Inlet, Outlet, Stream, StreamUser

Opener = Callable[[Stream, Headers], StreamUser]
"""Takes a new stream with its first fields; it may answer at once, and must not raise."""

_DRAIN_PING = b"draining"
_PRIORITY_BYTES = 5


class Connection:
    """Reads what a client sends and keeps its streams; a broken rule ends a stream or the connection, never raises."""

    def __init__(self, opener: Opener, limits: Limits, wake: Callable[[], None]) -> None:
        self.outlet = Outlet(wake, limits.max_unsent_bytes)
        self.fault: ConnectionFault | None = None
        """Why the connection is over; ``None`` = it is not, or nobody is to blame."""
        self._opener = opener
        self._limits = limits
        self._reader = FrameReader(self._take, limits.max_frame_bytes)
        self._unpacker = HeaderUnpacker(limits.max_header_list_bytes)
        self._inlet = Inlet(0, self.outlet, limits.connection_window_bytes)
        self._peer = PeerSettings()
        self._resets = Budget(limits.resets, limits.resets_per_second)
        self._controls = Budget(limits.control_frames, limits.control_frames_per_second)
        self._late_frames = 0
        """That may still come on streams that are over."""
        self._last_id = 0
        self._has_settings = False
        self._is_draining = False
        self._now = 0.0
        self._block: HeaderBlock | None = None
        self._on_kind = {
            frames.DATA: self._on_data,
            frames.HEADERS: self._on_headers,
            frames.PRIORITY: self._on_priority,
            frames.RST_STREAM: self._on_rst_stream,
            frames.SETTINGS: self._on_settings,
            frames.PUSH_PROMISE: self._on_push_promise,
            frames.PING: self._on_ping,
            frames.GOAWAY: self._on_goaway,
            frames.WINDOW_UPDATE: self._on_window_update,
        }

    @property
    def is_started(self) -> bool:
        """The peer has shown that it speaks HTTP/2."""
        return self._has_settings

    @property
    def is_over(self) -> bool:
        """Nothing more will come of it: everything is answered or it has failed."""
        return self.outlet.is_shut or (self._is_draining and not self.outlet.streams)

    def start(self) -> None:
        """Say the own settings."""
        limits = self._limits
        stated = (
            (peer_settings.MAX_CONCURRENT_STREAMS, limits.max_streams),
            (peer_settings.INITIAL_WINDOW_SIZE, limits.stream_window_bytes),
            (peer_settings.MAX_FRAME_SIZE, limits.max_frame_bytes),
            (peer_settings.MAX_HEADER_LIST_SIZE, limits.max_header_list_bytes),
        )
        self.outlet.write(frames.settings(stated))
        if (more := limits.connection_window_bytes - frames.DEFAULT_WINDOW_BYTES) > 0:
            self.outlet.write(frames.window_update(0, more))

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes as they came."""
        if self.outlet.is_shut:
            return
        self._now = now
        try:
            self._reader.feed(data)
        except ConnectionFault as fault:
            self._fail(fault)

    def drain(self) -> None:
        """Ask the peer for no more streams; those that it has under way meanwhile are still taken."""
        self.outlet.write(frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR))
        self.outlet.write(frames.frame(frames.PING, 0, 0, _DRAIN_PING))

    def lose(self) -> None:
        """The peer is gone: every stream is over."""
        self.outlet.is_shut = True
        for stream in tuple(self.outlet.streams.values()):
            stream.close()

    def _fail(self, fault: ConnectionFault) -> None:
        self.fault = fault
        self.outlet.write(frames.goaway(self._last_id, fault.code, fault.reason))
        self.lose()

    def _take(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        try:
            if self._block is not None or kind == frames.CONTINUATION:
                self._on_continuation(kind, flags, stream_id, payload)
            elif self._has_settings or (kind == frames.SETTINGS and not flags & frames.ACK):
                self._on_kind.get(kind, self._on_unknown)(flags, stream_id, payload)
            else:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        except StreamFault as fault:
            self._spend_reset()
            if (stream := self.outlet.streams.get(fault.stream_id)) is not None:
                stream.reset(fault.code)
            else:
                self.outlet.write(frames.rst_stream(fault.stream_id, fault.code))

    # streams

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._inlet.window -= size
        if self._inlet.window < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more data than the window of the connection")
        data = frames.unpadded(flags, payload) if flags & frames.PADDED else payload
        if not data and not flags & frames.END_STREAM:
            self._spend_control()
        stream = self.outlet.streams.get(stream_id)
        if stream is None:
            self._inlet.consume(size)
            self._check_known(stream_id)
            self._spend_late()
            return
        if size:
            stream.receive(data, size)
        if flags & frames.END_STREAM and not stream.is_closed:
            stream.receive_end()

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id % 2:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client's stream has an odd number")
        block = frames.unpadded(flags, payload)
        if flags & frames.WITH_PRIORITY:
            if len(block) < _PRIORITY_BYTES:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS without the priority it promises")
            block = block[_PRIORITY_BYTES:]
        ends = bool(flags & frames.END_STREAM)
        if flags & frames.END_HEADERS:
            self._headers(stream_id, block, ends=ends)
        else:
            self._block = HeaderBlock(stream_id, self._limits.max_header_block_bytes, ends=ends)
            self._block.add(block)

    def _on_continuation(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None or kind != frames.CONTINUATION or stream_id != block.stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION must follow the HEADERS that it goes on with")
        if not payload:
            self._spend_control()
        block.add(payload)
        if flags & frames.END_HEADERS:
            self._block = None
            self._headers(stream_id, block.whole, ends=block.ends)

    def _headers(self, stream_id: int, block: bytes, *, ends: bool) -> None:
        if len(block) > self._limits.max_header_block_bytes:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block is too large")
        headers, fault = self._unpacker.unpack(block)
        stream = self.outlet.streams.get(stream_id)
        if stream is not None:
            self._trailers(stream, headers, ends=ends)
            return
        if stream_id <= self._last_id:
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, "HEADERS on a stream that is over")
        self._last_id = stream_id
        if self._is_draining or len(self.outlet.streams) >= self._limits.max_streams:
            raise StreamFault(stream_id, ErrorCode.REFUSED_STREAM, "too many streams, or none any more")
        if fault is not None:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, fault)
        self._open(stream_id, headers, ends=ends)

    def _open(self, stream_id: int, headers: Headers, *, ends: bool) -> None:
        self._late_frames = min(self._late_frames + self._limits.late_frames, self._limits.control_frames)
        own = Inlet(stream_id, self.outlet, self._limits.stream_window_bytes)
        stream = Stream(stream_id, self.outlet, self._inlet, own, self._peer.window_bytes)
        self.outlet.streams[stream_id] = stream
        user = self._opener(stream, headers)
        if stream.is_closed:
            user.closed()
            return
        stream.user = user
        if ends:
            stream.receive_end()

    def _trailers(self, stream: Stream, headers: Headers, *, ends: bool) -> None:
        fault = trailers_fault(headers) if ends else "a second header block does not end the stream"
        if fault:
            raise StreamFault(stream.id, ErrorCode.PROTOCOL_ERROR, fault)
        stream.receive_end()

    def _on_priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY without a stream")
        self._spend_control()
        if len(payload) != _PRIORITY_BYTES:
            raise StreamFault(stream_id, ErrorCode.FRAME_SIZE_ERROR, f"PRIORITY of {len(payload)} bytes")

    def _on_rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("RST_STREAM", payload, 4)
        stream = self.outlet.streams.get(stream_id)
        if stream is None:
            self._check_known(stream_id)
            self._spend_late()
            return
        if not stream.is_answered:
            self._spend_reset()
        stream.close()

    def _on_window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("WINDOW_UPDATE", payload, 4)
        count = int.from_bytes(payload, "big") & frames.MAX_WINDOW_BYTES
        stream = self.outlet.streams.get(stream_id)
        if stream_id and stream is None:
            self._check_known(stream_id)
        elif stream is None:
            if not count:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by 0")
            self.outlet.widen(count)
        elif not count:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by 0")
        else:
            stream.widen(count)

    # the connection

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        self._spend_control()
        if flags & frames.ACK:
            _check_size("SETTINGS with ACK", payload, 0)
            return
        self._has_settings = True
        before = self._peer.window_bytes
        self._peer.change(payload)
        self.outlet.frame_bytes = min(self._peer.frame_bytes, self._limits.max_frame_bytes)
        self.outlet.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        if more := self._peer.window_bytes - before:
            try:
                for stream in tuple(self.outlet.streams.values()):
                    stream.widen(more)
            except StreamFault as fault:
                raise ConnectionFault(fault.code, fault.reason) from None

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING on a stream")
        _check_size("PING", payload, 8)
        self._spend_control()
        if not flags & frames.ACK:
            self.outlet.write(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif payload == _DRAIN_PING and not self._is_draining:
            self._is_draining = True
            self.outlet.write(frames.goaway(self._last_id, ErrorCode.NO_ERROR))

    def _on_goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id or len(payload) < 8:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a GOAWAY that can't be read")
        self._spend_control()  # the client opens no more streams; those that are open go on

    def _on_push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client can't push")

    def _on_unknown(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._spend_control()

    def _check_known(self, stream_id: int) -> None:
        if not stream_id % 2 or stream_id > self._last_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame on a stream that was never opened")

    def _spend_late(self) -> None:
        if self._late_frames:
            self._late_frames -= 1
        else:
            self._spend_control()

    def _spend_control(self) -> None:
        if not self._controls.spend(self._now):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many frames that carry nothing")

    def _spend_reset(self) -> None:
        if not self._resets.spend(self._now):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many streams are reset")


def _check_size(what: str, payload: bytes, size: int) -> None:
    if len(payload) != size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{what} of {len(payload)} bytes instead of {size}")
