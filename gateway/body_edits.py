"""Edits of a body by offsets: everything that no edit names stays as the client wrote it."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts ``insert`` in the place of ``body[start:end]``."""

    start: int
    end: int
    insert: bytes = field(repr=False)


def apply_edits(body: bytes, edits: Sequence[Edit]) -> bytes:
    """The body with every edit made; offsets are of the body before any of them, and no two may overlap."""
    if not edits:
        return body
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if not at <= edit.start <= edit.end <= len(body):
            raise ValueError(f"an edit of bytes {edit.start} to {edit.end} overlaps another or leaves the body")
        pieces += (body[at : edit.start], edit.insert)
        at = edit.end
    pieces.append(body[at:])
    return b"".join(pieces)
