"""Strong ETags: an object's is its generation; If-Match and If-None-Match become preconditions."""

import re
from typing import Annotated

from fastapi import Depends, Header

from control_plane.errors import BadRequest
from control_plane.services.preconditions import Precondition

_TAGS = re.compile(r'\s*(W/)?"([^"]*)"\s*(?:,|$)')


def etag_of(generation: int) -> str:
    """The ETag of an object's version."""
    return f'"{generation}"'


def tags_in(header: str) -> frozenset[str]:
    """The strong tags that a header lists; weak ones never match (RFC 9110, 13.1.1). Raises `BadRequest`."""
    position, tags = 0, set()
    while position < len(header):
        found = _TAGS.match(header, position)
        if found is None:
            raise BadRequest(f'{header!r} is not a list of ETags; expected "7", as the ETag of the last answer says')
        if not found[1]:
            tags.add(found[2])
        position = found.end()
    return frozenset(tags)


def matches_any(header: str | None, etag: str) -> bool:
    """Whether If-None-Match names an ETag, weakly compared (RFC 9110, 13.1.2)."""
    if header is None:
        return False
    if header.strip() == "*":
        return True
    return etag.removeprefix("W/") in {tag.strip().removeprefix("W/") for tag in header.split(",")}


def precondition(
    if_match: Annotated[str | None, Header(description='The ETag of the version that is changed, or "*".')] = None,
    if_none_match: Annotated[str | None, Header(description='"*": only when the object does not exist.')] = None,
) -> Precondition:
    """What a change demands; raises `BadRequest`."""
    must_be_new = if_none_match is not None
    if if_none_match is not None and if_none_match.strip() != "*":
        raise BadRequest(f"If-None-Match {if_none_match!r} is not taken here; for a change only * is")
    if if_match is None:
        return Precondition(must_be_new=must_be_new)
    if if_match.strip() == "*":
        return Precondition(any_version=True, must_be_new=must_be_new)
    return Precondition(versions=tags_in(if_match), must_be_new=must_be_new)


Demand = Annotated[Precondition, Depends(precondition)]
