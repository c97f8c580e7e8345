"""Who asks: a key that the snapshot knows, and its tenant. A look-up costs no I/O."""

import hashlib
import hmac
from typing import NamedTuple

from fleet.snapshot import GatewayKey, GatewayTenant
from gateway.index import SnapshotIndex
from gateway.refusals import Reason, Refused, refuse

_MAX_KEY_CHARS = 512
_REJECTED_KEY = (("www-authenticate", "Bearer"),)


class Caller(NamedTuple):
    """Who asks, and by which key."""

    tenant: GatewayTenant
    key: GatewayKey


def authenticate(index: SnapshotIndex, authorization: str, now_unix_seconds: float) -> Caller | Refused:
    """The caller of a header ``Authorization``, or why there is none."""
    scheme, _, presented = authorization.strip().partition(" ")
    presented = presented.strip()
    if scheme.lower() != "bearer" or not presented:
        message = "No API key was sent; send it as the header 'Authorization: Bearer KEY'."
        return refuse(Reason.MISSING_KEY, message, headers=_REJECTED_KEY)
    key = _known_key(index, presented)
    tenant = None if key is None else index.tenants.get(key.tenant)
    if key is None or tenant is None:
        return refuse(Reason.INVALID_KEY, "The API key is not valid here.", headers=_REJECTED_KEY)
    if key.expires_unix_seconds is not None and key.expires_unix_seconds <= now_unix_seconds:
        message = "The API key has expired; ask for a new one."
        return refuse(Reason.EXPIRED_KEY, message, headers=_REJECTED_KEY, tenant=tenant.name)
    return Caller(tenant, key)


def _known_key(index: SnapshotIndex, presented: str) -> GatewayKey | None:
    if len(presented) > _MAX_KEY_CHARS:
        return None
    digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).hexdigest()
    key = index.keys.get(digest)
    return key if key is not None and hmac.compare_digest(digest, key.sha256.lower()) else None
