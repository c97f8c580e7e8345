"""Rows of deployments, their conditions and their reviews."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, literal, select, text, update

from control_plane.adapters import sql_tables as tables
from control_plane.adapters.sql_rows import Touch, as_json
from control_plane.records import (
    Condition,
    ConditionType,
    Document,
    EndpointRecord,
    Phase,
    ReviewRecord,
    ReviewSubject,
    Route,
    StoredDeployment,
    Truth,
)

_BATCH = 500
"""Keys of one IN list: SQLite takes 32,766 variables, PostgreSQL 65,535; a list this long is quick on both."""


_COLUMNS = tuple(tables.deployments.c)
_COLUMNS_WITHOUT_DOCUMENT = tuple(
    literal("{}").label(column.name) if column.name == "document" else column for column in _COLUMNS
)
_STORE_CONDITION = text(
    "INSERT INTO conditions (deployment, type, status, reason, message, last_transition, observed_generation) "
    "VALUES (:deployment, :type, :status, :reason, :message, :last_transition, :observed_generation) "
    "ON CONFLICT (deployment, type) DO UPDATE SET status = excluded.status, reason = excluded.reason, "
    "message = excluded.message, last_transition = excluded.last_transition, "
    "observed_generation = excluded.observed_generation"
)
"""SQLite and PostgreSQL both know it: one statement for each of thousands."""


class DeploymentRows:
    """Stored deployments and their conditions."""

    def __init__(self, connection: Connection, touch: Touch) -> None:
        self._connection = connection
        self._touch = touch

    def get(self, name: str) -> StoredDeployment | None:
        """One deployment, or ``None``."""
        row = self._connection.execute(select(*_COLUMNS).where(tables.deployments.c.name == name)).first()
        return _deployment(row, self._conditions(name, name).get(name, ())) if row else None

    def page(self, *, after: str, limit: int, with_documents: bool = True) -> Sequence[StoredDeployment]:
        """Deployments with names above ``after``, ascending; without documents these are empty, and it is quick."""
        names = tables.deployments.c.name
        query = select(*(_COLUMNS if with_documents else _COLUMNS_WITHOUT_DOCUMENT))
        rows = self._connection.execute(query.where(names > after).order_by(names).limit(limit)).all()
        if not rows:
            return ()
        conditions = self._conditions(rows[0][0], rows[-1][0])
        return [_deployment(row, conditions.get(row[0], ())) for row in rows]

    def insert(self, deployment: StoredDeployment) -> None:
        """Store a new one with its conditions."""
        self._touch()
        values = _values(deployment)
        values |= {"phase": deployment.phase.value, "endpoints": as_json([asdict(e) for e in deployment.endpoints])}
        self._connection.execute(insert(tables.deployments).values(**values))
        self.set_conditions((deployment.name, condition) for condition in deployment.conditions)

    def replace(self, deployment: StoredDeployment) -> None:
        """Store the next generation of an existing one with its conditions; its state stays."""
        self._touch()
        query = update(tables.deployments).where(tables.deployments.c.name == deployment.name)
        self._connection.execute(query.values(**_values(deployment)))
        self.set_conditions((deployment.name, condition) for condition in deployment.conditions)

    def delete(self, name: str) -> None:
        """Forget one."""
        self._touch()
        self._connection.execute(delete(tables.deployments).where(tables.deployments.c.name == name))

    def subjects(self) -> Sequence[ReviewSubject]:
        """What a review of everything looks at, by name."""
        held = tables.deployments
        joined = held.outerjoin(
            tables.conditions,
            (tables.conditions.c.deployment == held.c.name)
            & (tables.conditions.c.type == ConditionType.COMPLIANT.value),
        )
        found = tables.conditions.c
        columns = (found.status, found.reason, found.message, found.last_transition, found.observed_generation)
        query = select(held.c.name, held.c.generation, held.c.review_key, *columns).select_from(joined)
        return [_subject(*row) for row in self._connection.execute(query.order_by(held.c.name))]

    def generations(self) -> Mapping[str, int]:
        """The version of every deployment."""
        query = select(tables.deployments.c.name, tables.deployments.c.generation)
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def one_per_review_key(self) -> Mapping[str, StoredDeployment]:
        """One deployment for each review key."""
        held = tables.deployments
        first = select(func.min(held.c.name)).group_by(held.c.review_key)
        rows = self._connection.execute(select(*_COLUMNS).where(held.c.name.in_(first)))
        return {stored.review_key: stored for stored in (_deployment(row, ()) for row in rows)}

    def set_conditions(self, changes: Iterable[tuple[str, Condition]]) -> None:
        """Store conditions of many deployments."""
        values = [_condition_values(name, condition) for name, condition in changes]
        if values:
            self._connection.execute(_STORE_CONDITION, values)

    def set_state(self, name: str, phase: Phase, endpoints: Sequence[EndpointRecord]) -> None:
        """Store where a deployment stands."""
        self._touch()
        query = update(tables.deployments).where(tables.deployments.c.name == name)
        self._connection.execute(query.values(phase=phase.value, endpoints=as_json([asdict(e) for e in endpoints])))

    def count_by(self, condition: str) -> Mapping[str, int]:
        """How many deployments have each status of a condition type."""
        table = tables.conditions
        query = select(table.c.status, func.count()).where(table.c.type == condition).group_by(table.c.status)
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def _conditions(self, first: str, last: str) -> dict[str, tuple[Condition, ...]]:
        table = tables.conditions.c
        columns = (table.deployment, table.type, table.status, table.reason, table.message)
        query = select(*columns, table.last_transition, table.observed_generation)
        query = query.where(table.deployment >= first, table.deployment <= last).order_by(table.type)
        found: dict[str, tuple[Condition, ...]] = {}
        for name, kind, status, *rest in self._connection.execute(query):
            found[name] = (*found.get(name, ()), Condition(ConditionType(kind), Truth(status), *rest))
        return found


class ReviewRows:
    """The last review of each review key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_many(self, keys: Iterable[str]) -> Mapping[str, ReviewRecord]:
        """The known ones of these keys."""
        wanted = sorted(set(keys))
        found: dict[str, ReviewRecord] = {}
        for start in range(0, len(wanted), _BATCH):
            query = select(tables.reviews).where(tables.reviews.c.review_key.in_(wanted[start : start + _BATCH]))
            for row in self._connection.execute(query).mappings():
                found[row["review_key"]] = ReviewRecord(
                    review_key=row["review_key"],
                    facts_digest=row["facts_digest"],
                    violations=tuple(json.loads(row["violations"])),
                    proposal=json.loads(row["proposal"]) if row["proposal"] else None,
                    proposal_reason=row["proposal_reason"],
                )
        return found

    def put_many(self, reviews: Iterable[ReviewRecord]) -> None:
        """Store or replace."""
        values = [
            {
                "review_key": review.review_key,
                "facts_digest": review.facts_digest,
                "violations": as_json(list(review.violations)),
                "proposal": as_json(review.proposal) if review.proposal is not None else None,
                "proposal_reason": review.proposal_reason,
            }
            for review in reviews
        ]
        if not values:
            return
        table = tables.reviews
        self._connection.execute(
            delete(table).where(table.c.review_key == bindparam("old_key")),
            [{"old_key": item["review_key"]} for item in values],
        )
        self._connection.execute(insert(table), values)

    def set_proposal(self, key: str, facts_digest: str, proposal: Document | None, reason: str) -> None:
        """Store a proposal beside the review by the same facts; a review by other facts stays as it is."""
        table = tables.reviews
        query = update(table).where(table.c.review_key == key, table.c.facts_digest == facts_digest)
        text = as_json(proposal) if proposal is not None else None
        self._connection.execute(query.values(proposal=text, proposal_reason=reason))

    def forget_unused(self) -> None:
        """Drop those that no deployment has any more."""
        used = select(tables.deployments.c.review_key)
        self._connection.execute(delete(tables.reviews).where(tables.reviews.c.review_key.not_in(used)))


def _subject(name: str, generation: int, review_key: str, *condition: Any) -> ReviewSubject:  # noqa: ANN401 - a row
    """From a row by position: a review of everything reads thousands."""
    if condition[0] is None:
        return ReviewSubject(name, generation, review_key, None)
    status, *rest = condition
    return ReviewSubject(name, generation, review_key, Condition(ConditionType.COMPLIANT, Truth(status), *rest))


def _values(deployment: StoredDeployment) -> dict[str, Any]:
    return {
        "name": deployment.name,
        "generation": deployment.generation,
        "document": as_json(deployment.document),
        "identity": deployment.identity,
        "engine": deployment.engine,
        "review_key": deployment.review_key,
        "route": as_json(asdict(deployment.route)),
        "managed_by": deployment.managed_by,
        "created": deployment.created,
        "updated": deployment.updated,
    }


def _condition_values(name: str, condition: Condition) -> dict[str, Any]:
    return {
        "deployment": name,
        "type": condition.type.value,
        "status": condition.status.value,
        "reason": condition.reason,
        "message": condition.message,
        "last_transition": condition.last_transition,
        "observed_generation": condition.observed_generation,
    }


def _deployment(row: Sequence[Any], conditions: tuple[Condition, ...]) -> StoredDeployment:
    """From a row by position, in the order of `_COLUMNS`: lists read thousands."""
    name, generation, document, identity, engine, review_key, route_text, managed_by, created, updated, phase, ends = (
        row
    )
    route = json.loads(route_text)
    return StoredDeployment(
        name=name,
        generation=generation,
        document=json.loads(document),
        identity=identity,
        engine=engine,
        review_key=review_key,
        route=Route(model=route["model"], tenants=tuple(route["tenants"]), output_filter=route["output_filter"]),
        managed_by=managed_by,
        created=created,
        updated=updated,
        phase=Phase(phase),
        endpoints=tuple(EndpointRecord(**item) for item in json.loads(ends)),
        conditions=conditions,
    )
