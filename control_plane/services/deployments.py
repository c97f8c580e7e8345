"""Deployments: stored only when the rules accept them, each change with its audit event."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from control_plane.errors import Conflict, Invalid, NotFound, Refused
from control_plane.ports import Clock, Store, UnitOfWork
from control_plane.records import (
    Actor,
    Condition,
    ConditionType,
    Kind,
    ReviewRecord,
    Route,
    StoredDeployment,
)
from control_plane.services.audit import entry
from control_plane.services.changes import Difference, Verb, differences, verb_of
from control_plane.services.facts import FactsBook
from control_plane.services.moments import iso
from control_plane.services.preconditions import Precondition, check
from control_plane.services.reviews import Verdict, compliance, judge, plain, review_key
from fleet.manifest import AnyManifest, PinnedManifest, Problem
from fleet.violation import Violation

KIND = Kind.DEPLOYMENT


@dataclass(frozen=True, slots=True)
class View:
    """A deployment with what its last review said."""

    stored: StoredDeployment
    review: ReviewRecord | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change did, or would do."""

    verb: Verb
    view: View | None
    """``None`` after a deletion and where a dry run found a refusal."""
    differences: tuple[Difference, ...]
    violations: tuple[Violation, ...] = ()
    is_refused: bool = False
    identity_before: str | None = None
    identity_after: str | None = None
    facts_digest: str = ""
    facts_as_of: str | None = None


class DeploymentService:
    """Reads and changes deployments."""

    def __init__(self, *, store: Store, facts: FactsBook, clock: Clock) -> None:
        self._store = store
        self._facts = facts
        self._clock = clock

    def get(self, name: str) -> View:
        """One deployment; raises `NotFound`."""
        with self._store.read() as unit:
            stored = unit.deployments.get(name)
            if stored is None:
                raise NotFound("deployment", name)
            return _views(unit, [stored])[0]

    def page(self, *, after: str, limit: int) -> Sequence[View]:
        """Deployments with names above ``after``, ascending."""
        with self._store.read() as unit:
            return _views(unit, unit.deployments.page(after=after, limit=limit))

    def summaries(self, *, after: str, limit: int) -> Sequence[View]:
        """The same without documents and reviews."""
        with self._store.read() as unit:
            stored = unit.deployments.page(after=after, limit=limit, with_documents=False)
            return [View(item, None) for item in stored]

    def put(
        self,
        manifest: AnyManifest,
        demand: Precondition,
        actor: Actor,
        *,
        is_dry_run: bool,
        managed_by: str | None = None,
    ) -> Outcome:
        """Create or replace; the review decides while no other writer is at work.

        Raises:
            Refused: the rules refuse it (a dry run says so in its outcome instead).
            Conflict: an environment owns it.
            StaleVersion, VersionRequired: see `preconditions`.
        """
        with self._store.write() as unit:
            before = unit.deployments.get(manifest.name)
            check(KIND, manifest.name, before.generation if before else None, demand, is_dry_run=is_dry_run)
            _check_owner(before, managed_by)
            verdict = judge(manifest, self._facts.current(), self._facts.catalogue)
            if is_dry_run:
                unit.discard()
            elif verdict.is_refused:
                raise Refused(manifest.name, verdict.violations)
            if not isinstance(manifest, PinnedManifest):
                return self._unpinned(manifest, before, verdict, is_dry_run=is_dry_run)
            return self._store_pinned(unit, manifest, before, verdict, actor, managed_by)

    def delete(self, name: str, demand: Precondition, actor: Actor, *, is_dry_run: bool) -> Outcome:
        """Forget a deployment; its engines drain and end. Raises as `put` does, and `NotFound`."""
        with self._store.write() as unit:
            before = unit.deployments.get(name)
            if before is None:
                raise NotFound("deployment", name)
            check(KIND, name, before.generation, demand, is_dry_run=is_dry_run)
            _check_owner(before, None)
            unit.deployments.delete(name)
            unit.bury(KIND, name, before.generation)
            moment = self._clock.now()
            unit.audit.append([entry(actor, "delete", KIND, name, at=moment, before=before.document, after=None)])
            if is_dry_run:
                unit.discard()
        return Outcome("delete", None, differences(before.document, None), identity_before=before.identity)

    def _unpinned(
        self, manifest: AnyManifest, before: StoredDeployment | None, verdict: Verdict, *, is_dry_run: bool
    ) -> Outcome:
        if not is_dry_run:
            problem = Problem("/kind", "only pinned manifests are deployed; run 'enginehouse pin' and send its result")
            raise Invalid("the manifest is not pinned", [problem])
        document = before.document if before else None
        return self._outcome(verb_of(document, plain(manifest)), None, before, plain(manifest), None, verdict)

    def _store_pinned(
        self,
        unit: UnitOfWork,
        manifest: PinnedManifest,
        before: StoredDeployment | None,
        verdict: Verdict,
        actor: Actor,
        managed_by: str | None,
    ) -> Outcome:
        document = plain(manifest)
        verb = verb_of(before.document if before else None, document)
        review = _review_record(manifest, verdict)
        if before is not None and verb == "unchanged" and before.managed_by == managed_by:
            return self._outcome(verb, View(before, review), before, document, manifest, verdict)
        stored = self._next(unit, manifest, before, review, managed_by)
        if before is None:
            unit.deployments.insert(stored)
        else:
            unit.deployments.replace(stored)
        unit.reviews.put_many([_with_known_proposal(unit, review)])
        was = before.document if before else None
        unit.audit.append([entry(actor, verb, KIND, stored.name, at=self._clock.now(), before=was, after=document)])
        return self._outcome(verb, View(stored, review), before, document, manifest, verdict)

    def _next(
        self,
        unit: UnitOfWork,
        manifest: PinnedManifest,
        before: StoredDeployment | None,
        review: ReviewRecord,
        managed_by: str | None,
    ) -> StoredDeployment:
        now = iso(self._clock.now())
        generation = before.generation + 1 if before else unit.next_generation(KIND, manifest.name)
        known = _compliance_of(before)
        condition = compliance(review.violations, before=known, generation=generation, now=now)
        new = stored_from(manifest, now=now)
        stored = replace(new, generation=generation, managed_by=managed_by, conditions=(condition,))
        if before is None:
            return stored
        stored = replace(stored, created=before.created)
        others = tuple(item for item in before.conditions if item.type is not ConditionType.COMPLIANT)
        return replace(stored, phase=before.phase, endpoints=before.endpoints, conditions=(condition, *others))

    def _outcome(
        self,
        verb: Verb,
        view: View | None,
        before: StoredDeployment | None,
        document: dict[str, object],
        manifest: PinnedManifest | None,
        verdict: Verdict,
    ) -> Outcome:
        return Outcome(
            verb=verb,
            view=view,
            differences=differences(before.document if before else None, document),
            violations=verdict.violations,
            is_refused=verdict.is_refused,
            identity_before=before.identity if before else None,
            identity_after=manifest.identity if manifest else None,
            facts_digest=verdict.facts.digest,
            facts_as_of=verdict.facts.as_of,
        )


def stored_from(manifest: PinnedManifest, *, now: str) -> StoredDeployment:
    """A pinned manifest as a new stored deployment, not reviewed yet."""
    return StoredDeployment(
        name=manifest.name,
        generation=1,
        document=plain(manifest),
        identity=manifest.identity,
        engine=_engine(manifest),
        review_key=review_key(manifest),
        route=_route(manifest),
        managed_by=None,
        created=now,
        updated=now,
    )


def _views(unit: UnitOfWork, stored: Sequence[StoredDeployment]) -> Sequence[View]:
    reviews: Mapping[str, ReviewRecord] = unit.reviews.get_many(item.review_key for item in stored)
    return [View(item, reviews.get(item.review_key)) for item in stored]


def _check_owner(before: StoredDeployment | None, managed_by: str | None) -> None:
    if before is not None and before.managed_by is not None and before.managed_by != managed_by:
        raise Conflict(
            f"deployment '{before.name}' is managed by the environment '{before.managed_by}': "
            f"change its manifest in environments/{before.managed_by} and deploy that"
        )


def _review_record(manifest: PinnedManifest, verdict: Verdict) -> ReviewRecord:
    violations = tuple(plain(item) for item in verdict.violations)
    return ReviewRecord(review_key(manifest), verdict.facts.digest, violations, None, "")


def _with_known_proposal(unit: UnitOfWork, review: ReviewRecord) -> ReviewRecord:
    known = unit.reviews.get_many([review.review_key]).get(review.review_key)
    if known is None or known.facts_digest != review.facts_digest:
        return review
    return known


def _compliance_of(before: StoredDeployment | None) -> Condition | None:
    conditions = before.conditions if before else ()
    return next((item for item in conditions if item.type is ConditionType.COMPLIANT), None)


def _engine(manifest: PinnedManifest) -> str:
    hosted = manifest.spec.hosted
    return hosted.name.value if hosted else str(manifest.engine_name)


def _route(manifest: PinnedManifest) -> Route:
    access = manifest.spec.access
    return Route(model=manifest.served_name, tenants=access.tenants, output_filter=access.output_filter)
