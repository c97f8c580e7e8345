"""Reading bodies: JSON objects of limited size and depth, without anything that a database can't keep."""

import json
from collections import Counter
from typing import Annotated, Any, NoReturn, TypeVar

from fastapi import Depends, Request
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from control_plane.errors import BadRequest, Invalid
from control_plane.records import Document
from fleet.manifest import MAX_DEPTH, Problem, problems_of
from fleet.value import Value

MAX_BODY_BYTES = 1_000_000
Model = TypeVar("Model", bound=Value)


async def json_body(request: Request) -> Document:
    """The object in a request's body; raises `BadRequest`."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        found = media_type or "nothing"
        raise HTTPException(415, f"the Content-Type is {found}; send application/json")
    return parse_object(await request.body())


Body = Annotated[Document, Depends(json_body)]


def parse_object(raw: bytes) -> Document:
    """The JSON object in some bytes; raises `BadRequest`."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8: byte {error.start} can't be read") from None
    except RecursionError:
        raise BadRequest(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest(f"the body is a JSON {type(value).__name__}; expected an object")
    _check(value)
    return value


def parsed(model: type[Model], document: Document) -> Model:
    """A body as a closed model; raises `Invalid` with a pointer for each problem."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = problems_of(error, model)
        words = "; ".join(f"{item.pointer or '/'}: {item.message}" for item in problems)
        raise Invalid(words, problems) from None


def check_name(document_name: str, path_name: str) -> None:
    """The name in the body is that of the address; raises `Invalid`."""
    if document_name != path_name:
        message = f"'{document_name}' is not the name in the address, '{path_name}'; names are the ids"
        raise Invalid(f"/metadata/name: {message}", [Problem("/metadata/name", message)])


def text_problem(text: str) -> str | None:
    """Why a text can't be kept, or ``None``."""
    if "\0" in text:
        return "holds a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "holds half of a surrogate pair"
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        double = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {double!r} stands twice in one object")
    return found


def _check(root: Document) -> None:
    waiting: list[tuple[str, Any, int]] = [("", root, 1)]
    while waiting:
        pointer, value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise BadRequest(f"the body is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for name, item in value.items():
                _check_text(name, f"{pointer}/{ascii(name)[1:-1]}")
                waiting.append((f"{pointer}/{ascii(name)[1:-1]}", item, depth + 1))
        elif isinstance(value, list):
            waiting += [(f"{pointer}/{index}", item, depth + 1) for index, item in enumerate(value)]
        elif isinstance(value, str):
            _check_text(value, pointer)


def _check_text(text: str, pointer: str) -> None:
    problem = text_problem(text)
    if problem is not None:
        raise BadRequest(f"{pointer}: {problem}; send plain text")
