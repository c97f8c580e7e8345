"""``enginehouse render``: the Kubernetes objects of pinned manifests, without a cluster or a server."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.environment_of import environment_of
from cli.exits import CommandError, Exit, UsageError
from cli.manifests import read_manifest
from cli.output import Format, emit, say, tell
from fleet.manifest import Manifest, PinnedManifest
from fleet.rules import stale
from fleet.spec import IMAGE_PATTERN, NAME_PATTERN
from sources import manifest_file

if TYPE_CHECKING:
    from workloads import NodeLocalWeights, RenderGround, SharedWeights


class Objects(StrEnum):
    """How objects are printed."""

    YAML = "yaml"
    JSON = "json"


class Weights(StrEnum):
    """Where pods find weights."""

    SHARED = "shared"
    NODE_LOCAL = "node-local"


EnvironmentOption = Annotated[
    str | None,
    typer.Option("--env", help="The environment whose node pools count; without it that of the files' folder."),
]
NamespaceOption = Annotated[str, typer.Option(help="The namespace of the objects.")]
WeightsOption = Annotated[
    Weights, typer.Option(help="Where pods find weights: a claim that all mount, or the bucket (no file system).")
]
CopyImageOption = Annotated[
    str | None,
    typer.Option(
        metavar="IMAGE@sha256:...",
        help="With node-local: what copies weights for engines that can't stream, an image with the command aws.",
        show_default=False,
    ),
]
PrometheusOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Where KEDA asks for metrics.", show_default=False)
]


def render(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pinned manifests, or written ones beside.")],
    environment: EnvironmentOption = None,
    namespace: NamespaceOption = "inference",
    weights: WeightsOption = Weights.SHARED,
    copy_image: CopyImageOption = None,
    prometheus: PrometheusOption = None,
    output: Annotated[Objects, typer.Option("--output", "-o", help="How to print the objects.")] = Objects.YAML,
) -> None:
    """Print the Kubernetes objects of pinned manifests; exit 3 if one can't be rendered.

    Of a written manifest the pin beside it is rendered. Nothing is applied and no rule is asked: 'review' judges.

    [dim]Example:[/dim] enginehouse render environments/prod/support-chat.pinned.yaml
    """
    from engines.catalogue import load
    from workloads import RenderRefused
    from workloads import render as render_objects

    manifests = _pinned(files)
    place = _place_of_weights(weights, copy_image)
    ground = _ground(files, environment, namespace, place, prometheus)
    catalogue = load()
    objects, refused = [], []
    for path, manifest in manifests:
        try:
            objects += list(render_objects(manifest, catalogue, ground))
        except RenderRefused as error:
            refused.append(f"{path}: {error} ({error.reason.value})")
    _print(objects, output)
    if refused:
        raise CommandError("\n".join(refused), Exit.REFUSED)


def _place_of_weights(weights: Weights, copy_image: str | None) -> "SharedWeights | NodeLocalWeights":
    from workloads import NodeLocalWeights, SharedWeights

    if copy_image is not None and not re.fullmatch(IMAGE_PATTERN, copy_image):
        raise UsageError(f"the image '{copy_image}' has no digest: give NAME@sha256: and its 64 hex digits")
    if copy_image is not None and weights is Weights.SHARED:
        raise UsageError("nothing is copied from a file system: leave --copy-image out, or take --weights node-local")
    return SharedWeights() if weights is Weights.SHARED else NodeLocalWeights(copy_image=copy_image)


def _ground(
    files: list[Path],
    environment: str | None,
    namespace: str,
    weights: "SharedWeights | NodeLocalWeights",
    prometheus: str | None,
) -> "RenderGround":
    """What the environment and the options say about the cluster."""
    from sources import environment as environment_files
    from sources.errors import SourceError
    from workloads import RenderGround

    if not re.fullmatch(NAME_PATTERN, namespace):
        raise UsageError(f"the namespace '{namespace}' is no DNS label: give lower-case letters, digits and dashes")
    place = environment_of(files, environment)
    try:
        known = environment_files.read(place.parent / place.name)
    except SourceError as error:
        raise UsageError(str(error)) from None
    return RenderGround(
        namespace=namespace,
        pools=known.pools,
        weights=weights,
        prometheus_url=prometheus or RenderGround().prometheus_url,
        model_configs=known.model_configs,
    )


def _pinned(files: list[Path]) -> list[tuple[Path, PinnedManifest]]:
    """Each pinned manifest once: a glob finds the written one and its pin."""
    found: dict[Path, PinnedManifest] = {}
    for path in files:
        manifest = read_manifest(path)
        place = path
        if isinstance(manifest, Manifest):
            place = manifest_file.pinned_path(path)
            manifest = _beside(path, manifest, place)
        if place not in found:
            found[place] = manifest
    return list(found.items())


def _beside(written: Path, source: Manifest, place: Path) -> PinnedManifest:
    """The pin of a written manifest, as long as it is not stale."""
    if not place.exists():
        message = f"{written} is not pinned, and only pinned manifests have objects; run 'enginehouse pin --write"
        raise CommandError(f"{message} {written}'", Exit.REFUSED)
    manifest = read_manifest(place)
    if not isinstance(manifest, PinnedManifest):
        raise UsageError(f"{place} is not a pinned manifest; run 'enginehouse pin --write {written}'")
    violations = stale(source, manifest)
    if violations:
        raise CommandError(f"{place}: {violations[0].message}; {violations[0].remedy}", Exit.REFUSED)
    tell(f"{written} is written; its pin {place} is rendered")
    return manifest


def _print(objects: list[dict[str, object]], output: Objects) -> None:
    """One YAML stream, or one JSON list as ``kubectl`` takes it."""
    if output is Objects.JSON:
        emit({"apiVersion": "v1", "kind": "List", "items": objects}, output=Format.JSON)
        return
    for item in objects:
        say("---")
        emit(item, output=Format.YAML)
