"""The messages of Envoy's external processing: what comes in as typed values, what goes out as bytes."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from google.protobuf.message import DecodeError

from gateway.http2.message_types import message_types

TYPES = message_types(
    "gateway.ext_proc",
    """
    message ProcessingRequest
        HttpHeaders request_headers 2 request
        HttpHeaders response_headers 3 request
        HttpBody request_body 4 request
        HttpBody response_body 5 request
        HttpTrailers request_trailers 6 request
        HttpTrailers response_trailers 7 request
        Metadata metadata_context 8
        Struct{} attributes 9
        bool observability_mode 10
        ProtocolConfiguration protocol_config 11
    message ProtocolConfiguration
        int32 request_body_mode 1
        int32 response_body_mode 2
    message HttpHeaders
        HeaderMap headers 1
        bool end_of_stream 3
    message HttpBody
        bytes body 1
        bool end_of_stream 2
    message HttpTrailers
        HeaderMap trailers 1
    message HeaderMap
        HeaderValue[] headers 1
    message HeaderValue
        string key 1
        string value 2
        bytes raw_value 3
    message Metadata
        Struct{} filter_metadata 1
    message ProcessingResponse
        HeadersResponse request_headers 1 response
        HeadersResponse response_headers 2 response
        BodyResponse request_body 3 response
        BodyResponse response_body 4 response
        TrailersResponse request_trailers 5 response
        TrailersResponse response_trailers 6 response
        ImmediateResponse immediate_response 7 response
        Struct dynamic_metadata 8
    message HeadersResponse
        CommonResponse response 1
    message BodyResponse
        CommonResponse response 1
    message TrailersResponse
        HeaderMutation header_mutation 1
    message CommonResponse
        int32 status 1
        HeaderMutation header_mutation 2
        BodyMutation body_mutation 3
        bool clear_route_cache 5
    message HeaderMutation
        HeaderValueOption[] set_headers 1
        string[] remove_headers 2
    message HeaderValueOption
        HeaderValue header 1
        int32 append_action 3
    message BodyMutation
        bytes body 1 mutation
        bool clear_body 2 mutation
        StreamedBodyResponse streamed_response 3 mutation
    message StreamedBodyResponse
        bytes body 1
        bool end_of_stream 2
    message ImmediateResponse
        HttpStatus status 1
        HeaderMutation headers 2
        bytes body 3
        string details 5
    message HttpStatus
        int32 code 1
    """,
)
"""By name; for the other side of the protocol as well."""
_Request, _Response = TYPES["ProcessingRequest"], TYPES["ProcessingResponse"]

_OVERWRITE = 2
_BODY, _RESPONSE, _BODY_MUTATION, _STREAMED_RESPONSE = b"\x0a", b"\x0a", b"\x1a", b"\x1a"
_END_OF_STREAM = b"\x10\x01"
_BODY_KINDS = {"request_body": b"\x1a", "response_body": b"\x22"}
_MAX_STREAMED_BYTES = 60 * 1024
"""Of one piece that is sent back: implementations take up to 64 KiB in a message."""

Pairs = Iterable[tuple[str, str]]
MetadataOut = Mapping[str, Mapping[str, str]]


class BodyMode(IntEnum):
    """How the proxy hands a body over."""

    NONE = 0
    STREAMED = 1
    BUFFERED = 2
    BUFFERED_PARTIAL = 3
    FULL_DUPLEX_STREAMED = 4
    GRPC = 5


class BadMessage(ValueError):
    """The bytes are no message of the protocol."""


class Incoming:
    """One message of the proxy's; what is not asked for is not unpacked."""

    __slots__ = ("_message", "_part", "kind")

    def __init__(self, message: Any) -> None:  # noqa: ANN401 - the class is built at run time
        self.kind: str = message.WhichOneof("request") or ""
        """``request_headers``, ``request_body``, ``request_trailers``, the same of the response, or empty."""
        self._message = message
        self._part: Any = getattr(message, self.kind) if self.kind else None

    @property
    def body(self) -> bytes:
        """The piece of a body."""
        piece: bytes = self._part.body
        return piece

    @property
    def ends(self) -> bool:
        """Headers or a piece of a body after which this side has nothing more."""
        flag: bool = self._part.end_of_stream
        return flag

    @property
    def headers(self) -> dict[str, str]:
        """By name; several of one name are joined by a comma."""
        found: dict[str, str] = {}
        for header in self._part.headers.headers:
            name, value = header.key, header.raw_value.decode("latin-1") or header.value
            found[name] = f"{found[name]},{value}" if name in found else value
        return found

    @property
    def is_observed_only(self) -> bool:
        """No answer is expected."""
        return bool(self._message.observability_mode)

    @property
    def body_modes(self) -> "tuple[BodyMode, BodyMode] | None":
        """How the bodies of the request and the response are handed over; ``None`` = not said in this message."""
        if not self._message.HasField("protocol_config"):
            return None
        config = self._message.protocol_config
        try:
            return BodyMode(config.request_body_mode), BodyMode(config.response_body_mode)
        except ValueError:
            raise BadMessage("a body mode that is not known") from None

    def metadata(self, namespace: str) -> dict[str, str]:
        """The texts that filters before this one have left in a namespace."""
        spaces = self._message.metadata_context.filter_metadata
        if namespace not in spaces:
            return {}
        fields = spaces[namespace].fields
        return {name: fields[name].string_value for name in fields if fields[name].HasField("string_value")}

    def listed(self, namespace: str, name: str) -> tuple[str, ...] | None:
        """A list of texts, or a text with commas, in a namespace; ``None`` = there is none."""
        spaces = self._message.metadata_context.filter_metadata
        if namespace not in spaces or name not in spaces[namespace].fields:
            return None
        value = spaces[namespace].fields[name]
        words = [item.string_value for item in value.list_value.values] or value.string_value.split(",")
        return tuple(word.strip() for word in words if word.strip())


def read(data: bytes) -> Incoming:
    """A message of the proxy's."""
    try:
        return Incoming(_Request.FromString(data))
    except DecodeError:
        raise BadMessage("the bytes are no message") from None


def headers_reply(
    kind: str, *, set_headers: Pairs = (), remove_headers: Iterable[str] = (), metadata: MetadataOut | None = None
) -> bytes:
    """Go on, with these changes of the headers; the metadata is for the filters after this one."""
    message: Any = _Response()
    common = getattr(message, kind).response
    common.SetInParent()
    if set_headers or remove_headers:
        _mutate(common.header_mutation, set_headers, remove_headers)
    for namespace, values in (metadata or {}).items():
        space = message.dynamic_metadata.fields[namespace].struct_value
        for name, value in values.items():
            space.fields[name].string_value = value
    return bytes(message.SerializeToString())


def streamed_replies(kind: str, body: bytes, *, ends: bool) -> list[bytes]:
    """Send a piece of a body on, in as many messages as it takes."""
    if len(body) <= _MAX_STREAMED_BYTES:
        return [_streamed(kind, body, ends=ends)]
    starts = range(0, len(body), _MAX_STREAMED_BYTES)
    pieces = [body[at : at + _MAX_STREAMED_BYTES] for at in starts]
    return [_streamed(kind, piece, ends=ends and at == len(pieces)) for at, piece in enumerate(pieces, 1)]


def replaced_body_reply(kind: str, body: bytes) -> bytes:
    """Put this in the place of the body, or of its piece, that was handed over."""
    message: Any = _Response()
    mutation = getattr(message, kind).response.body_mutation
    if body:
        mutation.body = body
    else:
        mutation.clear_body = True
    return bytes(message.SerializeToString())


def unchanged_reply(kind: str) -> bytes:
    """Go on without a change."""
    message: Any = _Response()
    getattr(message, kind).SetInParent()
    return bytes(message.SerializeToString())


def immediate_reply(status: int, headers: Pairs, body: bytes, details: str) -> bytes:
    """Answer the client now; nothing goes further. The details are for the access log."""
    message: Any = _Response()
    answer = message.immediate_response
    answer.status.code = status
    _mutate(answer.headers, headers, ())
    answer.body = body
    answer.details = details
    return bytes(message.SerializeToString())


def _streamed(kind: str, body: bytes, *, ends: bool) -> bytes:
    """``ProcessingResponse{kind{response{body_mutation{streamed_response}}}}``, written by hand.

    It is sent for every piece of every stream, and building five objects for it costs several times as much.
    """
    end = _END_OF_STREAM if ends else b""
    head = _BODY + _varint(len(body))
    size = len(head) + len(body) + len(end)
    for tag in (_STREAMED_RESPONSE, _BODY_MUTATION, _RESPONSE, _BODY_KINDS[kind]):
        wrapped = tag + _varint(size)
        size += len(wrapped)
        head = wrapped + head
    return head + body + end


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))


def _mutate(mutation: Any, set_headers: Pairs, remove_headers: Iterable[str]) -> None:  # noqa: ANN401 - built at run time
    for name, value in set_headers:
        option = mutation.set_headers.add(append_action=_OVERWRITE)
        option.header.key = name
        option.header.raw_value = value.encode("latin-1", "replace")
    mutation.remove_headers.extend(remove_headers)
