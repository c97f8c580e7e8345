"""Who asks: keys by their hash, tokens by their issuer's signature; everybody else gets 401 and a metric's word."""

import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import OKPAlgorithm

from fleet.api_keys import KEY_MARK, RANDOM_BYTES, mint
from fleet.token_issuer import TokenIssuer
from gateway.asked import Request
from gateway.authentication import Caller, authenticate
from gateway.decision import Allowed, DecisionCore
from gateway.index import index_of
from gateway.refusals import Reason, Refused
from gateway.telemetry import Telemetry

ISSUER = "https://login.example.com/"
SIGNER = ed25519.Ed25519PrivateKey.generate()
OTHER = ed25519.Ed25519PrivateKey.generate()
RANDOM = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)


def issuer(**fields):
    members = OKPAlgorithm.to_jwk(SIGNER.public_key(), as_dict=True)
    members.pop("key_ops", None)
    stated = {"issuer": ISSUER, "audiences": ["gateway"], "algorithms": ["EdDSA"], "allowed_tenants": ["acme", "gone"]}
    return TokenIssuer.model_validate({**stated, "keys": [{**members, "kid": "one"}], **fields})


def token(world, key=SIGNER, **claims):
    stated = {"iss": ISSUER, "aud": "gateway", "exp": world.now + 600, "tenant": "acme", **claims}
    return jwt.encode(stated, key, "EdDSA", {"kid": "one"})


def indexed(world, *issuers, before=None):
    return index_of(world.snapshot().model_copy(update={"issuers": issuers}), before=before)


def asked(index, text, world):
    return authenticate(index, f"Bearer {text}", world.now)


def test_a_token_of_an_issuer_asks_for_its_tenant(world):
    caller = asked(indexed(world, issuer()), token(world), world)
    assert isinstance(caller, Caller)
    assert (caller.tenant.name, caller.key.id, caller.key.tenant) == ("acme", f"jwt:{ISSUER}", "acme")
    assert not caller.key.pins_arms
    assert caller.key.admits("any")


def test_the_models_of_an_issuer_are_the_scope_of_its_tokens(world):
    core = DecisionCore()
    core.replace(indexed(world, issuer(models=["both-chat"])), world.now)
    statuses = {}
    for model in ("both-chat", "acme-chat", "globex-chat"):
        body = json.dumps({"model": model, "messages": []}).encode()
        headers = {"authorization": f"Bearer {token(world)}"}
        decision = core.decide(Request("POST", "/v1/chat/completions", headers, body), world.now)
        statuses[model] = "allowed" if isinstance(decision, Allowed) else decision.reason
    assert statuses == {
        "both-chat": "allowed",
        "acme-chat": Reason.MODEL_NOT_FOUND,
        "globex-chat": Reason.MODEL_NOT_FOUND,
    }


@pytest.mark.parametrize(
    ("claims", "signer", "flaw"),
    [
        ({"exp": 1}, SIGNER, "expired"),
        ({"aud": "another"}, SIGNER, "wrong_audience"),
        ({"iss": "https://elsewhere.example.com/"}, SIGNER, "unknown_issuer"),
        ({"tenant": "globex"}, SIGNER, "no_tenant"),
        ({"tenant": "gone"}, SIGNER, "no_tenant"),
        ({}, OTHER, "bad_signature"),
    ],
)
def test_a_token_that_is_not_accepted_is_told_one_word(world, claims, signer, flaw):
    text = token(world, signer, **claims)
    refused = asked(indexed(world, issuer()), text, world)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.reason, refused.credential) == (401, Reason.INVALID_TOKEN, ("token", flaw))
    assert dict(refused.headers)["www-authenticate"] == 'Bearer error="invalid_token"'
    assert json.loads(refused.body)["error"]["message"] == f"The token is not accepted: {flaw}."
    assert not any(part in repr(refused) for part in text.split("."))
    telemetry = Telemetry()
    telemetry.decided(refused, 0.0)
    labels = {"kind": "token", "flaw": flaw}
    assert telemetry.registry.get_sample_value("enginehouse_gateway_credentials_refused_total", labels) == 1


def test_a_token_that_is_not_checked_because_many_were_wrong_is_told_to_come_again(world):
    index = indexed(world, issuer())
    refusals = [asked(index, token(world, OTHER, sub=str(number)), world) for number in range(300)]
    assert refusals[0].status == 401
    assert (refusals[-1].status, refusals[-1].reason) == (429, Reason.TOO_MANY_REQUESTS)
    assert refusals[-1].credential == ("token", "not_checked")
    assert dict(refusals[-1].headers) == {"retry-after": "1"}


def test_without_issuers_a_token_is_an_unknown_key(world):
    refused = asked(indexed(world), token(world), world)
    assert (refused.reason, refused.credential) == (Reason.INVALID_KEY, ("key", "unknown"))


def test_what_was_accepted_stays_known_while_the_issuers_stay_the_same(world):
    first = indexed(world, issuer())
    assert indexed(world, issuer(), before=first).tokens is first.tokens
    text = token(world)
    assert isinstance(asked(first, text, world), Caller)
    without_keys = indexed(world, issuer(keys=[]), before=first)
    assert asked(without_keys, text, world).credential == ("token", "unknown_key")


@given(
    randomness=RANDOM, place=st.integers(len(KEY_MARK), 41), letter=st.sampled_from("abcdefghijklmnopqrstuvwxyz234567")
)
def test_a_mistyped_key_is_told_from_an_unknown_one(world, randomness, place, letter):
    text = mint(KEY_MARK, randomness).text
    changed = text[:place] + letter + text[place + 1 :]
    index = indexed(world)
    assert asked(index, text, world).credential == ("key", "unknown")
    expected = "unknown" if changed == text else "mistyped"
    assert asked(index, changed, world).credential == ("key", expected)
    assert asked(index, text[:-1], world).credential == ("key", "mistyped")


def test_both_generations_of_a_rotated_key_count_until_the_earlier_one_ends(world):
    new = world.key("k1", "eh-acme-new", "acme")
    old = world.key("k1", world.acme_key, "acme", expires=int(world.now) + 60)
    index = index_of(world.snapshot().model_copy(update={"keys": (new, old)}))
    assert isinstance(asked(index, "eh-acme-new", world), Caller)
    assert authenticate(index, f"Bearer {world.acme_key}", world.now + 59).key.id == "k1"
    later = authenticate(index, f"Bearer {world.acme_key}", world.now + 60)
    assert (later.reason, later.credential) == (Reason.EXPIRED_KEY, ("key", "expired"))


@given(text=st.text(max_size=200) | st.text("abcdef.-_=", max_size=200))
def test_whatever_is_sent_nobody_is_let_in(world, text):
    refused = asked(indexed(world, issuer()), text, world)
    assert isinstance(refused, Refused)
    assert refused.status == 401
    assert refused.credential is not None
