"""Pages: a size, an opaque token that fits one list with its filters, and the token of the next page."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request

from control_plane.api.bodies import text_problem
from control_plane.errors import BadRequest
from control_plane.records import Document

DEFAULT_SIZE = 50
LARGEST_SIZE = 500
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page:
    """Where a list goes on, and how many items are wanted."""

    size: int
    after: str
    list_id: str

    @property
    def limit(self) -> int:
        """One more than wanted: it tells whether another page follows."""
        return self.size + 1

    def cut(self, items: Sequence[Item]) -> tuple[Sequence[Item], bool]:
        """The items of this page, and whether more follow."""
        return items[: self.size], len(items) > self.size

    def token(self, last: str) -> str:
        """The token of the page after an item."""
        raw = json.dumps([self.list_id, last], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def page(
    request: Request,
    page_size: Annotated[int, Query(ge=1, le=LARGEST_SIZE, description="Items on a page.")] = DEFAULT_SIZE,
    page_token: Annotated[str | None, Query(description="next_page_token of the page before.")] = None,
) -> Page:
    """The page that a request asks for; raises `BadRequest`."""
    list_id = _list_id(request)
    return Page(size=page_size, after=_after(page_token, list_id) if page_token else "", list_id=list_id)


Paging = Annotated[Page, Depends(page)]


def listing(kind: str, documents: Sequence[Document], next_page_token: str | None) -> Document:
    """A list as it crosses the API."""
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": f"{kind}List",
        "items": list(documents),
        "next_page_token": next_page_token,
    }


def _list_id(request: Request) -> str:
    filters = sorted(
        (name, value) for name, value in request.query_params.multi_items() if not name.startswith("page_")
    )
    return hashlib.sha256(repr((request.url.path, filters)).encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _after(token: str, list_id: str) -> str:
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        parsed = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        parsed = None
    is_ours = isinstance(parsed, list) and len(parsed) == 2 and all(isinstance(part, str) for part in parsed)
    if not is_ours or text_problem(parsed[1]) is not None:
        raise BadRequest("page_token can't be read; send next_page_token of the page before, unchanged")
    if parsed[0] != list_id:
        raise BadRequest("page_token is of another list or other filters; start again without it")
    after: str = parsed[1]
    return after
