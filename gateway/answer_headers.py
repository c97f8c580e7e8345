"""What an answer's headers say about its body."""

from gateway.exchange import Headers

ABOUT_BYTES = ("etag", "digest", "repr-digest", "content-digest", "content-md5")
"""They speak of the very bytes that the engine sent, and are wrong for an answer that was filtered."""
_EVENT_STREAM = "text/event-stream"


def is_encoded(headers: Headers) -> bool:
    """Whether the body has to be decoded before it can be read."""
    return any(name == "content-encoding" and value.strip().lower() != "identity" for name, value in headers)


def is_event_stream(headers: Headers) -> bool:
    """Whether the body is a stream of events."""
    return any(
        name == "content-type" and value.partition(";")[0].strip().lower() == _EVENT_STREAM for name, value in headers
    )


def without_bytes(headers: Headers) -> Headers:
    """The headers of an answer whose bytes are not the engine's any more."""
    return tuple(header for header in headers if header[0] not in ABOUT_BYTES)
