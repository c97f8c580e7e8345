"""Watches the advisory feed: a change becomes new data and a review of everything; a lost feed keeps the old data."""

from control_plane import logs
from control_plane.ports import AdvisoryFeed, Clock, FeedError, Meter
from control_plane.services.inspection import Inspector
from control_plane.services.readiness import Readiness
from fleet.facts import AdvisoryData


class AdvisorySync:
    """One watched feed."""

    def __init__(
        self, *, feed: AdvisoryFeed, inspector: Inspector, readiness: Readiness, meter: Meter, clock: Clock
    ) -> None:
        self._feed = feed
        self._inspector = inspector
        self._readiness = readiness
        self._meter = meter
        self._clock = clock
        self._fingerprint: str | None = None

    def look(self) -> bool:
        """One round; gives whether new data was taken."""
        try:
            fingerprint = self._feed.fingerprint()
            data = self._feed.read() if fingerprint != self._fingerprint else None
        except FeedError as error:
            self._lost(str(error))
            return False
        if self._readiness.feed_is(None):
            self._meter.feed_lost(is_lost=False)
            logs.get().info(logs.FEED_BACK)
        if data is None:
            return False
        self._take(data)
        self._fingerprint = fingerprint
        return True

    def _take(self, data: AdvisoryData) -> None:
        for item in data.quarantined:
            logs.get().warning(logs.RECORD_QUARANTINED, source=item.source, record=item.id, reason=item.reason)
        logs.get().info(
            logs.FEED_READ, advisories=len(data.advisories), quarantined=len(data.quarantined), as_of=data.as_of
        )
        self._meter.advisory_data(
            advisories=len(data.advisories),
            quarantined=len(data.quarantined),
            retrieved_unix_seconds=self._clock.now().timestamp(),
        )
        self._inspector.adopt(data)

    def _lost(self, problem: str) -> None:
        self._fingerprint = None
        if self._readiness.feed_is(problem):
            self._meter.feed_lost(is_lost=True)
            logs.get().error(logs.FEED_LOST, problem=problem)
