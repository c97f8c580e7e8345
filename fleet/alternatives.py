"""Other models that a manifest lists: each is another checkpoint than the model itself and those listed before it."""

from collections.abc import Iterator, Sequence

from pydantic_core import InitErrorDetails, PydanticCustomError

Checkpoint = tuple[str, str | None]
"""Id and revision; ``None`` = not pinned."""


def listed_wrongly(own: Checkpoint, listed: Sequence[Checkpoint]) -> Iterator[InitErrorDetails]:
    """An error for each entry that is the model itself or a repetition, at its place in the list."""
    first: dict[Checkpoint, int] = {}
    for place, item in enumerate(listed):
        before = first.setdefault(item, place)
        if item[0] == own[0] and item[1] in (None, own[1]):
            yield _error(item, place, "is the model itself")
        elif before != place:
            yield _error(item, place, f"is listed already, as entry {before}")


def _error(item: Checkpoint, place: int, why: str) -> InitErrorDetails:
    name = item[0] if item[1] is None else f"{item[0]}@{item[1]}"
    said = f"{name} {why}; name another checkpoint, or leave this entry out"
    # As a value, since a name may hold braces, which a template would read.
    return {"type": PydanticCustomError("listed_wrongly", "{said}", {"said": said}), "loc": (place,), "input": None}
