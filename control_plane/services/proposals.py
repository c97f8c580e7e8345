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
FEW = 10
"""So many are proposed at once."""
DELAY_SECONDS = 0.02
LONGEST_DELAY_SECONDS = 2.0
"""Many refused at once means that many people read what happened: that comes first, for this long at most."""


class Proposals:
    """What is still to be proposed."""

    def __init__(self, *, store: Store, catalogue: EngineCatalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self._lock = threading.Lock()
        self._facts: Facts | None = None
        self._waiting: dict[str, PinnedManifest] = {}
        self._not_before = 0.0

    def expect(self, facts: Facts, refused: Mapping[str, PinnedManifest]) -> None:
        """Propose for these, by review key; what was waiting by older facts is dropped."""
        with self._lock:
            self._facts = facts
            self._waiting = dict(refused)
            delay = DELAY_SECONDS * max(0, len(refused) - FEW)
            self._not_before = time.monotonic() + min(LONGEST_DELAY_SECONDS, delay)

    def work(self) -> int:
        """One round; gives how many were proposed."""
        if time.monotonic() < self._not_before:
            return 0
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
