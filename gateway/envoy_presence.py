"""Whether the Envoy that runs requests is there, by its connections to this process. It dies with all of them."""

from collections.abc import Callable, Collection

AWAY_SECONDS = 3.0
"""Without any connection; an Envoy that lives has its connection for decisions, and one for its log."""
REPORT_SECONDS = 12.0
"""Until an Envoy that lives has told of each of its requests anew, over whatever connection: every ten seconds."""


class EnvoyPresence:
    """Looked at now and then."""

    def __init__(self, decisions: Callable[[], Collection[object]], log: Callable[[], Collection[object]]) -> None:
        """The connections that are open at a moment, for each of the two."""
        self._decisions = decisions
        self._log = log
        self._seen_log: frozenset[object] = frozenset()
        self._away_since: float | None = None

    def patience_left(self, now: float) -> float | None:
        """How long requests of before may still go unheard, from now on; ``None`` = nothing speaks against them."""
        log, seen = frozenset(self._log()), self._seen_log
        self._seen_log = log
        if log or self._decisions():
            self._away_since = None
            return REPORT_SECONDS if seen and not seen & log else None
        if self._away_since is None:
            self._away_since = now
        return 0.0 if now - self._away_since >= AWAY_SECONDS else None
