"""Scalers that the program makes itself: of deployments with ``scaling.managed_by: pulumi``."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from fleet.engine import EngineCatalogue
from fleet.manifest import PinnedManifest
from workloads import RenderGround
from workloads.render import PROGRAM
from workloads.scaling import is_scaled, scaled_object


@dataclass(frozen=True, slots=True)
class KedaScalerArgs:
    """Of which deployment, on which cluster."""

    manifest: PinnedManifest
    catalogue: EngineCatalogue
    ground: RenderGround


class KedaScaler(pulumi.ComponentResource):
    """A ScaledObject, the same that rendering gives. KEDA's definitions must be there: depend on its chart."""

    def __init__(self, name: str, args: KedaScalerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:KedaScaler", name, None, opts)
        found = scaled_object(args.manifest, args.catalogue, args.ground)
        head = found["metadata"]
        self.scaled_object = CustomResource(
            f"{name}-scaled-object",
            api_version=found["apiVersion"],
            kind=found["kind"],
            metadata=ObjectMetaArgs(name=head["name"], namespace=head["namespace"], labels=head["labels"]),
            spec=found["spec"],
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"deployment": args.manifest.name})


def has_own_scaler(manifest: PinnedManifest) -> bool:
    """Whether the program makes a deployment's scaler."""
    scaling = manifest.spec.scaling
    return manifest.spec.hosted is None and scaling.managed_by == PROGRAM and is_scaled(scaling)
