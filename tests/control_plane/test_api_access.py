"""Who may do what: without a token nobody, with one what its scope says; and no secret shows itself."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.records import Scope
from fleet.api_keys import KEY_MARK, TOKEN_MARK, is_same, is_well_formed, mint

OPEN = {"/livez", "/readyz", "/openapi.json"}
RANDOM = st.binary(min_size=20, max_size=20)
NEEDS = [
    ("PUT", "/v1/deployments/chat", Scope.OPERATOR),
    ("DELETE", "/v1/deployments/chat", Scope.OPERATOR),
    ("POST", "/v1/placements", Scope.READER),
    ("PUT", "/v1/tenants/acme", Scope.OPERATOR),
    ("DELETE", "/v1/tenants/acme", Scope.OPERATOR),
    ("POST", "/v1/keys", Scope.OPERATOR),
    ("DELETE", "/v1/keys/one", Scope.OPERATOR),
    ("POST", "/v1/keys/one/rotate", Scope.OPERATOR),
    ("PUT", "/v1/prices/one", Scope.OPERATOR),
    ("DELETE", "/v1/prices/one", Scope.OPERATOR),
    ("PUT", "/v1/routes/one", Scope.OPERATOR),
    ("DELETE", "/v1/routes/one", Scope.OPERATOR),
    ("PUT", "/v1/output-filters/one", Scope.OPERATOR),
    ("DELETE", "/v1/output-filters/one", Scope.OPERATOR),
    ("PUT", "/v1/token-issuers/one", Scope.SECURITY_ADMIN),
    ("DELETE", "/v1/token-issuers/one", Scope.SECURITY_ADMIN),
    ("PUT", "/v1/waivers/one", Scope.SECURITY_ADMIN),
    ("DELETE", "/v1/waivers/one", Scope.SECURITY_ADMIN),
    ("PUT", "/v1/triage/one", Scope.SECURITY_ADMIN),
    ("DELETE", "/v1/triage/one", Scope.SECURITY_ADMIN),
    ("POST", "/v1/gateway/usage", Scope.GATEWAY),
]


@given(randomness=RANDOM, mark=st.sampled_from([TOKEN_MARK, KEY_MARK]))
def test_a_minted_secret_is_recognised_and_any_other_is_not(randomness, mark):
    minted = mint(mark, randomness)
    assert is_well_formed(minted.text, mark)
    assert is_same(minted.text, minted.sha256)
    assert minted.text.startswith(minted.prefix)
    assert minted.text not in repr(minted)


@given(randomness=RANDOM, place=st.integers(3, 41), letter=st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_a_typing_error_is_found_by_the_checksum(randomness, place, letter):
    text = mint(TOKEN_MARK, randomness).text
    changed = text[:place] + letter + text[place + 1 :]
    assert is_well_formed(changed, TOKEN_MARK) is (changed == text)


def routes(world):
    for path, methods in world.assembly.app.openapi()["paths"].items():
        for method in methods:
            yield method.upper(), re.sub(r"\{[^}]*\}", "vllm", path)


def test_every_route_but_health_wants_a_token(world):
    asked = 0
    for method, path in routes(world):
        answer = world.call(method, path, scope=None)
        if path in OPEN:
            assert answer.status_code in (200, 503)
            continue
        asked += 1
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
    assert asked > 25


@pytest.mark.parametrize(("method", "path", "scope"), NEEDS)
def test_a_narrower_scope_is_told_which_one_is_needed(world, method, path, scope):
    narrower = [other for other in Scope if other.rank < scope.rank]
    for other in narrower:
        answer = world.call(method, path, scope=other, json={})
        assert answer.status_code == 403
        assert f"'{scope}'" in answer.json()["detail"]
    assert world.call(method, path, scope=scope, json={}).status_code not in (401, 403)


def test_every_changing_route_stands_in_the_list_above(world):
    changing = {(method, path) for method, path in routes(world) if method not in ("GET", "HEAD")}
    named = {(method, re.sub(r"/(chat|acme|one)\b", "/vllm", path)) for method, path, _ in NEEDS}
    assert changing == named


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer x", "Basic eh_x", "Bearer eh_" + "a" * 39, "eh_", "Bearer \x80", "bearer eh_ eh_"],
)
def test_a_wrong_token_is_401_and_never_shown(world, header):
    answer = world.client.get("/v1/deployments", headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert "a" * 39 not in answer.text


def test_a_new_token_of_a_name_replaces_the_old_one(world):
    world.assembly.house.tokens.create("test-reader", Scope.READER)
    assert world.get("/v1/deployments", scope=Scope.READER).status_code == 401


def test_a_token_is_kept_as_its_hash_alone(world):
    for path in world.folder.iterdir():
        content = path.read_bytes()
        for token in world.tokens.values():
            assert token.encode() not in content


def test_a_key_is_shown_once(world):
    world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}})
    made = world.call("POST", "/v1/keys", json={"tenant": "acme", "name": "one"})
    assert made.status_code == 201
    key = made.json()["key"]
    assert is_well_formed(key, KEY_MARK)
    shown = world.get("/v1/keys/one")
    assert key not in shown.text
    assert shown.json()["status"]["prefix"] == key[:12]
    assert key not in world.get("/v1/keys").text
    assert key not in world.get("/v1/gateway/snapshot").text
    assert key not in world.get("/v1/audit-events").text
    snapshot = world.get("/v1/gateway/snapshot").json()
    assert is_same(key, snapshot["keys"][0]["sha256"])
