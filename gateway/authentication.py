"""Who asks: a key that the snapshot knows, or a token that one of its issuers signed. It costs no I/O."""

import hashlib
import hmac
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from fleet.api_keys import KEY_MARK, Form, form_of
from fleet.snapshot import GatewayKey, GatewayTenant
from gateway.index import SnapshotIndex
from gateway.jwt_tenants import MAX_TOKEN_CHARACTERS, Flaw, Vouched, looks_like_a_token
from gateway.refusals import Reason, Refused, refuse

_MAX_KEY_CHARS = 512
_REJECTED_KEY = (("www-authenticate", "Bearer"),)
_REJECTED_TOKEN = (("www-authenticate", 'Bearer error="invalid_token"'),)
_LATER = (("retry-after", "1"),)
_MAX_ID_CHARS = 128


class KeyFlaw(StrEnum):
    """Why a key does not count; the value is a metric's label."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    MISTYPED = "mistyped"
    EXPIRED = "expired"


class Caller(NamedTuple):
    """Who asks, and by which key; a token stands for one that its issuer has."""

    tenant: GatewayTenant
    key: GatewayKey


def authenticate(index: SnapshotIndex, authorization: str, now_unix_seconds: float) -> Caller | Refused:
    """The caller of a header ``Authorization``, or why there is none."""
    scheme, _, presented = authorization.strip().partition(" ")
    presented = presented.strip()
    if scheme.lower() != "bearer" or not presented:
        message = "No API key was sent; send it as the header 'Authorization: Bearer KEY'."
        return _refused_key(Reason.MISSING_KEY, KeyFlaw.MISSING, message)
    key = _known_key(index, presented)
    if key is None and index.tokens and looks_like_a_token(presented[: MAX_TOKEN_CHARACTERS + 1]):
        return _vouched_for(index, presented, now_unix_seconds)
    tenant = None if key is None else index.tenants.get(key.tenant)
    if key is None or tenant is None:
        return _unknown_key(presented)
    if key.expires_unix_seconds is not None and key.expires_unix_seconds <= now_unix_seconds:
        message = "The API key has expired; ask for a new one."
        return _refused_key(Reason.EXPIRED_KEY, KeyFlaw.EXPIRED, message, tenant.name)
    return Caller(tenant, key)


def _known_key(index: SnapshotIndex, presented: str) -> GatewayKey | None:
    if len(presented) > _MAX_KEY_CHARS:
        return None
    digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).hexdigest()
    key = index.keys.get(digest)
    return key if key is not None and hmac.compare_digest(digest, key.sha256.lower()) else None


def _unknown_key(presented: str) -> Refused:
    """A key that can't have been made here is told apart without asking who made it."""
    if len(presented) <= _MAX_KEY_CHARS and form_of(presented, KEY_MARK) is Form.MISTYPED:
        message = "The API key is mistyped or cut off: its check characters do not fit."
        return _refused_key(Reason.INVALID_KEY, KeyFlaw.MISTYPED, message)
    return _refused_key(Reason.INVALID_KEY, KeyFlaw.UNKNOWN, "The API key is not valid here.")


def _refused_key(reason: Reason, flaw: KeyFlaw, message: str, tenant: str | None = None) -> Refused:
    refused = refuse(reason, message, headers=_REJECTED_KEY, tenant=tenant)
    return replace(refused, credential=("key", flaw.value))


def _vouched_for(index: SnapshotIndex, token: str, now_unix_seconds: float) -> Caller | Refused:
    vouched = index.tokens.vouch(token, now_unix_seconds)
    if isinstance(vouched, Vouched):
        tenant = index.tenants.get(vouched.tenant)
        if tenant is not None:
            return Caller(tenant, _key_of(vouched))
        vouched = Flaw.NO_TENANT
    if vouched is Flaw.UNCHECKED:
        message = "Too many tokens of this issuer were wrong; this one was not checked. Try again in a moment."
        refused = refuse(Reason.TOO_MANY_REQUESTS, message, headers=_LATER)
        return replace(refused, credential=("token", vouched.value))
    message = f"The token is not accepted: {vouched.value}."
    refused = refuse(Reason.INVALID_TOKEN, message, headers=_REJECTED_TOKEN)
    return replace(refused, credential=("token", vouched.value))


def _key_of(vouched: Vouched) -> GatewayKey:
    """The key that a token stands for: named by its issuer, with the scopes that the issuer has."""
    name, end = f"jwt:{vouched.issuer}"[:_MAX_ID_CHARS], int(vouched.expires_unix_seconds)
    return GatewayKey.model_construct(
        id=name, sha256="", tenant=vouched.tenant, models=vouched.models, expires_unix_seconds=end
    )
