"""How much one connection may ask of this process."""

from dataclasses import dataclass

_KIB = 1024
_MIB = 1024 * _KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """The defaults fit a proxy on the same host that sends a stream for each request of a client."""

    max_streams: int = 4096
    max_frame_bytes: int = 64 * _KIB
    max_header_block_bytes: int = 32 * _KIB
    """Of one request, as sent."""
    max_header_list_bytes: int = 64 * _KIB
    """Of one request, unpacked, with 32 bytes for each field."""
    stream_window_bytes: int = 256 * _KIB
    """What a peer may send on a stream before it is taken."""
    connection_window_bytes: int = 16 * _MIB
    """What a peer may send on all streams before it is taken: the bound of what is kept."""
    max_message_bytes: int = 9 * _MIB
    """One gRPC message: a request's body of 8 MiB and what stands around it."""
    max_unsent_bytes: int = 18 * _MIB
    """What one stream may keep for a peer that gives it no window."""
    resets: int = 4096
    """Streams that may be reset at once before they are answered: as many as can be open. What is answered may be reset
    at any rate: proxies end calls so of which they need no more."""
    resets_per_second: float = 500.0
    control_frames: int = 10_000
    """Frames at once that carry nothing: SETTINGS, PING, PRIORITY, unknown ones, empty DATA and CONTINUATION."""
    control_frames_per_second: float = 1_000.0
    late_frames: int = 18
    """What each stream may send after its end, under way since before, without counting among them: a window in the
    frames that a large body is cut into, its end, a reset."""


class Budget:
    """A bucket of tokens for what a peer may do, but not without end."""

    __slots__ = ("_at", "_left", "_per_second", "_size")

    def __init__(self, size: int, per_second: float) -> None:
        self._size = float(size)
        self._per_second = per_second
        self._left = self._size
        self._at: float | None = None

    def spend(self, now: float) -> bool:
        """Take one; whether there was one."""
        if self._at is not None:
            self._left = min(self._size, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
