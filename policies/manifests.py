"""Policies on what runs: manifests in ConfigMaps, the objects that they render to, and objects of a program itself."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from pulumi_policy.proxy import UnknownValueError

from fleet.cloud import limits, manifests, node_images, objects
from fleet.cloud.finding import Finding
from fleet.cloud.labels import MANIFEST_LABEL
from fleet.manifest import ManifestError, PinnedManifest, parse
from policies.adapter import Check, Seen
from policies.knowledge import Files, StackFacts
from policies.kubernetes_objects import EVERY_TYPE, group_of, head_of, holds_pods, object_of, stem_of
from policies.reading import at, has, labels, plain, text
from workloads import KubernetesObject, NodeLocalWeights, RenderGround, RenderRefused, SharedWeights, render
from workloads.pod_reading import host_path, pod_owners, texts_of
from workloads.values import Plain, each_object, kind_and_part, object_id

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
KEY = "manifest.yaml"
_LATER = "known after the update"
MOST_REMEMBERED = 256
"""Manifests; every rule asks for the same one again."""


def manifest_of(seen: Seen) -> PinnedManifest | None:
    """The pinned manifest of a ConfigMap; ``None`` where it carries none, or one that can't be read."""
    stated = _stated(seen)
    return None if stated is None else _parsed(stated)


def is_manifest(seen: Seen) -> bool:
    """Whether a ConfigMap is labelled as a manifest."""
    return MANIFEST_LABEL in labels(seen.props, "metadata", "labels")


def rendered(seen: Seen) -> tuple[KubernetesObject, ...]:
    """What a ConfigMap's manifest renders to; nothing where it can't be rendered, which the program says."""
    stated = _stated(seen)
    return () if stated is None else _rendered(stated, seen.ground.files, seen.ground.stack)


def _stated(seen: Seen) -> str | None:
    """The text of its manifest, if it carries one that can be read."""
    stated = text(seen.props, "data", KEY) if is_manifest(seen) and has(seen.props, "data") else None
    return stated if stated is not None and _problem(stated) is None else None


@lru_cache(maxsize=MOST_REMEMBERED)
def _problem(stated: str) -> str | None:
    """Why a text is no pinned manifest, or ``None``."""
    try:
        found = parse(stated, source=KEY)
    except ManifestError as error:
        return str(error)
    return None if isinstance(found, PinnedManifest) else f"{KEY}: {found.kind} is not pinned"


@lru_cache(maxsize=MOST_REMEMBERED)
def _parsed(stated: str) -> PinnedManifest | None:
    found = parse(stated, source=KEY)
    return found if isinstance(found, PinnedManifest) else None


@lru_cache(maxsize=MOST_REMEMBERED)
def _rendered(stated: str, files: Files, stack: StackFacts) -> tuple[KubernetesObject, ...]:
    manifest = _parsed(stated)
    if manifest is None:
        return ()
    weights = NodeLocalWeights(copy_image=stack.copy_image) if stack.is_node_local else SharedWeights()
    cluster = RenderGround(pools=stack.pools, weights=weights, model_configs=files.facts.model_configs)
    try:
        return render(manifest, files.catalogue, cluster)
    except RenderRefused:
        return ()


@lru_cache(maxsize=MOST_REMEMBERED)
def _reviewed(stated: str, files: Files) -> tuple[Finding, ...]:
    manifest = _parsed(stated)
    if manifest is None:
        return ()
    running = {(item.name, item.identity) for item in files.written.adopted}
    is_running = (manifest.name, manifest.identity) in running
    return tuple(manifests.manifest_findings(manifest, files.facts, files.catalogue, is_running=is_running))


def _readable(seen: Seen) -> Iterator[Finding]:
    if not is_manifest(seen):
        return
    if not has(seen.props, "data") or text(seen.props, "data", KEY) is None:
        yield Finding(manifests.UNREADABLE, f"no key {KEY}")
        return
    problem = _problem(text(seen.props, "data", KEY) or "")
    if problem is not None:
        yield Finding(manifests.UNREADABLE, f"what stands there is no pinned manifest ({problem})")


def _review(seen: Seen) -> Iterator[Finding]:
    stated = _stated(seen)
    if stated is not None:
        yield from _reviewed(stated, seen.ground.files)


def _rendered_objects(seen: Seen) -> Iterator[Finding]:
    yield from _objects(seen, rendered(seen))


def _own_object(seen: Seen) -> Iterator[Finding]:
    if holds_pods(seen):
        yield from _objects(seen, (object_of(seen),))


def _volume(seen: Seen) -> Iterator[Finding]:
    if stem_of(seen) == "PersistentVolume" and not group_of(seen):
        spec = {"hostPath": plain(at(seen.props, "spec", "hostPath"))} if _has_path(seen) else {}
        for item in _members(seen, {"spec": spec}, "spec"):
            yield from objects.volume_findings(object_id(kind_and_part(item)[0], item), host_path(item))


def _has_path(seen: Seen) -> bool:
    spec = at(seen.props, "spec")
    return isinstance(spec, Mapping) and has(spec, "hostPath")


def _config(seen: Seen) -> Iterator[Finding]:
    if stem_of(seen) == "ConfigMap" and not group_of(seen):
        for item in _members(seen, {"data": _known_texts(at(seen.props, "data"))}, "data"):
            yield from objects.config_findings(object_id(kind_and_part(item)[0], item), texts_of(item.get("data")))


def _members(seen: Seen, stated: KubernetesObject, key: str) -> Sequence[Plain]:
    """The object with what is stated of it, if anything; of a list every member."""
    if has(seen.props, "items"):
        return each_object(object_of(seen))
    metadata = {name: at(seen.props, "metadata", name) for name in ("name", "namespace")}
    return [{**head_of(seen), "metadata": metadata, **stated}] if has(seen.props, key) else []


def _known_texts(values: object) -> dict[str, str]:
    """The values of a ConfigMap; of one that is not known yet the name speaks."""
    found: dict[str, str] = {}
    if not isinstance(values, Mapping):
        return found
    for key in values:
        try:
            found[str(key)] = str(values[key])
        except UnknownValueError:
            found[str(key)] = _LATER
    return found


def _objects(seen: Seen, items: Sequence[KubernetesObject]) -> Iterator[Finding]:
    registries = seen.ground.platform.image_registries
    for owner in (owner for item in items for owner in pod_owners(item, seen.ground.stack.pools)):
        yield from objects.object_findings(owner)
        for image in owner.images:
            yield from limits.registry_findings(image, registries)


def _cuda(seen: Seen) -> Iterator[Finding]:
    """The CUDA of an engine image, as the environment's images say it, against the drivers of the pools it may take."""
    manifest = manifest_of(seen)
    image = manifest.spec.engine.image if manifest is not None and manifest.spec.engine is not None else None
    if manifest is None or image is None or manifest.spec.hardware is None:
        return
    cuda = next((item.cuda for item in seen.ground.files.facts.images if item.digest == image and item.cuda), None)
    asked = (manifest.spec.hardware.instance_type, manifest.spec.hardware.purchase)
    for pool in seen.ground.stack.pools:
        driver = seen.ground.stack.drivers.get(pool.name)
        if (pool.instance_type, pool.purchase) == asked:
            yield from node_images.cuda_findings(f"{image} on pool {pool.name}", cuda=cuda, driver=driver)


_MAPS = (CONFIG_MAP,)
_OBJECT_RULES = (*objects.RULES, limits.REGISTRY)
CHECKS = (
    Check((manifests.UNREADABLE,), _MAPS, _readable),
    Check((manifests.REFUSED, manifests.ADVISED), _MAPS, _review),
    Check(_OBJECT_RULES, _MAPS, _rendered_objects),
    Check(_OBJECT_RULES, EVERY_TYPE, _own_object),
    Check((objects.HOST,), EVERY_TYPE, _volume),
    Check((objects.PLAIN_SECRET,), EVERY_TYPE, _config),
    Check((node_images.CUDA_DRIVER,), _MAPS, _cuda),
)
