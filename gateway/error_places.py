"""What may be logged about an exception: its kind and place, never what it says: that may quote a request."""

import sys
import traceback

_FRAMES = 3


def kind_and_place() -> dict[str, object]:
    """Of the exception that is being handled; ``error`` is ``None`` where there is none."""
    kind, _, trace = sys.exc_info()
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(trace)[-_FRAMES:]]
    return {"error": kind.__name__ if kind else None, "where": where}
