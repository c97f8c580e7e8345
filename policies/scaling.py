"""Policies on what decides the number of replicas, and on definitions that come with objects of theirs."""

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

from fleet.cloud import definitions, scaling
from fleet.cloud.definitions import Bundle
from fleet.cloud.finding import Finding
from fleet.cloud.scaling import Claim, Workload
from fleet.engine import MetricsDialect
from policies.adapter import Check, Seen, Stack, StackCheck, gathered
from policies.knowledge import Files, Ground
from policies.kubernetes_objects import (
    BUNDLES,
    DEFINITION_KIND,
    EVERY_TYPE,
    all_objects,
    group_of,
    head_of,
    kind_of,
    object_of,
    stem_of,
)
from policies.manifests import CONFIG_MAP, is_manifest, manifest_of, rendered
from policies.reading import at, has, labels, parts, plain, text
from workloads import reading
from workloads.values import Plain, as_whole, each_object, object_id

_KEDA = "keda.sh"
_ENGINE_LABEL = "app.kubernetes.io/name"
_COUNTED = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "LeaderWorkerSet"})
"""Kinds whose ``spec.replicas`` is a number, whoever scales them."""
_REPLICAS = ("spec.replicas", "spec", "*")
"""What a program may say to leave the number of replicas to others."""


def _own_scaler(seen: Seen) -> Iterator[Finding]:
    if group_of(seen) != _KEDA or stem_of(seen) not in reading.KEDA_SCALERS:
        return
    engine = labels(seen.props, "metadata", "labels").get(_ENGINE_LABEL)
    dialects = _dialects(seen.ground.files, engine)
    for item in each_object(object_of(seen)):
        found = reading.scaler(item, dialects)
        if found is not None:
            yield from scaling.scaler_findings(found)


def _rendered_scalers(seen: Seen) -> Iterator[Finding]:
    manifest = manifest_of(seen)
    engine = manifest.engine_name if manifest is not None else None
    if manifest is None or engine is None or manifest.spec.engine is None:
        return
    dialects = (seen.ground.files.catalogue.metrics(engine, manifest.spec.engine.version or ""),)
    for item in rendered(seen):
        found = reading.scaler(item, dialects)
        if found is not None:
            yield from scaling.scaler_findings(found)


@lru_cache(maxsize=16)
def _dialects(files: Files, engine: str | None) -> tuple[MetricsDialect, ...]:
    """What the engine may call its metrics in any version; without a label, what any engine may."""
    catalogue = files.catalogue
    names = [name for name in catalogue.names if engine in (None, name.value)] or list(catalogue.names)
    found = (catalogue.metrics(name, version) for name in names for version in catalogue.versions(name))
    return tuple(dict.fromkeys(found))


def _owners(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding | Exception]]:
    items: list[Plain] = []
    yield from gathered(stack.of(CONFIG_MAP), _rendered_items, items)
    claims = [claim for item in items if (claim := reading.claim(item)) is not None]
    workloads = [found for item in items if (found := reading.workload(item)) is not None]
    own: list[Claim] = []
    yield from gathered(all_objects(stack), _own_claims, own)
    claims += [claim for claim in own if claim not in claims]  # one that rendering gives as well is the same one
    scaled = frozenset(claim.workload.split("/")[1] for claim in claims)
    yield from gathered(all_objects(stack), partial(_own_workloads, scaled), workloads)
    for finding in scaling.owner_findings(workloads, claims):
        yield None, finding


def _rendered_items(seen: Seen) -> Iterable[Plain]:
    return rendered(seen) if is_manifest(seen) else ()


def _own_workloads(scaled: frozenset[str], seen: Seen) -> Iterator[Workload]:
    """What has replicas: of the kinds that somebody scales, and else what has them in a form that can't be read."""
    if stem_of(seen) not in scaled:
        yield from _odd_workloads(seen)
        return
    ignores = any(path in _REPLICAS for path in seen.ignored)
    for item in _with_spec(seen, "replicas"):
        found = reading.workload(item, ignores_replicas=ignores)
        if found is not None:
            yield found


def _odd_workloads(seen: Seen) -> Iterator[Workload]:
    stem = stem_of(seen)
    if stem and stem not in _COUNTED:
        return
    for props in parts(seen.props, "items") if has(seen.props, "items") else (seen.props,):
        kind = stem or text(props, "kind")
        replicas = at(props, "spec", "replicas") if kind in _COUNTED else None
        if replicas is not None and as_whole(replicas) is None:
            metadata = {name: at(props, "metadata", name) for name in ("name", "namespace")}
            yield Workload(object_id(kind or "", {"metadata": metadata}), plain(replicas))


def _own_claims(seen: Seen) -> Iterator[Claim]:
    """A scaler of the program."""
    items = _with_spec(seen, "scaleTargetRef") if stem_of(seen) in reading.SCALERS else ()
    return (found for found in map(reading.claim, items) if found is not None)


def _with_spec(seen: Seen, key: str) -> list[Plain]:
    """The object with name and one key of its spec, whatever else of it is unknown; of a list every member."""
    if has(seen.props, "items"):
        return each_object(object_of(seen))
    metadata = {name: at(seen.props, "metadata", name) for name in ("name", "namespace")}
    return [{**head_of(seen), "metadata": metadata, "spec": {key: plain(at(seen.props, "spec", key))}}]


def _bundle(bundle: Seen) -> Iterator[Finding]:
    inside = [seen for seen in all_objects(bundle.stack) if bundle.urn in _ancestors(bundle.stack, seen)]
    defines = frozenset(_defined(seen) for seen in inside if kind_of(seen) == DEFINITION_KIND)
    objects_in = [seen for seen in inside if kind_of(seen) != DEFINITION_KIND]
    uses = frozenset(kind for seen in objects_in for kind in (kind_of(seen), f"{group_of(seen)}/{stem_of(seen)}"))
    yield from definitions.bundle_findings(Bundle(bundle.name, defines, uses))


def _defined(definition: Seen) -> str:
    return f"{text(definition.props, 'spec', 'group')}/{text(definition.props, 'spec', 'names', 'kind')}"


def _order(definition: Seen) -> Iterator[Finding]:
    """Objects of a kind that the stack defines, as far as they don't wait for it; in one chart another look speaks."""
    if kind_of(definition) != DEFINITION_KIND:
        return
    stack, kind = definition.stack, _defined(definition)
    before = {definition.urn, *_ancestors(stack, definition)}
    bundles = {urn for urn in before if urn in stack.by_urn and stack.by_urn[urn].type in BUNDLES}
    users = [seen for seen in all_objects(stack) if kind in (kind_of(seen), f"{group_of(seen)}/{stem_of(seen)}")]
    apart = [seen for seen in users if not bundles & set(_ancestors(stack, seen))]
    early = [seen.name for seen in apart if not _waits_for(seen, before)]
    yield from definitions.order_findings(kind, definition=definition.name, early=early)


def _waits_for(seen: Seen, wanted: set[str]) -> bool:
    """Whether an object, or a component in which it stands, depends on something, over however many others."""
    ahead = [seen.urn, *_ancestors(seen.stack, seen)]
    known = set(ahead)
    while ahead:
        needed = set(seen.stack.needs.get(ahead.pop(), ()))
        if needed & wanted:
            return True
        ahead += needed - known
        known |= needed
    return False


def _ancestors(stack: Stack, seen: Seen) -> Iterator[str]:
    """The components in which an object stands, from the inside out."""
    above: Seen | None = seen
    while above is not None and above.parent:
        yield above.parent
        above = stack.by_urn.get(above.parent)


_TRIGGER_RULES = tuple(rule for rule in scaling.RULES if rule is not scaling.ONE_OWNER)
CHECKS = (
    Check(_TRIGGER_RULES, EVERY_TYPE, _own_scaler),
    Check(_TRIGGER_RULES, (CONFIG_MAP,), _rendered_scalers),
    StackCheck((scaling.ONE_OWNER,), _owners),
    Check((definitions.CRD_APART,), BUNDLES, _bundle, relates=True),
    Check((definitions.CRD_APART,), EVERY_TYPE, _order, relates=True),
)
