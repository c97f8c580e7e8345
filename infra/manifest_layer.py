"""What an environment wants to run: its manifests, judged and registered, and the scalers that the program owns."""

from collections.abc import Iterator
from dataclasses import dataclass

import pulumi

from fleet.engine import EngineCatalogue
from infra.manifest_review import Judged
from infra.manifests import Manifests, ManifestsArgs
from infra.scaling import KedaScaler, KedaScalerArgs, has_own_scaler
from workloads import Reason, RenderGround, RenderRefused, render


@dataclass(frozen=True, slots=True)
class ManifestLayer:
    """Manifests and scalers."""

    manifests: Manifests
    scalers: tuple[KedaScaler, ...]


def manifest_layer(
    base: str, found: Judged, catalogue: EngineCatalogue, ground: RenderGround, opts: pulumi.ResourceOptions
) -> ManifestLayer:
    """Registers manifests without problems; says aloud what runs on although advisories refuse it.

    ``opts`` must let it depend on the namespace and on KEDA's chart.
    """
    for warning in found.warnings:
        pulumi.log.warn(warning)
    unrendered = dict(_unrendered(found, catalogue, ground))
    for name, message in unrendered.items():
        state = "it is adopted, and no pods can be made of it any more" if name in found.adopted else "no pods yet"
        pulumi.log.warn(f"{state}: {message}")
    manifests = Manifests(f"{base}-manifests", ManifestsArgs(found.manifests, ground.namespace), opts)
    scalers = tuple(
        KedaScaler(f"{base}-{item.name}-scaler", KedaScalerArgs(item, catalogue, ground), opts)
        for item in found.manifests
        if has_own_scaler(item) and item.name not in unrendered
    )
    return ManifestLayer(manifests, scalers)


def _unrendered(found: Judged, catalogue: EngineCatalogue, ground: RenderGround) -> Iterator[tuple[str, str]]:
    """Deployments that the control plane can't turn into pods here, with the reason."""
    for item in found.manifests:
        try:
            render(item, catalogue, ground)
        except RenderRefused as error:
            if error.reason is not Reason.HOSTED:
                yield item.name, str(error)
