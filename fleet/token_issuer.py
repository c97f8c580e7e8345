"""Who may vouch for tenants by JWT: an issuer, its public keys, and how a claim becomes a tenant."""

import json
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from fleet.spec import Name
from fleet.value import Value

SigningAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures by a private key only: an unsigned token, or one signed with a secret, can't even be allowed."""
Base64Url = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=4096)]


class PublicJwk(Value):
    """A public key as a JSON Web Key; there is no room for a secret or a private part."""

    kid: Annotated[str, Field(max_length=256)] | None = None
    """``None`` = the issuer names none, which is clear only where it has one key for the algorithm."""
    kty: Literal["RSA", "EC", "OKP"]
    alg: SigningAlgorithm | None = None
    """``None`` = any that the issuer may use and the key is fit for."""
    crv: Literal["P-256", "P-384", "P-521", "Ed25519"] | None = None
    n: Base64Url | None = None
    e: Base64Url | None = None
    x: Base64Url | None = None
    y: Base64Url | None = None


class TokenIssuer(Value):
    """One issuer whose tokens stand for keys."""

    issuer: Annotated[str, Field(min_length=1)]
    """What ``iss`` must say, letter by letter."""
    audiences: Annotated[tuple[str, ...], Field(min_length=1)]
    """``aud`` must name one of them: a token for another service is none for this one."""
    algorithms: Annotated[tuple[SigningAlgorithm, ...], Field(min_length=1)] = ("RS256",)
    keys: tuple[PublicJwk, ...] = ()
    tenant_claim: Annotated[str, Field(min_length=1)] = "tenant"
    """The member of the token that says whose it is."""
    tenants: dict[str, Name] = Field(default_factory=dict)
    """Claim to tenant; empty = the claim is the name of a tenant in `allowed_tenants`."""
    allowed_tenants: tuple[Name, ...] = ()
    """Tenants that the issuer may vouch for where `tenants` is empty; the default is none."""
    leeway_seconds: Annotated[int, Field(ge=0, le=300)] = 30
    """How far its clock may differ from ours."""
    models: tuple[str, ...] = ()
    """Public models that its tokens may ask for; empty = all of the tenant's."""


MOST_KEYS = 100
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def keys_in(text: bytes) -> tuple[PublicJwk, ...]:
    """The keys of a JSON Web Key Set that can check signatures; others are left out.

    Raises:
        ValueError: it is no key set, holds none of these, too many, or a private key.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    stated = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(stated, list) or not all(isinstance(key, dict) for key in stated):
        raise ValueError("it is no key set: a list 'keys' of objects is missing")
    if len(stated) > MOST_KEYS:
        raise ValueError(f"it holds {len(stated)} keys; at most {MOST_KEYS} are read")
    if any(_PRIVATE_MEMBERS & key.keys() for key in stated):
        raise ValueError("it shows a secret or private key: whoever can read it can sign")
    found = tuple(key for key in map(_public_key, stated) if key is not None)
    if not found:
        raise ValueError("it holds no public key that signatures can be checked with")
    return found


def _public_key(members: dict[str, object]) -> PublicJwk | None:
    if members.get("use", "sig") != "sig":
        return None
    try:
        return PublicJwk.model_validate({name: members[name] for name in PublicJwk.model_fields if name in members})
    except ValidationError:
        return None
