"""Closings that are proposed: code paths that the gateway could close, since a deployment has an open defect there.

Nothing is closed by itself: people take a proposal with a reference of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from control_plane.ports import Store
from control_plane.records import Document, StoredDeployment
from control_plane.services.known_models import all_objects, every, model_of
from fleet.codepath import CodePath
from fleet.rules.evidence import DOOR_CLOSES
from fleet.severity import Severity, highest
from fleet.violation import Enforcement

_PAGE = 500
_DECIDED = ("waiver", "triage")
"""In the evidence: a person has taken the defect upon themselves."""


@dataclass(frozen=True, slots=True)
class ProposedClosing:
    """One code path of one public model."""

    model: str
    path: CodePath
    route: str | None
    """The stored route of the model; ``None`` = it has none yet."""
    deployments: tuple[str, ...]
    """Those that the defect is in."""
    advisories: tuple[str, ...]
    severity: str | None
    """The highest rating among them; ``None`` = nobody rated one."""
    is_refused: bool
    """Whether the rules refuse one of the deployments for it; else it is a residual."""


@dataclass(slots=True)
class _Found:
    deployments: set[str] = field(default_factory=set)
    advisories: set[str] = field(default_factory=set)
    ratings: set[str] = field(default_factory=set)
    is_refused: bool = False

    def add(self, deployment: str, violation: Document) -> None:
        """One violation of one deployment."""
        self.deployments.add(deployment)
        self.advisories.add(str(violation["advisory"]))
        self.ratings.add(str(violation["evidence"].get("severity")))
        self.is_refused |= violation["severity"] == Enforcement.MANDATORY


class ClosingService:
    """Reads what the last reviews said beside what is closed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def every(self, model: str | None = None) -> tuple[ProposedClosing, ...]:
        """All proposals, or those of one public model, by model and path."""
        with self._store.read() as unit:
            routes = {model_of(item): item for item in all_objects(unit.routes)}
            stored = every(lambda after: unit.deployments.page(after=after, limit=_PAGE, with_documents=False))
            members = [item for item in stored if model in (None, item.route.model)]
            reviews = unit.reviews.get_many({item.review_key for item in members})
        found = _found(members, {key: review.violations for key, review in reviews.items()})
        closed = {name: {item["path"] for item in route.spec.get("closed_paths", ())} for name, route in routes.items()}
        return tuple(
            _proposal(name, path, what, routes[name].name if name in routes else None)
            for (name, path), what in sorted(found.items())
            if path not in closed.get(name, ())
        )


def _found(
    members: Iterable[StoredDeployment], violations: Mapping[str, tuple[Document, ...]]
) -> dict[tuple[str, CodePath], _Found]:
    found: dict[tuple[str, CodePath], _Found] = defaultdict(_Found)
    for member in members:
        for violation in violations.get(member.review_key, ()):
            for path in _paths(violation):
                found[member.route.model, path].add(member.name, violation)
    return found


def _paths(violation: Document) -> list[CodePath]:
    evidence = violation.get("evidence", {})
    if not violation.get("advisory") or any(word in evidence for word in _DECIDED):
        return []
    return [path for path in str(evidence.get(DOOR_CLOSES, "")).split(", ") if path]


def _proposal(model: str, path: CodePath, found: _Found, route: str | None) -> ProposedClosing:
    rated = highest(item for item in Severity if item.value in found.ratings)
    return ProposedClosing(
        model,
        path,
        route,
        tuple(sorted(found.deployments)),
        tuple(sorted(found.advisories)),
        rated.value if rated else None,
        found.is_refused,
    )
