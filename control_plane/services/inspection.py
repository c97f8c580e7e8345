"""The review of everything: after new advisories, a changed exception, a new day."""

import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from control_plane import logs
from control_plane.ports import Clock, Meter, Store, UnitOfWork
from control_plane.records import (
    Condition,
    ConditionType,
    Document,
    Kind,
    ReviewRecord,
    ReviewSubject,
    StoredDeployment,
    Truth,
    system_actor,
)
from control_plane.services.audit import entry
from control_plane.services.facts import FactsBook
from control_plane.services.moments import iso
from control_plane.services.proposals import Proposals
from control_plane.services.reviews import changed_conditions, condition_digest, is_refused, judge, plain
from fleet.audit import AuditEntry
from fleet.facts import AdvisoryData, Facts
from fleet.manifest import PinnedManifest

_REVIEWER = system_actor("review")
_FEEDS = system_actor("advisories")


class Inspector:
    """Reviews every deployment again and stores what changed, all of it in one transaction."""

    def __init__(self, *, store: Store, facts: FactsBook, clock: Clock, meter: Meter, proposals: Proposals) -> None:
        self._store = store
        self._facts = facts
        self._clock = clock
        self._meter = meter
        self._proposals = proposals
        self._parsed: dict[str, PinnedManifest] = {}
        self._last_facts: Facts | None = None
        self._turn = threading.Lock()

    def adopt(self, data: AdvisoryData) -> int:
        """Judge by new advisory data: new deployments at once, the stored ones in this call.

        The data is exchanged while no writer is at work, so no deployment is stored by the old data after this.
        """
        loaded = _loading(self._facts.data, data, at=self._clock.now())
        with self._turn:
            with self._store.write() as unit:
                self._facts.load(data)
                unit.audit.append(loaded)
            return self._review_everything()

    def review_if_due(self) -> None:
        """Review everything when the facts are others than at the last time."""
        if self._facts.current() is self._last_facts:
            return
        with self._turn:
            if self._facts.current() is not self._last_facts:
                self._review_everything()

    def review_everything(self) -> int:
        """Review all deployments by the current facts; gives how many got another condition."""
        with self._turn:
            return self._review_everything()

    def _review_everything(self) -> int:
        started = time.monotonic()
        with self._store.write() as unit:  # waits for deployments that are being stored by older facts
            facts = self._facts.current()
            subjects = unit.deployments.subjects()
            members = unit.deployments.one_per_review_key()
            unit.discard()
        self._parse(members)
        found = self._judge_all(facts)
        changes = self._store_conditions(facts, subjects, found)
        self._proposals.expect(facts, self._refused(found))
        self._last_facts = facts
        seconds = time.monotonic() - started
        self._meter.review(seconds=seconds, deployments=len(subjects), changed=len(changes))
        logs.get().info(
            logs.REVIEW_DONE,
            deployments=len(subjects),
            groups=len(found),
            changed=len(changes),
            seconds=round(seconds, 3),
            facts_digest=facts.digest,
        )
        return len(changes)

    def _parse(self, members: Mapping[str, StoredDeployment]) -> None:
        known = self._parsed
        self._parsed = {
            key: known.get(key) or PinnedManifest.model_validate(member.document) for key, member in members.items()
        }

    def _judge_all(self, facts: Facts) -> dict[str, tuple[Document, ...]]:
        catalogue = self._facts.catalogue
        return {
            key: tuple(plain(item) for item in judge(manifest, facts, catalogue).violations)
            for key, manifest in self._parsed.items()
        }

    def _store_conditions(
        self, facts: Facts, subjects: Sequence[ReviewSubject], found: Mapping[str, tuple[Document, ...]]
    ) -> list[tuple[ReviewSubject, Condition]]:
        now = iso(self._clock.now())
        with self._store.write() as unit:
            alive = _unchanged(unit, subjects)
            changes = changed_conditions(alive, found, now=now)
            unit.deployments.set_conditions((subject.name, condition) for subject, condition in changes)
            unit.audit.append([_transition(subject, condition, now) for subject, condition in changes])
            known = unit.reviews.get_many(found)
            unit.reviews.put_many(
                ReviewRecord(key, facts.digest, violations, *_kept_proposal(known.get(key), violations))
                for key, violations in found.items()
            )
            unit.reviews.forget_unused()
            counts = unit.deployments.count_by(ConditionType.COMPLIANT)
        self._meter.compliance(counts)
        return changes

    def _refused(self, found: Mapping[str, tuple[Document, ...]]) -> dict[str, PinnedManifest]:
        return {key: self._parsed[key] for key, violations in found.items() if is_refused(violations)}


def _loading(before: AdvisoryData, after: AdvisoryData, *, at: datetime) -> list[AuditEntry]:
    """What the log says about new data; nothing when it is the same."""
    if before.digest == after.digest:
        return []
    reason = f"{len(after.advisories)} advisories, {len(after.quarantined)} records quarantined"
    was, now = ({"digest": data.digest, "advisories": len(data.advisories)} for data in (before, after))
    return [entry(_FEEDS, "load", Kind.ADVISORY_DATA, "advisories", at=at, before=was, after=now, reason=reason)]


def _unchanged(unit: UnitOfWork, subjects: Sequence[ReviewSubject]) -> list[ReviewSubject]:
    """Those that nobody has stored anew while they were reviewed: a newer one was reviewed when it was stored."""
    generations = unit.deployments.generations()
    return [subject for subject in subjects if generations.get(subject.name) == subject.generation]


def _kept_proposal(known: ReviewRecord | None, violations: Sequence[Document]) -> tuple[Document | None, str]:
    if known is None or not is_refused(violations):
        return None, ""
    return known.proposal, known.proposal_reason


def _transition(subject: ReviewSubject, condition: Condition, now: str) -> AuditEntry:
    return AuditEntry(
        time=now,
        actor=_REVIEWER.name,
        action="deployment.compliant" if condition.status is Truth.TRUE else "deployment.not-compliant",
        kind=Kind.DEPLOYMENT.value,
        name=subject.name,
        reason=f"{condition.reason}: {condition.message}",
        request_id=None,
        before=condition_digest(subject.compliant) if subject.compliant else None,
        after=condition_digest(condition),
    )
