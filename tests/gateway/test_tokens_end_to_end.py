"""Tenants by JWT through real Envoy: the token reaches no engine, and its issuer can be taken away."""

import time

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm

from fleet.token_issuer import TokenIssuer

CHAT = "/v1/chat/completions"
SIGNER = ed25519.Ed25519PrivateKey.generate()
ISSUER = "https://login.example.com/"


def issuer():
    members = OKPAlgorithm.to_jwk(SIGNER.public_key(), as_dict=True)
    members.pop("key_ops", None)
    stated = {"issuer": ISSUER, "audiences": ["gateway"], "algorithms": ["EdDSA"], "allowed_tenants": ["acme"]}
    return TokenIssuer.model_validate({**stated, "keys": [{**members, "kid": "one"}]})


def bearer(**claims):
    stated = {"iss": ISSUER, "aud": "gateway", "exp": int(time.time()) + 600, "tenant": "acme", **claims}
    return {"authorization": f"Bearer {jwt.encode(stated, SIGNER, 'EdDSA', {'kid': 'one'})}"}


@pytest.fixture
def client(gateway):
    with httpx2.Client(base_url=gateway.url, timeout=10) as client:
        yield client


def ask(client, headers, model="acme-chat"):
    return client.post(CHAT, json={"model": model, "messages": [{"role": "user", "content": "hi"}]}, headers=headers)


def test_a_token_is_its_tenants_until_its_issuer_is_taken_away(gateway, client, world, until):
    plain = gateway.control_plane.snapshot
    token = bearer()
    assert ask(client, token).status_code == 401
    gateway.publish(plain.model_copy(update={"issuers": (issuer(),)}))
    until(lambda: ask(client, token).status_code == 200, "the issuer in use")
    head = gateway.one.heads[-1].lower()
    assert "authorization" not in head
    assert token["authorization"].rsplit(".", 1)[1].lower() not in head
    assert ask(client, token, "globex-chat").status_code == 404
    refused = ask(client, bearer(exp=1))
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_token")
    assert refused.json()["error"]["message"] == "The token is not accepted: expired."
    assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert gateway.metric('enginehouse_gateway_credentials_refused_total{flaw="expired",kind="token"}') == 1
    gateway.publish(plain)
    until(lambda: ask(client, token).status_code == 401, "the issuer out of use")
    assert token["authorization"].split()[1] not in gateway.gateway_log
