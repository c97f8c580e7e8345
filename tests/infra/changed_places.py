"""What somebody wrote, with another value in one place."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any


def with_value_at(content: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy that has a value at a path; everything above it must be there."""
    changed = deepcopy(content)
    place = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return changed
