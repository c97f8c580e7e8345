"""A connection may go on while what it was opened with still counts: the key, the tenant, the model."""

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm

from fleet.snapshot import ClosedPath, GatewayTenant
from fleet.token_issuer import TokenIssuer
from gateway.index import index_of
from gateway.session_rights import SessionRights

NO_KEY = "the key is not accepted any more"
NO_MODEL = "the model is not open to the key any more"
SIGNER = ed25519.Ed25519PrivateKey.generate()
ISSUER = "https://login.example.com/"


@pytest.fixture
def served(world):
    return world.snapshot(realtime=True)


def changed(snapshot, **members):
    return index_of(snapshot.model_copy(update=members))


def rights(world, model="acme-chat"):
    return SessionRights([("Authorization", f"Bearer {world.acme_key}")], "acme", model)


def with_route(snapshot, **members):
    first, *others = snapshot.routes
    return {"routes": (first.model_copy(update=members), *others)}


def test_while_nothing_changes_for_it_a_connection_goes_on(world, served):
    for model in ("acme-chat", None):
        held = rights(world, model)
        for index in (index_of(served), changed(served, keys=served.keys[:1]), index_of(served)):
            assert held.lost(index, world.now) is None
            assert held.lost(index, world.now + 1e9) is None


def test_the_key_of_anthropics_clients_is_one_too(world, served):
    held = SessionRights([("X-Api-Key", world.acme_key)], "acme")
    assert held.lost(index_of(served), world.now) is None
    assert held.lost(changed(served, keys=()), world.now) == NO_KEY


@pytest.mark.parametrize("model", ["acme-chat", None])
def test_a_key_that_is_taken_back_and_a_tenant_that_is_gone_end_it(world, served, model):
    others = {"keys": served.keys[1:]}, {"tenants": (GatewayTenant(name="globex"),)}
    moved = (served.keys[0].model_copy(update={"tenant": "globex"}), *served.keys[1:])
    for members in (*others, {"keys": moved}):
        held = rights(world, model)
        assert held.lost(index_of(served), world.now) is None
        assert held.lost(changed(served, **members), world.now) == NO_KEY


def test_a_key_that_ends_ends_it_without_another_snapshot(world, served):
    key = served.keys[0].model_copy(update={"expires_unix_seconds": int(world.now) + 10})
    index, held = changed(served, keys=(key,)), rights(world)
    assert held.lost(index, world.now) is None
    assert held.lost(index, world.now + 9) is None
    assert held.lost(index, int(world.now) + 10) == NO_KEY


@pytest.mark.parametrize(
    "members",
    [
        {"tenants": ("globex",)},
        {"realtime": False},
        {"output_filter": "pii"},
        {"salts_cache": True},
        {"closed_paths": (ClosedPath(path="multimodal", reference="R1"),)},
    ],
)
def test_a_model_that_is_no_longer_open_ends_a_session_and_no_chat(world, served, members):
    index = changed(served, **with_route(served, **members))
    assert rights(world).lost(index, world.now) == NO_MODEL
    assert rights(world, None).lost(index, world.now) is None
    key = served.keys[0].model_copy(update={"models": ("both-chat",)})
    assert rights(world).lost(changed(served, keys=(key,)), world.now) == NO_MODEL


def test_a_token_ends_with_its_time_and_one_that_cannot_be_checked_now_is_left(world, served):
    def token(signer=SIGNER, **claims):
        stated = {"iss": ISSUER, "aud": "gateway", "exp": int(world.now) + 600, "tenant": "acme", **claims}
        return jwt.encode(stated, signer, "EdDSA", {"kid": "one"})

    members = OKPAlgorithm.to_jwk(SIGNER.public_key(), as_dict=True)
    members.pop("key_ops", None)
    issuer = {"issuer": ISSUER, "audiences": ["gateway"], "algorithms": ["EdDSA"], "allowed_tenants": ["acme"]}
    issuers = (TokenIssuer.model_validate({**issuer, "keys": [{**members, "kid": "one"}]}),)
    index = changed(served, issuers=issuers)
    held = SessionRights([("authorization", f"Bearer {token()}")], "acme")
    assert held.lost(index, world.now) is None
    assert held.lost(index, world.now + 640) == NO_KEY
    unknown = SessionRights([("authorization", f"Bearer {token(sub='another')}")], "acme")
    forger = ed25519.Ed25519PrivateKey.generate()
    for number in range(300):
        index.tokens.vouch(token(forger, sub=str(number)), world.now)
    assert unknown.lost(index, world.now) is None
    assert unknown.lost(index, world.now + 1) is None, "it was looked up"
    assert unknown.lost(index, world.now + 640) == NO_KEY
