"""Tenants by JWT: only what an issuer of the snapshot signed with its own kind of key, for us, now, is accepted."""

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from pydantic import ValidationError

from fleet.token_issuer import PublicJwk, TokenIssuer
from gateway.jwt_tenants import REFUSED_SECONDS, Flaw, JwtTenants, Vouched

NOW = 1_900_000_000
ISSUER = "https://login.example.com/"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
OTHER_ED_KEY = ed25519.Ed25519PrivateKey.generate()


def jwk(private, kid, **more):
    algorithm = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    kind = next((a for k, a in algorithm.items() if isinstance(private, k)), OKPAlgorithm)
    members = kind.to_jwk(private.public_key(), as_dict=True)
    members.pop("key_ops", None)
    return PublicJwk.model_validate({**members, "kid": kid, **more})


def issuer(**fields):
    stated = {
        "issuer": ISSUER,
        "audiences": ("gateway",),
        "algorithms": ("RS256", "ES256", "EdDSA"),
        "keys": (jwk(RSA_KEY, "r"), jwk(EC_KEY, "e"), jwk(ED_KEY, "o")),
        "allowed_tenants": ("acme",),
    }
    return TokenIssuer(**{**stated, **fields})


TENANTS = JwtTenants([issuer()])


def claims(**fields):
    stated = {"iss": ISSUER, "aud": "gateway", "exp": NOW + 600, "tenant": "acme", **fields}
    return {name: value for name, value in stated.items() if value is not None}


def token(key=RSA_KEY, algorithm="RS256", kid="r", headers=(), **fields):
    stated = {"kid": kid, **dict(headers)}
    return jwt.encode(claims(**fields), key, algorithm, {name: v for name, v in stated.items() if v is not None})


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


GOOD = token()


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"), [(RSA_KEY, "RS256", "r"), (EC_KEY, "ES256", "e"), (ED_KEY, "EdDSA", "o")]
)
def test_a_token_of_the_issuer_is_its_tenants(key, algorithm, kid):
    assert TENANTS.vouch(token(key, algorithm, kid), NOW) == Vouched("acme", ISSUER, NOW + 630)


@given(text=st.text(max_size=80) | st.text("abcdef.-_=", max_size=80))
def test_whatever_is_sent_the_answer_is_a_flaw(text):
    assert isinstance(TENANTS.vouch(text, NOW), Flaw)


@given(place=st.integers(0, len(GOOD) - 1), letter=st.sampled_from("ABCxyz059-_."))
def test_one_changed_letter_makes_a_token_of_nobody(place, letter):
    changed = GOOD[:place] + letter + GOOD[place + 1 :]
    outcome = TENANTS.vouch(changed, NOW)
    assert isinstance(outcome, Flaw) or decoded(changed) == decoded(GOOD)


def decoded(text):
    return [base64.urlsafe_b64decode(piece + "==") for piece in text.split(".")]


@given(
    payload=st.dictionaries(
        st.sampled_from(["iss", "aud", "exp", "nbf", "iat", "tenant", "sub"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.just(ISSUER)
        | st.lists(st.just("gateway")),
    )
)
def test_whatever_an_issuer_signs_nothing_raises(payload):
    text = ".".join([part({"alg": "EdDSA", "kid": "o"}), part(payload)])
    signature = base64.urlsafe_b64encode(ED_KEY.sign(text.encode())).decode().rstrip("=")
    outcome = TENANTS.vouch(f"{text}.{signature}", NOW)
    assert isinstance(outcome, Flaw)


def test_an_unsigned_token_is_refused():
    for name in ("none", "None", "NONE", "nOnE"):
        unsigned = f"{part({'alg': name, 'kid': 'r'})}.{part(claims())}."
        assert TENANTS.vouch(unsigned, NOW) in (Flaw.ALGORITHM, Flaw.MALFORMED)


def test_a_public_key_is_no_secret_to_sign_with():
    public = RSA_KEY.public_key()
    encodings = (
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
        json.dumps(RSAAlgorithm.to_jwk(public, as_dict=True)).encode(),
    )
    for secret in encodings:
        text = f"{part({'alg': 'HS256', 'kid': 'r'})}.{part(claims())}"
        signature = base64.urlsafe_b64encode(hmac.digest(secret, text.encode(), hashlib.sha256)).decode().rstrip("=")
        assert TENANTS.vouch(f"{text}.{signature}", NOW) is Flaw.ALGORITHM


@pytest.mark.parametrize("name", ["HS256", "none", "HS512"])
def test_an_issuer_cannot_even_allow_secrets_or_no_signature(name):
    with pytest.raises(ValidationError):
        issuer(algorithms=(name,))
    with pytest.raises(ValidationError):
        PublicJwk.model_validate({"kty": "oct", "k": "c2VjcmV0"})


@pytest.mark.parametrize(
    ("made", "flaw"),
    [
        (lambda: token(OTHER_RSA_KEY), Flaw.SIGNATURE),
        (lambda: token(iss="https://elsewhere.example.com/"), Flaw.UNKNOWN_ISSUER),
        (lambda: token(iss=None), Flaw.UNKNOWN_ISSUER),
        (lambda: token(iss=ISSUER[:-1]), Flaw.UNKNOWN_ISSUER),
        (lambda: token(aud="another"), Flaw.AUDIENCE),
        (lambda: token(aud=None), Flaw.AUDIENCE),
        (lambda: token(aud=["another", "more"]), Flaw.AUDIENCE),
        (lambda: token(exp=None), Flaw.AUDIENCE),
        (lambda: token(exp=NOW - 30), Flaw.EXPIRED),
        (lambda: token(exp=True), Flaw.CLAIMS),
        (lambda: token(exp="never"), Flaw.CLAIMS),
        (lambda: token(exp=1e300), Flaw.CLAIMS),
        (lambda: token(nbf=NOW + 31), Flaw.NOT_YET),
        (lambda: token(nbf="now"), Flaw.CLAIMS),
        (lambda: token(tenant="globex"), Flaw.NO_TENANT),
        (lambda: token(tenant=None), Flaw.NO_TENANT),
        (lambda: token(tenant=["acme"]), Flaw.NO_TENANT),
        (lambda: token(kid="unknown"), Flaw.UNKNOWN_KEY),
        (lambda: token(kid="e"), Flaw.UNKNOWN_KEY),
        (lambda: token(algorithm="RS512"), Flaw.ALGORITHM),
        (lambda: token(headers={"crit": ["exp"], "exp": 1}), Flaw.MALFORMED),
        (lambda: "a" * 9000, Flaw.MALFORMED),
    ],
)
def test_each_flaw_is_told_apart(made, flaw):
    assert TENANTS.vouch(made(), NOW) is flaw


def test_clocks_may_differ_by_the_leeway():
    assert isinstance(TENANTS.vouch(token(exp=NOW - 29), NOW), Vouched)
    assert isinstance(TENANTS.vouch(token(nbf=NOW + 30), NOW), Vouched)
    assert JwtTenants([issuer(leeway_seconds=0)]).vouch(token(exp=NOW), NOW) is Flaw.EXPIRED


def test_of_several_audiences_one_is_enough():
    assert isinstance(TENANTS.vouch(token(aud=["another", "gateway"]), NOW), Vouched)


def test_a_claim_can_be_translated_into_a_tenant():
    tenants = JwtTenants([issuer(tenant_claim="org_id", tenants={"org-7": "acme"})])
    assert tenants.vouch(token(org_id="org-7"), NOW).tenant == "acme"
    assert tenants.vouch(token(org_id="acme"), NOW) is Flaw.NO_TENANT


def test_a_token_without_kid_is_clear_only_with_one_key_for_its_algorithm():
    assert isinstance(TENANTS.vouch(token(kid=None), NOW), Vouched)
    two = JwtTenants([issuer(keys=(jwk(RSA_KEY, "r"), jwk(OTHER_RSA_KEY, "s")))])
    assert two.vouch(token(kid=None), NOW) is Flaw.UNKNOWN_KEY
    assert isinstance(two.vouch(token(kid="r"), NOW), Vouched)


def test_a_key_stated_for_one_algorithm_serves_no_other():
    tenants = JwtTenants([issuer(algorithms=("RS256", "RS512"), keys=(jwk(RSA_KEY, "r", alg="RS512"),))])
    assert tenants.vouch(token(), NOW) is Flaw.UNKNOWN_KEY
    assert isinstance(tenants.vouch(token(algorithm="RS512"), NOW), Vouched)


def test_a_key_that_is_none_is_left_out_and_named_and_the_others_serve():
    small = PublicJwk(kid="small", kty="RSA", n="AQAB", e="AQAB")
    broken = PublicJwk(kid="broken", kty="EC", crv="P-256", x="AA", y="AA")
    unfit = PublicJwk(kid="unfit", kty="EC", crv="P-521", x="AA", y="AA")
    tenants = JwtTenants([issuer(keys=(small, broken, unfit, jwk(RSA_KEY, "r"), jwk(OTHER_RSA_KEY, "r")))])
    assert [(key.kid, key.problem) for key in tenants.unusable] == [
        ("small", "it has less than 2048 bits"),
        ("broken", "its members make no key"),
        ("unfit", "it is fit for none of the issuer's algorithms"),
        ("r", "another key has the same 'kid'"),
    ]
    assert isinstance(tenants.vouch(GOOD, NOW), Vouched)


def test_without_issuers_nobody_is_vouched_for():
    assert not JwtTenants([])
    assert JwtTenants([]).vouch(GOOD, NOW) is Flaw.UNKNOWN_ISSUER


def forged(number):
    """Each another one; their signatures are wrong."""
    return token(OTHER_ED_KEY, "EdDSA", "o", sub=str(number))


def test_a_token_that_was_refused_is_known_for_a_while_and_costs_no_check():
    tenants = JwtTenants([issuer()], failed_checks_per_second=0, failed_checks_burst=1)
    wrong = forged(1)
    assert {tenants.vouch(wrong, NOW + seconds) for seconds in range(int(REFUSED_SECONDS))} == {Flaw.SIGNATURE}
    assert tenants.vouch(wrong, NOW + REFUSED_SECONDS) is Flaw.UNCHECKED
    early = JwtTenants([issuer()])
    not_yet = token(nbf=NOW + 100)
    assert early.vouch(not_yet, NOW) is early.vouch(not_yet, NOW + 0.5) is Flaw.NOT_YET
    assert isinstance(early.vouch(not_yet, NOW + 71), Vouched)


def test_a_clock_that_was_wrong_leaves_no_verdict():
    tenants = JwtTenants([issuer()])
    assert tenants.vouch(GOOD, NOW + 10_000) is Flaw.EXPIRED
    assert isinstance(tenants.vouch(GOOD, NOW), Vouched)


def test_many_wrong_tokens_are_not_checked_and_hurt_neither_known_ones_nor_other_issuers():
    other = issuer(issuer="https://other.example.com/")
    tenants = JwtTenants([issuer(), other], failed_checks_per_second=10, failed_checks_burst=20)
    assert isinstance(tenants.vouch(GOOD, NOW), Vouched)
    flaws = [tenants.vouch(forged(number), NOW) for number in range(100)]
    assert (flaws.count(Flaw.SIGNATURE), flaws.count(Flaw.UNCHECKED)) == (20, 80)
    assert isinstance(tenants.vouch(GOOD, NOW), Vouched)
    assert isinstance(tenants.vouch(token(iss="https://other.example.com/"), NOW), Vouched)
    new = token(sub="new")
    assert tenants.vouch(new, NOW) is Flaw.UNCHECKED
    assert isinstance(tenants.vouch(new, NOW + 1), Vouched), "it was not taken for a wrong one"
    assert [tenants.vouch(forged(number), NOW + 1) for number in range(100, 120)].count(Flaw.SIGNATURE) == 10


def test_right_tokens_are_checked_however_many_they_are():
    tenants = JwtTenants([issuer()], failed_checks_per_second=0, failed_checks_burst=1)
    for number in range(50):
        assert isinstance(tenants.vouch(token(ED_KEY, "EdDSA", "o", sub=str(number)), NOW), Vouched)


def test_a_token_that_was_accepted_ends_all_the_same_and_not_all_are_remembered():
    tenants = JwtTenants([issuer()], most_accepted=2)
    tokens = [token(ED_KEY, "EdDSA", "o", exp=NOW + extra) for extra in (10, 20, 30, 40)]
    for text in (*tokens, *tokens):
        assert isinstance(tenants.vouch(text, NOW), Vouched)
    assert tenants.vouch(tokens[3], NOW + 69) == Vouched("acme", ISSUER, NOW + 70)
    assert tenants.vouch(tokens[3], NOW + 70) is Flaw.EXPIRED
    assert len(tenants._accepted) == 2


def test_a_token_shows_nowhere():
    vouched = TENANTS.vouch(GOOD, NOW)
    assert not any(piece in repr((vouched, TENANTS)) for piece in GOOD.split("."))
