"""Reviews everything when the facts are others than at the last review: a waiver, a triage entry, a new day."""

from control_plane.services.inspection import Inspector
from control_plane.services.readiness import Readiness


class ReviewWatch:
    """Keeps conditions and readiness up to date."""

    def __init__(self, *, inspector: Inspector, readiness: Readiness) -> None:
        self._inspector = inspector
        self._readiness = readiness

    def look(self) -> None:
        """One round."""
        self._readiness.refresh()
        self._inspector.review_if_due()
