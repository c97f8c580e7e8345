"""The review of everything: after new advisories, a changed exception, a new day."""

import time
from collections.abc import Mapping, Sequence

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
from control_plane.services.reviews import changed_conditions, condition_digest, judge, plain, propose
from fleet.audit import AuditEntry
from fleet.facts import AdvisoryData, Facts
from fleet.manifest import PinnedManifest

_REVIEWER = system_actor("review")
_FEEDS = system_actor("advisories")


class Inspector:
    """Reviews every deployment again and stores what changed, all of it in one transaction."""

    def __init__(self, *, store: Store, facts: FactsBook, clock: Clock, meter: Meter) -> None:
        self._store = store
        self._facts = facts
        self._clock = clock
        self._meter = meter
        self._parsed: dict[str, PinnedManifest] = {}
        self._last_facts: Facts | None = None

    def adopt(self, data: AdvisoryData) -> int:
        """Judge by new advisory data: new deployments at once, the stored ones in this call.

        The data is exchanged while no writer is at work, so no deployment is stored by the old data after this.
        """
        before = self._facts.data
        with self._store.write() as unit:
            self._facts.load(data)
            after = {"digest": data.digest, "advisories": len(data.advisories)}
            earlier = {"digest": before.digest, "advisories": len(before.advisories)}
            if after != earlier:
                reason = f"{len(data.advisories)} advisories, {len(data.quarantined)} records quarantined"
                unit.audit.append(
                    [
                        entry(
                            _FEEDS,
                            "load",
                            Kind.ADVISORY_DATA,
                            "advisories",
                            at=self._clock.now(),
                            before=earlier,
                            after=after,
                            reason=reason,
                        )
                    ]
                )
        return self.review_everything()

    @property
    def is_due(self) -> bool:
        """Whether the facts are others than those of the last review of everything."""
        return self._facts.current() is not self._last_facts

    def review_everything(self) -> int:
        """Review all deployments by the current facts; gives how many got another condition."""
        started = time.monotonic()
        with self._store.write() as unit:  # waits for deployments that are being stored by older facts
            facts = self._facts.current()
            subjects = unit.deployments.subjects()
            members = unit.deployments.one_per_review_key()
            unit.discard()
        self._parse(members)
        found = self._judge_all(facts)
        changes = self._store_conditions(facts, subjects, found)
        self._store_proposals(facts, found)
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
        now = self._clock.now()
        with self._store.write() as unit:
            alive = _unchanged(unit, subjects)
            changes = changed_conditions(alive, found, now=iso(now))
            unit.deployments.set_conditions((subject.name, condition) for subject, condition in changes)
            unit.audit.append([_transition(subject, condition, iso(now)) for subject, condition in changes])
            known = unit.reviews.get_many(found)
            unit.reviews.put_many(
                ReviewRecord(key, facts.digest, violations, *_kept_proposal(known.get(key), violations))
                for key, violations in found.items()
            )
            unit.reviews.forget_unused()
            counts = unit.deployments.count_by(ConditionType.COMPLIANT)
        self._meter.compliance(counts)
        return changes

    def _store_proposals(self, facts: Facts, found: Mapping[str, tuple[Document, ...]]) -> None:
        """Second, since conditions must not wait for it: what each refused deployment could become."""
        records = []
        for key, violations in found.items():
            if any(item["severity"] == "mandatory" for item in violations):
                proposal, reason = propose(self._parsed[key], facts, self._facts.catalogue)
                records.append(ReviewRecord(key, facts.digest, violations, proposal, reason))
        if records:
            with self._store.write() as unit:
                unit.reviews.put_many(records)


def _unchanged(unit: UnitOfWork, subjects: Sequence[ReviewSubject]) -> list[ReviewSubject]:
    """Those that nobody has stored anew while they were reviewed: a newer one was reviewed when it was stored."""
    current = {subject.name: subject.generation for subject in unit.deployments.subjects()}
    return [subject for subject in subjects if current.get(subject.name) == subject.generation]


def _kept_proposal(known: ReviewRecord | None, violations: Sequence[Document]) -> tuple[Document | None, str]:
    if known is None or all(item["severity"] != "mandatory" for item in violations):
        return None, ""
    return known.proposal, known.proposal_reason


def _transition(subject: ReviewSubject, condition: Condition, now: str) -> AuditEntry:
    verb = "compliant" if condition.status is Truth.TRUE else "not-compliant"
    return AuditEntry(
        time=now,
        actor=_REVIEWER.name,
        action=f"deployment.{verb}",
        kind=Kind.DEPLOYMENT,
        name=subject.name,
        reason=f"{condition.reason}: {condition.message}",
        before=condition_digest(subject.compliant) if subject.compliant else None,
        after=condition_digest(condition),
    )
