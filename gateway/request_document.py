"""The JSON body of a request, read strictly enough that an engine cannot read it otherwise."""

import json
from collections.abc import Mapping


class BadDocument(ValueError):
    """The body is not one JSON object; the message says why without quoting it."""


def parse_document(body: bytes) -> Mapping[str, object]:
    """The object in a request's body.

    A member that is named twice is refused: parsers differ on which one counts, so the model that was allowed need not
    be the one that an engine reads.
    """
    try:
        document = json.loads(body.decode(), object_pairs_hook=_unique_members, parse_constant=_no_constant)
    except BadDocument:
        raise
    except UnicodeDecodeError:
        raise BadDocument("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadDocument(f"line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadDocument("it is nested too deeply") from None
    except ValueError:
        raise BadDocument("a number in it is too long") from None
    if not isinstance(document, dict):
        raise BadDocument("it must be a JSON object")
    return document


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise BadDocument("a member of an object is named twice")
    return members


def _no_constant(_: str) -> object:
    raise BadDocument("NaN and Infinity are not JSON")
