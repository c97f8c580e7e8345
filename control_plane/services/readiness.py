"""Whether this control plane can do its work: kept by the loops, answered without touching anything."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from control_plane.ports import Clock
from control_plane.records import Document
from control_plane.services.facts import FactsBook
from control_plane.services.moments import iso


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold."""

    type: str
    is_true: bool
    is_required: bool
    """Whether the control plane is not ready without it."""
    message: str


class Readiness:
    """The cached answers of ``/readyz``."""

    def __init__(self, *, facts: FactsBook, clock: Clock, database_problem: Callable[[], str | None]) -> None:
        self._facts = facts
        self._clock = clock
        self._database_problem = database_problem
        self._lock = threading.Lock()
        self._checks: tuple[Check, ...] = ()
        self._feed_problem: str | None = None
        self._feed_lost_since: str | None = None

    def feed_is(self, problem: str | None) -> bool:
        """Note whether the feed can be read; gives whether that is news."""
        with self._lock:
            is_news = (problem is None) is not (self._feed_problem is None)
            if is_news:
                self._feed_lost_since = iso(self._clock.now()) if problem else None
            self._feed_problem = problem
        return is_news

    def refresh(self) -> None:
        """Look again; called by a loop."""
        checks = (self._database(), self._feed(), self._age())
        with self._lock:
            self._checks = checks

    def answer(self) -> tuple[bool, list[Document]]:
        """Whether all that is required holds, and each check."""
        with self._lock:
            checks = self._checks
        documents: list[Document] = [
            {"type": item.type, "status": "True" if item.is_true else "False", "message": item.message}
            for item in checks
        ]
        return bool(checks) and all(item.is_true for item in checks if item.is_required), documents

    def _database(self) -> Check:
        problem = self._database_problem()
        return Check("DatabaseReachable", problem is None, True, problem or "the database answers")

    def _feed(self) -> Check:
        problem = self._feed_problem
        if problem is None:
            return Check("AdvisoryFeedReachable", True, False, "the advisory folders can be read")
        has_data = bool(self._facts.data.advisories)
        kept = "the last good data stays in use" if has_data else "no data was ever read"
        message = f"{problem} (since {self._feed_lost_since}); {kept}"
        return Check("AdvisoryFeedReachable", is_true=False, is_required=not has_data, message=message)

    def _age(self) -> Check:
        limit = self._facts.policy.max_advisory_age_days
        age = self._facts.current().advisory_age_days()
        age_words = "of unknown age" if age is None else f"{age} days old"
        if limit is None:
            return Check("AdvisoryDataFresh", True, True, f"the advisory data is {age_words}; the policy sets no limit")
        is_fresh = age is not None and age <= limit
        return Check(
            "AdvisoryDataFresh", is_fresh, True, f"the advisory data is {age_words}; the limit is {limit} days"
        )
