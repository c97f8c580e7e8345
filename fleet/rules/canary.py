"""The rule about a canary: another engine than the manifest's own, which is judged like it."""

from collections.abc import Iterator

from fleet.manifest import AnyManifest
from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation

CANARY_OTHER_ENGINE = "canary-other-engine"
_ENGINE = "/spec/engine"
_CANARY_ENGINE = "/spec/canary/engine"


def other_engine(case: Case) -> Iterator[Violation]:
    """A canary names another engine, or the two arms would fail together."""
    canary = case.manifest.spec.canary
    if canary is None:
        return
    own = case.engine.name if case.engine else None
    if canary.engine.name is not None and canary.engine.name is not own:
        return
    others = [name for name in case.catalogue.names if name is not own and case.catalogue.refusal(name) is None]
    found = "names no engine" if canary.engine.name is None else f"runs {own}, as the manifest itself does"
    yield Violation(
        rule=CANARY_OTHER_ENGINE,
        severity=Enforcement.MANDATORY,
        pointer=f"{_CANARY_ENGINE}/name",
        message=f"the canary {found}",
        remedy=f"name one of {', '.join(others)}" if others else "the catalogue offers no other engine",
        evidence={"engine": own.value if own else "", "canary": canary.engine.name or ""},
    )


def canary_case(case: Case) -> Case | None:
    """The canary's own case: the manifest on the canary's engine; ``None`` without a canary."""
    canary = case.manifest.spec.canary
    if canary is None:
        return None
    spec = case.manifest.spec.model_copy(update={"engine": canary.engine, "hosted": None, "canary": None})
    manifest: AnyManifest = case.manifest.model_copy(update={"spec": spec})
    return Case(manifest=manifest, facts=case.facts, catalogue=case.catalogue, rules=case.rules, is_canary=True)


def seen_from_manifest(violation: Violation) -> Violation:
    """A violation of the canary's case, pointing into the manifest that holds the canary."""
    tail = violation.pointer.removeprefix(_ENGINE) if violation.pointer.startswith(_ENGINE) else ""
    return violation.model_copy(
        update={"pointer": _CANARY_ENGINE + tail, "message": f"canary: {violation.message}"},
    )
