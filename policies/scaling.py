"""Policies on what decides the number of replicas, and on definitions that come with objects of theirs."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from fleet.cloud import scaling
from fleet.cloud.finding import Finding
from fleet.cloud.scaling import Bundle, Claim, Workload
from fleet.engine import MetricsDialect
from policies.adapter import Check, Seen, Stack, StackCheck
from policies.knowledge import Files, Ground
from policies.kubernetes_objects import BUNDLES, DEFINITION, POD_OWNERS, SCALED_OBJECTS, SCALERS, kind_of, object_of
from policies.manifests import CONFIG_MAP, is_manifest, manifest_of, rendered
from policies.reading import labels, text
from workloads import reading

_ENGINE_LABEL = "app.kubernetes.io/name"
_REPLICAS = ("spec.replicas", "spec", "*")
"""What a program may say to leave the number of replicas to others."""


def _own_scaler(seen: Seen) -> Iterator[Finding]:
    engine = labels(seen.props, "metadata", "labels").get(_ENGINE_LABEL)
    dialects = _dialects(seen.ground.files, engine)
    found = reading.scaler(object_of(seen), dialects)
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


def _owners(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding]]:
    maps = [seen for seen in stack.of(CONFIG_MAP) if is_manifest(seen)]
    items = [item for seen in maps for item in rendered(seen)]
    claims = [claim for item in items if (claim := reading.claim(item)) is not None]
    workloads = [found for item in items if (found := reading.workload(item)) is not None]
    for finding in scaling.owner_findings([*workloads, *_own_workloads(stack)], [*claims, *_own_claims(stack, claims)]):
        yield None, finding


def _own_workloads(stack: Stack) -> Iterator[Workload]:
    for seen in stack.of(*POD_OWNERS):
        ignores = any(path in _REPLICAS for path in seen.ignored)
        found = reading.workload(object_of(seen), ignores_replicas=ignores)
        if found is not None:
            yield found


def _own_claims(stack: Stack, rendered_ones: Sequence[Claim]) -> Iterator[Claim]:
    """The scalers of the program; one that rendering gives as well is the same one."""
    for seen in stack.of(*SCALERS):
        found = reading.claim(object_of(seen))
        if found is not None and found not in rendered_ones:
            yield found


def _bundles(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding]]:
    for bundle in stack.of(*BUNDLES):
        inside = [seen for seen in stack.by_urn.values() if seen.parent == bundle.urn]
        defines = frozenset(
            f"{text(seen.props, 'spec', 'group')}/{text(seen.props, 'spec', 'names', 'kind')}"
            for seen in inside
            if seen.type == DEFINITION
        )
        uses = frozenset(kind_of(seen) for seen in inside if seen.type != DEFINITION)
        for finding in scaling.bundle_findings(Bundle(bundle.name, defines, uses)):
            yield bundle, finding


_TRIGGER_RULES = tuple(rule for rule in scaling.RULES if rule not in (scaling.ONE_OWNER, scaling.CRD_APART))
CHECKS = (
    Check(_TRIGGER_RULES, SCALED_OBJECTS, _own_scaler),
    Check(_TRIGGER_RULES, (CONFIG_MAP,), _rendered_scalers),
    StackCheck((scaling.ONE_OWNER,), _owners),
    StackCheck((scaling.CRD_APART,), _bundles),
)
