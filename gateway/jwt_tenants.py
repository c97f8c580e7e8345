"""Tenants by JWT: a token is checked against the issuers of the snapshot, with keys that are there already. No I/O.

Tokens are read with PyJWT, which checks signatures. What this module adds is the moment, which is an argument here, and
that nothing in a token chooses how it is checked: the algorithm must be one of its issuer's, all of which are by
private key, and must be fit for the key that ``kid`` names.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.token_issuer import PublicJwk, TokenIssuer
from gateway.token_memory import ChecksLeft, TokenMemory

if TYPE_CHECKING:  # with what it needs it is 10 MB, so that it is loaded with the first issuer
    import jwt
    from jwt.types import Options

MAX_TOKEN_CHARACTERS = 8192
_LEAST_RSA_BITS = 2048
MOST_ACCEPTED = 10_000
MOST_REFUSED = 10_000
REFUSED_SECONDS = 60.0
"""How long a token that was refused is known by its hash; its verdict can't change but by the clock."""
FAILED_CHECKS_PER_SECOND = 50.0
"""Of one issuer's tokens; one costs up to a millisecond. Those that turn out right don't count."""
FAILED_CHECKS_BURST = 200.0
_THREE_PARTS = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
_UNTIMED: "Options" = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "require": ["iss", "aud", "exp"],
}


class Flaw(StrEnum):
    """Why a token is not accepted; the value is a metric's label, the client is told no more than this."""

    MALFORMED = "malformed"
    UNKNOWN_ISSUER = "unknown_issuer"
    ALGORITHM = "algorithm_not_allowed"
    UNKNOWN_KEY = "unknown_key"
    SIGNATURE = "bad_signature"
    AUDIENCE = "wrong_audience"
    CLAIMS = "bad_claims"
    EXPIRED = "expired"
    NOT_YET = "not_valid_yet"
    NO_TENANT = "no_tenant"
    UNCHECKED = "not_checked"
    """So many of its issuer's were wrong that it is not looked at now; it may well be right."""


@dataclass(frozen=True, slots=True)
class Vouched:
    """A token that was accepted."""

    tenant: str
    issuer: str
    expires_unix_seconds: float
    """Leeway included."""
    models: tuple[str, ...] = ()
    """Public models that the issuer's tokens may ask for; empty = all of the tenant's."""


@dataclass(frozen=True, slots=True)
class UnusableKey:
    """A key of the snapshot that is left out, so that tokens signed with it are refused."""

    issuer: str
    kid: str | None
    problem: str


@dataclass(frozen=True, slots=True)
class _Issuer:
    stated: TokenIssuer
    keys: "Mapping[tuple[str | None, str], jwt.PyJWK]" = field(repr=False)
    """By ``kid`` and algorithm."""
    checks: ChecksLeft = field(repr=False, compare=False)

    def key(self, kid: object, algorithm: str) -> "jwt.PyJWK | None":
        """The key that a token names; one that names none is taken where there is no other."""
        if kid is not None:
            return self.keys.get((kid, algorithm)) if isinstance(kid, str) else None
        fit = [key for (_, name), key in self.keys.items() if name == algorithm]
        return fit[0] if len(fit) == 1 else None


class JwtTenants:
    """The issuers of one snapshot, ready to be asked."""

    def __init__(
        self,
        issuers: Iterable[TokenIssuer],
        most_accepted: int = MOST_ACCEPTED,
        failed_checks_per_second: float = FAILED_CHECKS_PER_SECOND,
        failed_checks_burst: float = FAILED_CHECKS_BURST,
    ) -> None:
        self.issuers = tuple(issuers)
        self._issuers: dict[str, _Issuer] = {}
        unusable: list[UnusableKey] = []
        for stated in self.issuers:
            keys: dict[tuple[str | None, str], jwt.PyJWK] = {}
            for key in stated.keys:
                problem = _add(keys, key, stated)
                if problem is not None:
                    unusable.append(UnusableKey(stated.issuer, key.kid, problem))
            checks = ChecksLeft(failed_checks_per_second, failed_checks_burst)
            self._issuers.setdefault(stated.issuer, _Issuer(stated, keys, checks))
        self.unusable = tuple(unusable)
        self._accepted: TokenMemory[Vouched] = TokenMemory(most_accepted)
        self._refused: TokenMemory[tuple[Flaw, float]] = TokenMemory(MOST_REFUSED)
        """Each with the moment of its check."""

    def __bool__(self) -> bool:
        """Whether anybody can be vouched for."""
        return bool(self._issuers)

    def vouch(self, token: str, now_unix_seconds: float) -> Vouched | Flaw:
        """Whose a token is; it stands in no answer, no error and no log.

        A token that was accepted before is known by its hash until it ends, and one that was refused for a while: a
        signature takes longer than all else. While many of an issuer's tokens are wrong, unknown ones are not checked.
        """
        if len(token) > MAX_TOKEN_CHARACTERS or token.count(".") != 2:
            return Flaw.MALFORMED
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._accepted.get(digest)
        if known is not None:
            return known if now_unix_seconds < known.expires_unix_seconds else Flaw.EXPIRED
        refused = self._refused.get(digest)
        if refused is not None and 0 <= now_unix_seconds - refused[1] < _seconds_known(refused[0]):
            return refused[0]
        vouched = self._checked(token, now_unix_seconds)
        if isinstance(vouched, Vouched):
            self._accepted.put(digest, vouched)
        elif vouched is not Flaw.UNCHECKED:
            self._refused.put(digest, (vouched, now_unix_seconds))
        return vouched

    def _checked(self, token: str, now_unix_seconds: float) -> Vouched | Flaw:
        header, payload = map(_unverified, token.split(".")[:2])
        if header is None or payload is None or "crit" in header:  # that has to be understood, and nobody needs it
            return Flaw.MALFORMED
        name = payload.get("iss")
        issuer = self._issuers.get(name) if isinstance(name, str) else None
        if issuer is None:
            return Flaw.UNKNOWN_ISSUER
        algorithm = header.get("alg")
        if algorithm not in issuer.stated.algorithms:
            return Flaw.ALGORITHM
        key = issuer.key(header.get("kid"), algorithm)
        if key is None:
            return Flaw.UNKNOWN_KEY
        if not issuer.checks.take(now_unix_seconds):
            return Flaw.UNCHECKED
        claims = _verified(token, key, algorithm, issuer.stated)
        found = claims if isinstance(claims, Flaw) else _vouched(claims, issuer.stated, now_unix_seconds)
        if isinstance(found, Vouched):
            issuer.checks.give_back()
        return found


def jwt_tenants_of(issuers: Sequence[TokenIssuer], before: JwtTenants | None = None) -> JwtTenants:
    """The issuers of a snapshot; the same ones as ``before`` keep what was accepted."""
    return before if before is not None and before.issuers == tuple(issuers) else JwtTenants(issuers)


def looks_like_a_token(text: str) -> bool:
    """Whether it can be a JWT at all: three parts in base64url."""
    return _THREE_PARTS.fullmatch(text) is not None


def _seconds_known(flaw: Flaw) -> float:
    """One that is not valid yet may be in a moment."""
    return 1.0 if flaw is Flaw.NOT_YET else REFUSED_SECONDS


def _unverified(part: str) -> Mapping[str, object] | None:
    """What a part says, to find the key that the token is checked with: PyJWT reads it again, for itself."""
    try:
        said: object = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _verified(token: str, key: "jwt.PyJWK", algorithm: str, issuer: TokenIssuer) -> Mapping[str, object] | Flaw:
    import jwt

    try:
        claims: Mapping[str, object] = jwt.decode(
            token, key, algorithms=[algorithm], audience=issuer.audiences, issuer=issuer.issuer, options=_UNTIMED
        )
    except jwt.InvalidSignatureError:
        return Flaw.SIGNATURE
    except jwt.DecodeError:
        return Flaw.MALFORMED
    except (jwt.InvalidAudienceError, jwt.MissingRequiredClaimError):
        return Flaw.AUDIENCE
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return Flaw.CLAIMS
    return claims


def _vouched(claims: Mapping[str, object], issuer: TokenIssuer, now: float) -> Vouched | Flaw:
    expires, begins = _moment(claims.get("exp")), _moment(claims.get("nbf", 0))
    if expires is None or begins is None:
        return Flaw.CLAIMS
    if now >= expires + issuer.leeway_seconds:
        return Flaw.EXPIRED
    if now < begins - issuer.leeway_seconds:
        return Flaw.NOT_YET
    tenant = _tenant(claims.get(issuer.tenant_claim), issuer)
    return (
        Flaw.NO_TENANT
        if tenant is None
        else Vouched(tenant, issuer.issuer, expires + issuer.leeway_seconds, issuer.models)
    )


def _moment(claim: object) -> float | None:
    is_number = isinstance(claim, int | float) and not isinstance(claim, bool)
    return float(claim) if is_number and isinstance(claim, int | float) and abs(claim) < 1e15 else None


def _tenant(claim: object, issuer: TokenIssuer) -> str | None:
    if not isinstance(claim, str):
        return None
    if issuer.tenants:
        return issuer.tenants.get(claim)
    return claim if claim in issuer.allowed_tenants else None


def _add(keys: "dict[tuple[str | None, str], jwt.PyJWK]", key: PublicJwk, issuer: TokenIssuer) -> str | None:
    """Make it ready for each algorithm that it is fit for; what is wrong with it, or ``None``."""
    import jwt

    fit = [name for name in issuer.algorithms if _is_fit(key, name)]
    if not fit:
        return "it is fit for none of the issuer's algorithms"
    if key.kty == "RSA" and _bits(key.n or "") < _LEAST_RSA_BITS:
        return f"it has less than {_LEAST_RSA_BITS} bits"
    members = key.model_dump(exclude_none=True, exclude={"alg"})
    for algorithm in fit:
        if (key.kid, algorithm) in keys:
            return "another key has the same 'kid'"
        try:
            keys[key.kid, algorithm] = jwt.PyJWK({**members, "alg": algorithm})
        except (jwt.PyJWTError, ValueError, TypeError):
            return "its members make no key"
    return None


def _is_fit(key: PublicJwk, algorithm: str) -> bool:
    if key.alg not in (None, algorithm) or key.kty != _KEY_TYPES[algorithm[:2]]:
        return False
    return key.crv == _CURVES.get(algorithm)


def _bits(number: str) -> int:
    """Of a number in unpadded base64; 0 = it is none."""
    try:
        return int.from_bytes(base64.urlsafe_b64decode(number + "=" * (-len(number) % 4))).bit_length()
    except ValueError:
        return 0
