"""Walks the versions of each engine, newest first, until the rules accept one; a refused one is a rejection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import Manifest, missing_pins
from fleet.placement.decision import Rejection
from fleet.placement.pinning import pinned
from fleet.placement.suitability import build_refusal, engine_build
from fleet.rules import review
from fleet.rules.fit import PLAN_FITS
from fleet.spec import EngineChoice, EngineName, Metadata, Spec
from fleet.versions import is_final
from fleet.violation import Enforcement, Violation

MAX_VERSIONS_PER_ENGINE = 12
"""How far back a walk goes: an engine whose newest versions are all refused is not worth an older one."""
_COMPLETION_POINTERS = ("/spec/engine/image", "/spec/model/revision", "/spec/batch", "/spec/hardware")

_PLAN_POINTERS = ("/spec/hardware", "/spec/parallelism")


@dataclass(frozen=True, slots=True)
class Accepted:
    """An engine at the newest version that the rules accept, with the spec that says so."""

    engine: EngineName
    version: str
    spec: Spec
    violations: tuple[Violation, ...]


def engines_of(manifest: Manifest, catalogue: EngineCatalogue) -> Sequence[EngineName]:
    """The engine that the manifest names, else all of them."""
    engine = manifest.spec.engine
    return (engine.name,) if engine is not None and engine.name is not None else catalogue.names


def accepted_version(
    manifest: Manifest,
    name: EngineName,
    facts: Facts,
    catalogue: EngineCatalogue,
    source_digest: str,
    exclude: EngineName | None,
) -> tuple[Accepted | None, list[Rejection]]:
    """An engine at the version that the rules accept, unless it as a whole or what it has to build is refused."""
    away = _turned_away(manifest, name, facts, catalogue, exclude)
    if away:
        return None, [away]
    found, refused = _walk(manifest, name, facts, catalogue, source_digest)
    if found is None:
        return None, refused
    late = build_refusal(manifest, name, engine_build(manifest, name, found.version, catalogue))
    return (None, [*refused, late]) if late else (found, refused)


def _turned_away(
    manifest: Manifest, name: EngineName, facts: Facts, catalogue: EngineCatalogue, exclude: EngineName | None
) -> Rejection | None:
    """Why no version of an engine is looked at: the arms differ, it is not offered, or nothing is known about it."""
    named = manifest.spec.engine.name if manifest.spec.engine else None
    canary = manifest.spec.canary
    if name is exclude or (canary is not None and canary.engine.name is name and named is None):
        return Rejection(name, None, "canary-other-engine", "the other arm runs it, and both need different engines")
    refusal = catalogue.refusal(name)
    if refusal:
        return Rejection(name, None, "engine-offered", refusal)
    unknown = facts.data.why_unknown(catalogue.package(name))
    if unknown and named is None:
        # A lack of data must never look better than known residuals: only a person takes such an engine, by name.
        reason = f"unknown: {unknown}; it is taken only where the manifest names it"
        return Rejection(name, None, "advisory-data", reason)
    return None


def _walk(
    manifest: Manifest, name: EngineName, facts: Facts, catalogue: EngineCatalogue, source_digest: str
) -> tuple[Accepted | None, list[Rejection]]:
    """The newest version of an engine that the rules accept, and the newer ones that they refuse."""
    rejections: list[Rejection] = []
    versions = _versions(manifest, name, facts, catalogue)
    if not versions:
        package = catalogue.package(name)
        reason = f"no published versions of {package} in the data; name the version in the manifest"
        return None, [Rejection(name, None, "version-published", reason)]
    for version in versions:
        need = catalogue.engine_build(manifest, name, version)
        if need is not None and need.refusal is not None:
            rejections.append(Rejection(name, version, "engine-build", need.refusal))
            continue
        spec = draft(manifest, name, version, facts)
        violations = review_draft(manifest.metadata, spec, facts, catalogue, source_digest)
        refusing = [item for item in mandatory(violations) if not _is_open(item, spec)]
        if not refusing:
            return Accepted(name, version, spec, violations), rejections
        rejections.append(Rejection(name, version, refusing[0].rule, sentence(refusing)))
    return None, rejections


def review_draft(
    metadata: Metadata, spec: Spec, facts: Facts, catalogue: EngineCatalogue, source_digest: str
) -> tuple[Violation, ...]:
    """What the rules say of a spec, as a pinned manifest where all four parts are there."""
    if missing_pins(spec):
        return tuple(review(Manifest(metadata=metadata, spec=spec), facts, catalogue))
    return tuple(review(pinned(metadata, spec, facts, catalogue, source_digest), facts, catalogue))


def completion(spec: Spec) -> tuple[str, ...]:
    """Pointers of parts that a person must still give: they keep a choice from being pinned, not from being made."""
    missing = missing_pins(spec)
    return tuple(pointer for pointer in _COMPLETION_POINTERS if pointer in missing)


def _is_open(item: Violation, spec: Spec) -> bool:
    """Whether a violation is about what is looked at later: a part to be completed, or the plan and its memory."""
    if item.pointer in completion(spec) or item.rule == PLAN_FITS:
        return True
    is_split = "parallelism" in spec.model_fields_set or spec.pools is not None
    return not is_split and item.pointer.startswith(_PLAN_POINTERS)


def mandatory(violations: Iterable[Violation]) -> list[Violation]:
    """The violations that refuse."""
    return [violation for violation in violations if violation.severity is Enforcement.MANDATORY]


def sentence(refusing: Sequence[Violation]) -> str:
    """The first of them, and how many more there are."""
    more = f" (and {len(refusing) - 1} more)" if len(refusing) > 1 else ""
    return refusing[0].message + more


def draft(manifest: Manifest, name: EngineName, version: str, facts: Facts) -> Spec:
    """The spec with this engine and version; the image from the known ones, or a process where policy lets it."""
    written = manifest.spec.engine or EngineChoice()
    runtime = written.runtime
    image = written.image if runtime == "process" else written.image or _known_image(name, version, facts)
    if image is None and facts.policy.allow_runtime_process:
        runtime = "process"
    engine = written.model_copy(update={"name": name, "version": version, "image": image, "runtime": runtime})
    # The canary is another candidate with its own walk, so it does not decide about this one.
    return manifest.spec.model_copy(update={"engine": engine, "canary": None})


def _known_image(name: EngineName, version: str, facts: Facts) -> str | None:
    found = (item.digest for item in facts.images if item.engine is name and item.version == version)
    return next(found, None)


def _versions(manifest: Manifest, name: EngineName, facts: Facts, catalogue: EngineCatalogue) -> Sequence[str]:
    """The manifest's own version, else published ones: finals newest first, then pre-releases newest first."""
    engine = manifest.spec.engine
    if engine is not None and engine.version is not None:
        return (engine.version,)
    published = facts.data.published_versions(catalogue.package(name))
    newest_first = published.newest_first if published else ()
    finals = [version for version in newest_first if is_final(version)][:MAX_VERSIONS_PER_ENGINE]
    newer_than_finals = [
        version for version in newest_first if not is_final(version) and version > max(finals, default=version)
    ]
    return [str(version) for version in (*finals, *newer_than_finals[:MAX_VERSIONS_PER_ENGINE])]
