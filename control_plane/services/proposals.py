"""Proposals: for each refused deployment a version that the rules accept, worked out bit by bit after the review.

Placement walks many versions, so thousands of proposals take a while; conditions and requests must not wait for them.
"""

import threading
import time
from collections.abc import Mapping

from control_plane.ports import Store
from control_plane.services.reviews import propose
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import PinnedManifest

WORK_SECONDS = 0.05
"""How long one round works before it lets requests have their turn."""


class Proposals:
    """What is still to be proposed."""

    def __init__(self, *, store: Store, catalogue: EngineCatalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self._lock = threading.Lock()
        self._facts: Facts | None = None
        self._waiting: dict[str, PinnedManifest] = {}

    def expect(self, facts: Facts, refused: Mapping[str, PinnedManifest]) -> None:
        """Propose for these, by review key; what was waiting by older facts is dropped."""
        with self._lock:
            self._facts = facts
            self._waiting = dict(refused)

    def work(self) -> int:
        """One round; gives how many were proposed."""
        deadline = time.monotonic() + WORK_SECONDS
        count = 0
        while (item := self._next()) is not None:
            self._propose(*item)
            count += 1
            if time.monotonic() >= deadline:
                break
        return count

    def _next(self) -> tuple[Facts, str, PinnedManifest] | None:
        with self._lock:
            if self._facts is None or not self._waiting:
                return None
            key = next(iter(self._waiting))
            return self._facts, key, self._waiting.pop(key)

    def _propose(self, facts: Facts, key: str, manifest: PinnedManifest) -> None:
        proposal, reason = propose(manifest, facts, self._catalogue)
        with self._store.write() as unit:
            unit.reviews.set_proposal(key, facts.digest, proposal, reason)
