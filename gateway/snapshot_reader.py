"""Reads a snapshot, or says why it is none: what can't be read as a whole must not be taken for one that denies all."""

import json

from pydantic import ValidationError

from fleet.snapshot import SNAPSHOT_VERSION, GatewaySnapshot
from gateway.errors import GatewayError

_ALWAYS_SAID = frozenset({"tenants", "keys", "routes"})
"""By snapshots of every version; those of this one say everything."""


class SnapshotRefused(GatewayError):
    """It is no snapshot that can be decided by; the message quotes nothing of it but names of fields and a number."""


class NewerSnapshot(SnapshotRefused):
    """Its version is newer than this gateway's, which would miss what it does not know."""


def read_snapshot(content: bytes) -> GatewaySnapshot:
    """The snapshot; raises SnapshotRefused."""
    try:
        snapshot = GatewaySnapshot.model_validate_json(content)
    except ValidationError as error:
        _refuse_newer(_version_of(content))
        places = sorted({".".join(map(str, details["loc"])) for details in error.errors(include_input=False)})[:5]
        raise SnapshotRefused(
            f"it has another shape than this gateway's version {SNAPSHOT_VERSION}, at {places}"
        ) from None
    _refuse_newer(snapshot.version)
    said = snapshot.model_fields_set
    missing = (GatewaySnapshot.model_fields.keys() if snapshot.version == SNAPSHOT_VERSION else _ALWAYS_SAID) - said
    if missing:
        raise SnapshotRefused(f"it has version {snapshot.version} and says nothing of {', '.join(sorted(missing))}")
    return snapshot


def _refuse_newer(version: int) -> None:
    if version > SNAPSHOT_VERSION:
        message = f"it has version {version}, and this gateway reads versions up to {SNAPSHOT_VERSION}"
        raise NewerSnapshot(f"{message}; update the gateway, until then the last good one goes on")


def _version_of(content: bytes) -> int:
    """The version that a snapshot says, even one that can't be read; 0 = it says none."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return 0
    version = document.get("version") if isinstance(document, dict) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else 0
