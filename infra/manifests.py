"""The manifests of an environment in the cluster: one ConfigMap each, which the control plane adopts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from fleet.cloud.labels import IDENTITY_LABEL, MANIFEST_LABEL
from fleet.manifest import PinnedManifest, dump
from workloads.names import fitted

KEY = "manifest.yaml"
"""Under which a ConfigMap holds its manifest."""


@dataclass(frozen=True, slots=True)
class ManifestsArgs:
    """Which manifests, where."""

    manifests: Sequence[PinnedManifest]
    """Judged before."""
    namespace: str


class Manifests(pulumi.ComponentResource):
    """ConfigMaps that change in place: their names are fixed, and the provider takes them for mutable."""

    config_maps: Mapping[str, core.ConfigMap]
    """By the deployment's name."""
    identities: Mapping[str, str]
    """What of each is registered: ``adopted.yaml`` is made of it."""

    def __init__(self, name: str, args: ManifestsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Manifests", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.config_maps = {
            item.name: core.ConfigMap(f"{name}-{item.name}", metadata=_head(item, args), data=_data(item), opts=child)
            for item in args.manifests
        }
        self.identities = {item.name: item.identity for item in args.manifests}
        self.register_outputs({"identities": dict(self.identities)})


def config_map_name(deployment: str) -> str:
    """The name of a deployment's ConfigMap."""
    return fitted(f"manifest-{deployment}")


def _head(item: PinnedManifest, args: ManifestsArgs) -> ObjectMetaArgs:
    return ObjectMetaArgs(
        name=config_map_name(item.name),
        namespace=args.namespace,
        labels={MANIFEST_LABEL: item.name, IDENTITY_LABEL: item.identity, "app.kubernetes.io/part-of": "enginehouse"},
    )


def _data(item: PinnedManifest) -> dict[str, str]:
    """The manifest as it reads back, so that comments and blanks in its file change nothing."""
    return {KEY: dump(item)}
