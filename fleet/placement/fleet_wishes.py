"""The deployments of an environment as the fleet plan asks for them: their possible placements, the preferred first."""

from collections.abc import Iterator, Sequence

from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.hardware import SharingMode
from fleet.manifest import AnyManifest, Manifest, PinnedManifest
from fleet.placement.choosing import choose
from fleet.placement.decision import Candidate, Rejection
from fleet.plan_wish import Reason
from fleet.pool_match import Deployment, PlacementOption, Served

SEPARATE = "the fleet plan places one kind of replica of a deployment; 'enginehouse pin' judges separate pools"


def deployment_of(manifest: AnyManifest, facts: Facts, catalogue: EngineCatalogue) -> Deployment:
    """A manifest with every placement of the engine and model that placement takes; a pinned one keeps its own."""
    needs_isolation = manifest.spec.access.isolation == "hardware"
    choice = choose(_written(manifest), facts, catalogue)
    chosen = choice.chosen
    if chosen is None or chosen.plan is None:
        reasons = tuple(_first_of_each_engine(choice.rejections))
        if chosen is not None:
            notes = (SEPARATE,) if chosen.pair is not None else choice.notes
            reasons = tuple(Reason("unknown", note) for note in notes)
        return Deployment(manifest.name, (), needs_isolation, reasons=reasons)
    same = (item for item in choice.ranked if _is_same(item, chosen))
    options = tuple(option for item in same if (option := _option(item)) is not None)
    return Deployment(manifest.name, options, needs_isolation)


def _first_of_each_engine(rejections: Sequence[Rejection]) -> Iterator[Reason]:
    """The newest version's reason of each engine: a person asks why not at all, not why not each."""
    seen: set[str] = set()
    for item in rejections:
        if item.engine not in seen:
            seen.add(item.engine)
            yield Reason(item.rule, item.reason, item.evidence)


def _written(manifest: AnyManifest) -> Manifest:
    if not isinstance(manifest, PinnedManifest):
        return manifest
    spec = manifest.spec.model_copy(update={"parallelism": manifest.spec.parallelism, "canary": None})
    return Manifest(metadata=manifest.metadata, spec=spec)


def _is_same(item: Candidate, chosen: Candidate) -> bool:
    ours, theirs = ((one.engine, one.version, one.model_id, one.quantization) for one in (item, chosen))
    return ours == theirs


def _option(item: Candidate) -> PlacementOption | None:
    if item.plan is None or item.instance_type is None or item.estimate is None:
        return None
    return PlacementOption(
        instance_type=item.instance_type,
        gpus=item.plan.gpus,
        replicas=item.estimate.replicas,
        sharing=SharingMode(item.sharing),
        memory_bytes=item.replica_bytes,
        purchase=item.purchase,
        served=Served(str(item.engine), item.version, item.model_id, item.plan),
    )
