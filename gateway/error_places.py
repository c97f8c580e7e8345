"""What may be logged about an exception: its kind and place, never what it says: that may quote a request."""

import sys
import traceback

_FRAMES = 3


def kind_and_place(error: BaseException | None = None) -> dict[str, object]:
    """Of an exception, or of the one that is being handled; ``error`` is ``None`` where there is none."""
    seen = error or sys.exception()
    trace = seen.__traceback__ if seen else None
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(trace)[-_FRAMES:]]
    return {"error": type(seen).__name__ if seen else None, "where": where}
