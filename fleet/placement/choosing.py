"""Picks engine, version, hardware and plan: rules and planner filter, scores order, the best one is pinned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fleet.canary_arm import canary_arm
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import Manifest, PinnedManifest, missing_pins
from fleet.placement.decision import Candidate, Choice, Rejection, Score
from fleet.placement.engine_walk import Accepted, accepted_version, engines_of, mandatory, review_draft, sentence
from fleet.placement.hardware_search import search_hardware
from fleet.placement.option import Found, Option
from fleet.placement.pair import PairOption
from fleet.placement.pinning import completed, pinned
from fleet.placement.scoring import Scoring, cheapest_of, engine_scores, operations
from fleet.placement.suitability import engine_build, hosted_instead, suitability
from fleet.placement.wording import doubts, nearest_miss, notes_of, outscored
from fleet.plan_wish import Reason
from fleet.rules import review
from fleet.spec import Canary, EngineName, Spec
from fleet.violation import Enforcement, Violation


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate with what is needed to pin it."""

    candidate: Candidate
    draft: Spec
    violations: tuple[Violation, ...]
    option: Option | PairOption | None = None

    @property
    def spec(self) -> Spec:
        """The spec that it would be pinned as."""
        return self.draft if self.option is None else completed(self.draft, self.option)


def choose(manifest: Manifest, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    """Pick what is open in a manifest, pin it, and keep the reason of every rejection."""
    if manifest.spec.hosted is not None:
        return _hosted(manifest, facts, catalogue)
    return _choose(manifest, facts, catalogue, source_digest=manifest.source_digest, exclude=None)


def repin(given: PinnedManifest, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    """The same engine, hardware and plan at the newest acceptable version: the proposal after an advisory."""
    engine = given.spec.engine
    if engine is None:
        return Choice(None, (), None, tuple(review(given, facts, catalogue)))
    opened = engine.model_copy(update={"version": None, "image": None, "runtime": "image"})
    update = {"engine": opened, "canary": None, "parallelism": given.spec.parallelism}
    manifest = Manifest(metadata=given.metadata, spec=given.spec.model_copy(update=update))
    digest = given.pin.source_digest
    choice = _choose(manifest, facts, catalogue, source_digest=digest, exclude=None, keeps_hardware=True)
    if choice.pinned is None or choice.chosen is None:
        return choice
    spec = choice.pinned.spec.model_copy(update={"canary": given.spec.canary})
    searched = search_hardware(spec, choice.chosen.engine, choice.chosen.version, facts)
    whole = choice.pinned.model_copy(update={"spec": spec})
    return replace(choice, pinned=whole, canary=None, notes=doubts(searched))


def _hosted(manifest: Manifest, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    whole = pinned(manifest.metadata, manifest.spec, facts, catalogue, manifest.source_digest)
    violations = tuple(review(whole, facts, catalogue))
    return Choice(None, (), None if mandatory(violations) else whole, violations)


def _choose(
    manifest: Manifest,
    facts: Facts,
    catalogue: EngineCatalogue,
    *,
    source_digest: str,
    exclude: EngineName | None,
    keeps_hardware: bool = False,
) -> Choice:
    """``keeps_hardware`` = what runs already stays where it is, whatever the planner thinks of it."""
    rejections = list(hosted_instead(manifest, facts, catalogue))
    accepted: list[tuple[Accepted, Found | None]] = []
    for name in engines_of(manifest, catalogue):
        found, refused = accepted_version(manifest, name, facts, catalogue, source_digest, exclude)
        rejections += refused
        if found:
            searched = None if keeps_hardware else _searched(found, facts, catalogue)
            rejections += searched.rejections if searched else ()
            accepted.append((found, searched))
    contenders = _contenders(manifest, accepted, catalogue)
    chosen, refused = _first_acceptable(manifest, contenders, facts, catalogue, source_digest)
    rejections += refused
    considered = sum(searched.considered if searched else 1 for _, searched in accepted)
    if chosen is None:
        whole = tuple(review(manifest, facts, catalogue))
        would_fit = nearest_miss(manifest.spec, accepted, rejections, facts)
        return Choice(None, tuple(rejections), None, whole, considered=considered, would_fit=would_fit)
    left = [contender.candidate for contender in contenders[len(refused) :]]
    rejections += outscored(left[1:], left[0])
    decided = _decided(manifest, chosen, rejections, facts, catalogue, source_digest, considered)
    return replace(decided, ranked=tuple(left))


def _searched(found: Accepted, facts: Facts, catalogue: EngineCatalogue) -> Found | None:
    at_load = catalogue.quantized_at_load(found.engine, found.version)
    return search_hardware(found.spec, found.engine, found.version, facts, at_load=at_load)


def _decided(
    manifest: Manifest,
    chosen: Contender,
    rejections: Sequence[Rejection],
    facts: Facts,
    catalogue: EngineCatalogue,
    source_digest: str,
    considered: int,
) -> Choice:
    canary = _canary(manifest, chosen.candidate, facts, catalogue) if manifest.spec.canary else None
    whole = None
    spec, candidate = chosen.spec, chosen.candidate
    if candidate.build is not None:
        as_pinned = Manifest(metadata=manifest.metadata, spec=spec)
        build = engine_build(as_pinned, candidate.engine, candidate.version, catalogue)
        candidate = replace(candidate, build=build)
    if not mandatory(chosen.violations) and not missing_pins(spec):
        spec = spec.model_copy(update={"canary": _pinned_canary(manifest, canary)})
        whole = pinned(manifest.metadata, spec, facts, catalogue, source_digest)
    return Choice(
        candidate,
        tuple(rejections),
        whole,
        chosen.violations,
        canary,
        considered,
        notes=notes_of(manifest, candidate, rejections),
    )


def _contenders(
    manifest: Manifest, accepted: Sequence[tuple[Accepted, Found | None]], catalogue: EngineCatalogue
) -> list[Contender]:
    """Every candidate that is left, the best first."""
    options = [option for _, searched in accepted if searched for option in searched.options]
    cheapest = cheapest_of(options)
    found: list[Contender] = []
    for item, searched in accepted:
        preference = suitability(manifest, item.engine, catalogue.preference(manifest, item.engine))
        base = Candidate(
            engine=item.engine,
            version=item.version,
            instance_type=item.spec.hardware.instance_type if item.spec.hardware else None,
            quantization=item.spec.model.quantization,
            preference=preference,
            residuals=sum(violation.severity is Enforcement.ADVISORY for violation in item.violations),
            model_id=item.spec.model.id,
            build=engine_build(manifest, item.engine, item.version, catalogue),
        )
        known = engine_scores(item.engine, preference, catalogue)
        if searched is None:
            scores = (*known, operations(base.build, None))
            found.append(Contender(replace(base, scores=scores), item.spec, item.violations))
            continue
        scoring = Scoring(base.build, manifest.spec.objectives, cheapest)
        scored: dict[int, tuple[Score, ...]] = {}  # by the estimate, which pools that are alike share
        for option in searched.options:
            parts = scored.get(id(option.estimate))
            if parts is None:
                parts = scored[id(option.estimate)] = (*known, *scoring.of(option))
            candidate = (
                _with_option(base, option, parts) if isinstance(option, Option) else _with_pair(base, option, parts)
            )
            found.append(Contender(candidate, item.spec, item.violations, option))
    return sorted(found, key=lambda contender: _rank(contender.candidate))


def _with_option(base: Candidate, option: Option, scores: tuple[Score, ...]) -> Candidate:
    place = option.place
    return Candidate(  # ``replace`` takes five times as long, and there are thousands
        base.engine,
        base.version,
        place.instance.name,
        option.model.quantization,
        base.preference,
        base.residuals,
        option.model.id,
        option.plan,
        option.nodes,
        place.sharing.value,
        place.purchase,
        None if place.pool is None else place.pool.name,
        option.replica_bytes,
        option.estimate,
        base.build,
        option.model.origin,
        scores,
    )


def _with_pair(base: Candidate, option: PairOption, scores: tuple[Score, ...]) -> Candidate:
    found = option.estimate
    return replace(
        base,
        instance_type=found.instance_type,
        quantization=option.model.quantization,
        model_id=option.model.id,
        nodes=option.nodes,
        sharing=found.joined(lambda side: side.place.sharing.value),
        purchase=found.joined(lambda side: side.place.purchase),
        pool=found.pool,
        estimate=found,
        origin=option.model.origin,
        scores=scores,
    )


def _first_acceptable(
    manifest: Manifest,
    contenders: Sequence[Contender],
    facts: Facts,
    catalogue: EngineCatalogue,
    source_digest: str,
) -> tuple[Contender | None, list[Rejection]]:
    """The best contender that still passes the rules with its hardware written down."""
    rejections: list[Rejection] = []
    for contender in contenders:
        candidate, violations = contender.candidate, contender.violations
        spec = contender.spec
        if contender.option is not None:
            violations = review_draft(manifest.metadata, spec, facts, catalogue, source_digest)
        missing = missing_pins(spec)
        refusing = [item for item in mandatory(violations) if item.pointer not in missing]
        reason = _too_wide(candidate) or (Reason(refusing[0].rule, sentence(refusing)) if refusing else None)
        if reason is None:
            return replace(contender, violations=violations), rejections
        rejections.append(
            Rejection(
                candidate.engine,
                candidate.version,
                reason.rule,
                reason.message,
                candidate.instance_type,
                candidate.split,
                candidate.model_id,
                dict(reason.evidence),
                candidate.pool,
                candidate.quantization,
            )
        )
    return None, rejections


def _too_wide(candidate: Candidate) -> Reason | None:
    """Why the plan can't be built, where the engine serves what was built for it."""
    build, plan = candidate.build, candidate.plan
    if build is None or plan is None or plan.gpus <= build.most_gpus:
        return None
    message = f"a built engine spans at most {build.most_gpus} GPUs; {plan} takes {plan.gpus}"
    return Reason("engine-build", message, {"gpus": plan.gpus, "most_gpus": build.most_gpus})


def _rank(candidate: Candidate) -> tuple[bool | float | str, ...]:
    """Best first: the wished model, final versions, known speed and price, then score, residuals, GPUs and names."""
    gpus, found = candidate.gpus, candidate.estimate
    of_unknown_speed = found is not None and found.latency.basis == "none"
    is_unpriced = found is not None and found.price is None
    unknown = (candidate.origin, candidate.is_prerelease, of_unknown_speed, is_unpriced)
    order = (*unknown, -round(candidate.total, 6), candidate.residuals, gpus)
    names = (candidate.engine, candidate.instance_type or "", candidate.purchase, candidate.pool or "")
    return (*order, *names, candidate.model_id)


def _canary(manifest: Manifest, chosen: Candidate, facts: Facts, catalogue: EngineCatalogue) -> Choice:
    """The second arm, on another engine, under its own name."""
    return _choose(canary_arm(manifest), facts, catalogue, source_digest=manifest.source_digest, exclude=chosen.engine)


def _pinned_canary(manifest: Manifest, choice: Choice | None) -> Canary | None:
    """The manifest's canary with the engine that was chosen for it, where one was."""
    canary = manifest.spec.canary
    engine = choice.pinned.spec.engine if choice is not None and choice.pinned is not None else None
    return canary.model_copy(update={"engine": engine}) if canary is not None and engine is not None else canary
