"""Engines that somebody else runs: an endpoint, a key by reference, no pods."""

from collections.abc import Mapping

from engines.tables import HostedTable
from fleet.engine import HostedTarget
from fleet.manifest import AnyManifest
from fleet.spec import HostedName


def target(manifest: AnyManifest, tables: Mapping[HostedName, HostedTable]) -> HostedTarget | None:
    """Where requests go, or ``None`` when the fleet runs the engine itself."""
    hosted = manifest.spec.hosted
    if hosted is None:
        return None
    return HostedTarget(
        name=hosted.name,
        endpoint=hosted.endpoint.rstrip("/"),
        api_key_ref=hosted.api_key_ref,
        model=hosted.model,
        note=tables[hosted.name].note,
    )
