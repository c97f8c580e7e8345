"""How answers are written: JSON that any client can read, strong ETags, no caching."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from control_plane.records import Document


def json_bytes(value: object) -> bytes:
    """Pure ASCII JSON: nothing that a client sent back to itself can break the encoding."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def answer(
    document: Document, *, status: int = 200, etag: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON answer."""
    named = {"Cache-Control": "no-store", **(headers or {})}
    if etag is not None:
        named["ETag"] = etag
    return Response(json_bytes(document), status_code=status, media_type="application/json", headers=named)
