"""Placement: which engine and version a manifest gets, and why each other candidate does not.

Candidates are walked newest version first; a candidate that the rules refuse is a rejection with its rule. Among the
engines that are left, the one that suits the workload best is taken. Preferences are scores, never rules.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleet.engine import EngineCatalogue, Preference
from fleet.facts import Facts
from fleet.manifest import Manifest, PinnedManifest, PinRecord, missing_pins
from fleet.rules import review
from fleet.spec import Canary, EngineChoice, EngineName, Metadata, Spec
from fleet.versions import is_final, parse_version
from fleet.violation import Enforcement, Violation

MAX_VERSIONS_PER_ENGINE = 12
"""How far back a walk goes: an engine whose newest versions are all refused is not worth an older one."""
_COMPLETION_POINTERS = ("/spec/engine/image", "/spec/model/revision", "/spec/batch", "/spec/hardware")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a manifest."""

    engine: EngineName
    version: str
    instance_type: str | None
    """``None`` while the manifest leaves the hardware open."""
    quantization: str | None
    preference: Preference
    residuals: int
    """Advisory violations that stay: fewer is better between equal preferences."""

    @property
    def is_prerelease(self) -> bool:
        """Whether nothing final was acceptable: taken only when no engine offers a final version."""
        version = parse_version(self.version)
        return version is None or not is_final(version)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that was not taken: the rule, or the better candidate, that decided."""

    engine: str
    version: str | None
    """``None`` when the engine as a whole was rejected."""
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What placement decided. ``pinned`` is ``None`` when nothing was acceptable or a part is still missing."""

    chosen: Candidate | None
    rejections: tuple[Rejection, ...]
    pinned: PinnedManifest | None
    violations: tuple[Violation, ...]
    """What keeps the choice from being pinned, and what stays to be known about it."""
    canary: "Choice | None" = None


def choose(manifest: Manifest, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    """Pick engine and version, pin what is open, and keep the reason of every rejection."""
    if manifest.spec.hosted is not None:
        return _hosted(manifest, facts, catalogue)
    return _choose(manifest, facts, catalogue, source_digest=manifest.source_digest, exclude=None)


def repin(pinned: PinnedManifest, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    """The same engine at its newest acceptable version: the proposal after an advisory."""
    engine = pinned.spec.engine
    if engine is None:
        return Choice(None, (), None, tuple(review(pinned, facts, catalogue)))
    opened = engine.model_copy(update={"version": None, "image": None, "runtime": "image"})
    manifest = Manifest(
        metadata=pinned.metadata, spec=pinned.spec.model_copy(update={"engine": opened, "canary": None})
    )
    choice = _choose(manifest, facts, catalogue, source_digest=pinned.pin.source_digest, exclude=None)
    if choice.pinned is None:
        return choice
    spec = choice.pinned.spec.model_copy(update={"canary": pinned.spec.canary})
    return Choice(choice.chosen, choice.rejections, choice.pinned.model_copy(update={"spec": spec}), choice.violations)


def _hosted(manifest: Manifest, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    pinned = PinnedManifest(
        metadata=manifest.metadata, spec=manifest.spec, pin=_record(facts, catalogue, manifest.source_digest, "image")
    )
    violations = tuple(review(pinned, facts, catalogue))
    return Choice(None, (), None if _mandatory(violations) else pinned, violations)


def _choose(
    manifest: Manifest, facts: Facts, catalogue: EngineCatalogue, *, source_digest: str, exclude: EngineName | None
) -> Choice:
    accepted: list[tuple[Candidate, Spec, tuple[Violation, ...]]] = []
    rejections: list[Rejection] = []
    for name in _engines(manifest, catalogue):
        turned_away = _turned_away(manifest, name, facts, catalogue, exclude)
        if turned_away:
            rejections.append(turned_away)
            continue
        found, rejected = _walk(manifest, name, facts, catalogue, source_digest)
        rejections += rejected
        accepted += [found] if found else []
    if not accepted:
        return Choice(None, tuple(rejections), None, _whole_violations(manifest, facts, catalogue))
    accepted.sort(key=lambda item: _rank(item[0]))
    chosen, spec, violations = accepted[0]
    rejections += [_outscored(other, chosen) for other, _, _ in accepted[1:]]
    canary = _canary(manifest, chosen, facts, catalogue) if manifest.spec.canary else None
    pinned = None
    if not _mandatory(violations) and not missing_pins(spec):
        whole = spec.model_copy(update={"canary": _pinned_canary(manifest, canary)})
        pinned = _pinned(manifest.metadata, whole, facts, catalogue, source_digest)
    return Choice(chosen, tuple(rejections), pinned, violations, canary)


def _rank(candidate: Candidate) -> tuple[bool, float, int, str]:
    """Best first: a final version before any pre-release, then preference, then fewer residuals."""
    return (candidate.is_prerelease, -candidate.preference.score, candidate.residuals, candidate.engine)


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


def _engines(manifest: Manifest, catalogue: EngineCatalogue) -> Sequence[EngineName]:
    engine = manifest.spec.engine
    return (engine.name,) if engine is not None and engine.name is not None else catalogue.names


def _walk(
    manifest: Manifest, name: EngineName, facts: Facts, catalogue: EngineCatalogue, source_digest: str
) -> tuple[tuple[Candidate, Spec, tuple[Violation, ...]] | None, list[Rejection]]:
    """The newest version of an engine that the rules accept, and the newer ones that they refuse."""
    rejections: list[Rejection] = []
    versions = _versions(manifest, name, facts, catalogue)
    if not versions:
        package = catalogue.package(name)
        reason = f"no published versions of {package} in the data; name the version in the manifest"
        return None, [Rejection(name, None, "version-published", reason)]
    for version in versions:
        spec = _draft(manifest, name, version, facts)
        violations = _review_draft(manifest.metadata, spec, facts, catalogue, source_digest)
        refusing = [item for item in _mandatory(violations) if item.pointer not in _completion(spec)]
        if not refusing:
            return (_candidate(manifest, name, version, spec, violations, catalogue), spec, violations), rejections
        rejections.append(Rejection(name, version, refusing[0].rule, _sentence(refusing)))
    return None, rejections


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


def _draft(manifest: Manifest, name: EngineName, version: str, facts: Facts) -> Spec:
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


def _review_draft(
    metadata: Metadata, spec: Spec, facts: Facts, catalogue: EngineCatalogue, source_digest: str
) -> tuple[Violation, ...]:
    if missing_pins(spec):
        return tuple(review(Manifest(metadata=metadata, spec=spec), facts, catalogue))
    return tuple(review(_pinned(metadata, spec, facts, catalogue, source_digest), facts, catalogue))


def _completion(spec: Spec) -> tuple[str, ...]:
    """Pointers of parts that a person must still give: they keep a choice from being pinned, not from being made."""
    missing = missing_pins(spec)
    return tuple(pointer for pointer in _COMPLETION_POINTERS if pointer in missing)


def _candidate(
    manifest: Manifest,
    name: EngineName,
    version: str,
    spec: Spec,
    violations: tuple[Violation, ...],
    catalogue: EngineCatalogue,
) -> Candidate:
    return Candidate(
        engine=name,
        version=version,
        instance_type=spec.hardware.instance_type if spec.hardware else None,
        quantization=spec.model.quantization,
        preference=catalogue.preference(manifest, name),
        residuals=sum(item.severity is Enforcement.ADVISORY for item in violations),
    )


def _outscored(other: Candidate, chosen: Candidate) -> Rejection:
    if other.is_prerelease and not chosen.is_prerelease:
        reason = (
            f"no final version of it is acceptable, only {other.version}; {chosen.engine} {chosen.version} is final"
        )
    elif other.preference.score < chosen.preference.score:
        reason = (
            f"suits the workload less: {other.preference.score:.2f} ({other.preference.reason}) "
            f"against {chosen.preference.score:.2f} of {chosen.engine} ({chosen.preference.reason})"
        )
    else:
        reason = f"as suitable as {chosen.engine}, but {other.residuals} residuals against {chosen.residuals}"
    return Rejection(other.engine, other.version, "preference", reason)


def _canary(manifest: Manifest, chosen: Candidate, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    """The second arm, on another engine, under its own name."""
    wish = manifest.spec.canary
    spec = manifest.spec.model_copy(update={"engine": wish.engine if wish else None, "canary": None})
    served_name = manifest.served_name
    arm = Manifest(
        metadata=manifest.metadata.model_copy(update={"name": f"{manifest.name[:56]}-canary"}),
        spec=spec.model_copy(update={"served_name": served_name}),
    )
    return _choose(arm, facts, catalogue, source_digest=manifest.source_digest, exclude=chosen.engine)


def _pinned_canary(manifest: Manifest, choice: Choice | None) -> Canary | None:
    """The manifest's canary with the engine that was chosen for it, where one was."""
    canary = manifest.spec.canary
    engine = choice.pinned.spec.engine if choice is not None and choice.pinned is not None else None
    return canary.model_copy(update={"engine": engine}) if canary is not None and engine is not None else canary


def _pinned(
    metadata: Metadata, spec: Spec, facts: Facts, catalogue: EngineCatalogue, source_digest: str
) -> PinnedManifest:
    runtime = spec.engine.runtime if spec.engine and spec.engine.image is None else "image"
    return PinnedManifest(metadata=metadata, spec=spec, pin=_record(facts, catalogue, source_digest, runtime))


def _record(facts: Facts, catalogue: EngineCatalogue, source_digest: str, runtime: str) -> PinRecord:
    return PinRecord(
        source_digest=source_digest,
        facts_digest=facts.digest,
        catalogue_digest=catalogue.digest,
        runtime="process" if runtime == "process" else "image",
    )


def _whole_violations(manifest: Manifest, facts: Facts, catalogue: EngineCatalogue) -> tuple[Violation, ...]:
    return tuple(review(manifest, facts, catalogue))


def _mandatory(violations: Iterable[Violation]) -> list[Violation]:
    return [violation for violation in violations if violation.severity is Enforcement.MANDATORY]


def _sentence(refusing: Sequence[Violation]) -> str:
    more = f" (and {len(refusing) - 1} more)" if len(refusing) > 1 else ""
    return refusing[0].message + more
