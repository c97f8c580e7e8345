"""What people set for the gateway: it is checked against what exists, kept, audited and put into the snapshot."""

import json

import pytest

from control_plane.api.gateway_nouns import NOUNS
from control_plane.records import Scope
from control_plane.services.gateway_settings import OperationWord, RouteSpec, TenantSpec
from engines.request_side import text_operations
from fleet.budget import Limits, ModelLimits
from fleet.codepath import CLOSABLE_AT_THE_DOOR
from fleet.snapshot import SNAPSHOT_VERSION, GatewayRoute, GatewaySnapshot, GatewayTenant
from fleet.token_issuer import TokenIssuer
from gateway.closed_fields import CLOSABLE
from gateway.paths import Operation

ADMIN = Scope.SECURITY_ADMIN
KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "one"}
PRICE = {"usd_per_million_input_tokens": 0.5, "usd_per_million_output_tokens": 1.5}
ISSUER = {
    "issuer": "https://login.example.com/",
    "audiences": ["gateway"],
    "algorithms": ["EdDSA"],
    "keys": [KEY],
    "allowed_tenants": ["acme"],
}
CLOSED = {
    "path": "multimodal",
    "reference": "EH-12",
    "owner": "ann",
    "reason": "until the pin is out",
    "advisory": "GHSA-x",
}
SPECS = {"prices": PRICE, "token-issuers": ISSUER, "routes": {"closed_paths": [CLOSED]}, "output-filters": {}}


@pytest.fixture
def house(world):
    return furnished(world)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory, module_world):
    """A world for requests that change nothing."""
    return furnished(module_world(tmp_path_factory.mktemp("settings")))


def furnished(world):
    for tenant in ("acme", "globex"):
        world.call("PUT", f"/v1/tenants/{tenant}", json={"metadata": {"name": tenant}})
    world.put(world.pinned())
    world.put(world.pinned("chat-canary", served_name="chat"))
    return world


def put(world, noun, spec, name="chat", scope=ADMIN, **more):
    return world.call("PUT", f"/v1/{noun}/{name}", json={"metadata": {"name": name}, "spec": spec}, scope=scope, **more)


def snapshot(world):
    return GatewaySnapshot.model_validate_json(world.get("/v1/gateway/snapshot").content)


def problems(answer):
    assert answer.status_code == 422, answer.text
    return {item["pointer"]: item["message"] for item in answer.json()["errors"]}


def route(world, model="chat"):
    return next(item for item in snapshot(world).routes if item.model == model)


def test_every_field_of_the_gateway_can_be_set_here():
    made_elsewhere = {"tenants"}
    assert RouteSpec.model_fields.keys() | made_elsewhere == GatewayRoute.model_fields.keys()
    assert TenantSpec.model_fields.keys() | {"name"} == GatewayTenant.model_fields.keys()
    assert set(OperationWord.__args__) == set(Operation) - {Operation.MODELS}
    assert CLOSABLE_AT_THE_DOOR == CLOSABLE
    assert ModelLimits.model_fields.keys() >= Limits.model_fields.keys()


@pytest.mark.parametrize("noun", SPECS)
def test_a_setting_lives_from_creation_to_deletion(house, noun):
    path, name = f"/v1/{noun}/one", "one"
    made = put(house, noun, SPECS[noun], name)
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    assert house.get(path).json() == made.json()
    assert house.get(f"/v1/{noun}").json()["items"] == [made.json()]
    assert put(house, noun, SPECS[noun], name).status_code == 428
    same = house.call("PUT", path, json=made.json(), scope=ADMIN, etag='"1"')
    assert (same.status_code, same.headers["etag"]) == (200, '"1"')
    assert house.call("DELETE", path, scope=ADMIN, params={"dry_run": "true"}).json()["action"] == "delete"
    assert house.call("DELETE", path, scope=ADMIN, etag='"9"').status_code == 412
    assert house.call("DELETE", path, scope=ADMIN, etag='"1"').status_code == 204
    assert house.get(path).status_code == 404
    actions = [item["action"] for item in house.get("/v1/audit-events").json()["items"][-2:]]
    kind = next(item.kind for item in NOUNS if item.plural == noun).value.lower()
    assert actions == [f"{kind}.create", f"{kind}.delete"]


@pytest.mark.parametrize("noun", SPECS)
def test_a_dry_run_stores_nothing(unchanged, noun):
    before = snapshot(unchanged)
    answer = put(unchanged, noun, SPECS[noun], params={"dry_run": "true"})
    assert (answer.status_code, answer.json()["action"]) == (200, "create")
    assert unchanged.get(f"/v1/{noun}").json()["items"] == []
    assert snapshot(unchanged) == before


def test_a_tenant_has_every_limit_of_the_gateway(house):
    spec = {
        "tokens_per_minute": 10_000, "tokens_per_day": 1_000_000, "requests_per_minute": 60, "concurrent_requests": 8,
        "usd_per_month": 100.5, "weights": {"output_token": 4.0}, "default_output_tokens": 512, "queue_weight": 2.5,
        "priority": -3, "models": [{"model": "chat", "tokens_per_minute": 100, "weights": {"input_token": 0.5}}],
    }  # fmt: skip
    assert put(house, "tenants", spec, "acme", etag="*").status_code == 200
    tenant = next(item for item in snapshot(house).tenants if item.name == "acme")
    assert tenant == GatewayTenant.model_validate({"name": "acme", **spec})


@pytest.mark.parametrize(
    ("spec", "pointer", "words"),
    [
        ({"tokens_per_minut": 5}, "/spec/tokens_per_minut", "did you mean 'tokens_per_minute'"),
        ({"models": [{"model": "chta"}]}, "/spec/models/0/model", "did you mean 'chat'"),
        ({"models": [{"model": "chat"}, {"model": "chat"}]}, "/spec/models/1", "give it once"),
        ({"models": [{"model": "chat", "token_per_day": 1}]}, "/spec/models/0/token_per_day", "tokens_per_day"),
        ({"weights": {"output_token": 0}}, "/spec/weights/output_token", "greater"),
        ({"usd_per_month": -1}, "/spec/usd_per_month", "greater"),
        ({"queue_weight": 0}, "/spec/queue_weight", "greater"),
    ],
)
def test_a_mistake_in_a_tenant_is_named(unchanged, spec, pointer, words):
    found = problems(put(unchanged, "tenants", spec, "acme", etag="*"))
    assert words in found[pointer]


def test_a_price_is_of_its_model_and_there_is_one(house):
    put(house, "prices", {**PRICE, "model": "org/model with a longer name"}, "long")
    put(house, "prices", PRICE)
    assert {item.model for item in snapshot(house).prices} == {"chat", "org/model with a longer name"}
    again = put(house, "prices", {**PRICE, "model": "chat"}, "other")
    assert again.status_code == 409
    assert "price 'chat'" in again.json()["detail"]


def test_the_settings_of_a_route_are_put_into_it(house):
    put(house, "output-filters", {"denied": ["banana"]}, "fruit")
    put(house, "prices", {**PRICE, "model": "spare"}, "spare")
    spec = {
        "aliases": ["gpt-x"], "fallbacks": ["spare"], "first_byte_seconds": 5, "idle_seconds": 6,
        "concurrent_requests": 7, "queue": {"max_waiting": 8, "max_wait_seconds": 9}, "is_guarded": False,
        "realtime": True,
        "session_header": "x-session-id", "salts_cache": True, "output_filter": "fruit", "closed_paths": [CLOSED],
        "arms": {"chat": {"weight": 0.9}, "chat-canary": {"weight": 0.1, "tenants": ["acme"], "serves": ["chat"]}},
    }  # fmt: skip
    assert put(house, "routes", spec).status_code == 201
    made = route(house)
    own = {"arms", "closed_paths"}
    plain = made.model_dump(mode="json", exclude_unset=True)
    assert plain.pop("queue").items() >= spec.pop("queue").items()
    assert {name: plain[name] for name in spec.keys() - own} == {n: v for n, v in spec.items() if n not in own}
    assert {arm.deployment: (arm.weight, arm.tenants, arm.serves) for arm in made.arms} == {
        "chat": (0.9, (), text_operations()["vllm"]),
        "chat-canary": (0.1, ("acme",), ("chat",)),
    }
    assert [item.model_dump() for item in made.closed_paths] == [{"path": "multimodal", "reference": "EH-12"}]
    assert [item.name for item in snapshot(house).output_filters] == ["fruit"]


@pytest.mark.parametrize(
    ("spec", "pointer", "words"),
    [
        ({"closed_paths": [{**CLOSED, "path": "multimodl"}]}, "/spec/closed_paths/0/path", "did you mean 'multimodal'"),
        ({"closed_paths": [{**CLOSED, "path": "core"}]}, "/spec/closed_paths/0/path", "these can: "),
        ({"closed_paths": [{**CLOSED, "reference": "CVE-2030-1"}]}, "/spec/closed_paths/0/reference", "clients see it"),
        ({"closed_paths": [{**CLOSED, "reference": "a b"}]}, "/spec/closed_paths/0/reference", ""),
        ({"closed_paths": [CLOSED, CLOSED]}, "/spec/closed_paths/1", "give it once"),
        ({"closed_paths": [{"path": "multimodal", "reference": "EH-1"}]}, "/spec/closed_paths/0/owner", "missing"),
        ({"shadow": {"deployment": "chatt", "share": 1}}, "/spec/shadow/deployment", "did you mean 'chat'"),
        ({"shadow": {"deployment": "chat", "share": 2}}, "/spec/shadow/share", ""),
        ({"arms": {"chat-canari": {}}}, "/spec/arms/chat-canari", "did you mean 'chat-canary'"),
        ({"arms": {"chat": {"tenants": ["acmee"]}}}, "/spec/arms/chat/tenants/0", "did you mean 'acme'"),
        ({"fallbacks": ["chat"]}, "/spec/fallbacks/0", "the model itself"),
        ({"fallbacks": ["spare"]}, "/spec/fallbacks/0", "no model is named"),
        ({"output_filter": "pi"}, "/spec/output_filter", "did you mean 'pii'"),
        ({"fallback": []}, "/spec/fallback", "did you mean 'fallbacks'"),
        ({"session_header": "authorization"}, "/spec/session_header", ""),
    ],
)
def test_a_mistake_in_a_route_is_named(unchanged, spec, pointer, words):
    assert words in problems(put(unchanged, "routes", spec))[pointer]
    assert unchanged.get("/v1/routes").json()["items"] == []


def test_why_a_path_is_closed_is_for_operators_and_the_audit_log(house):
    put(house, "routes", {"closed_paths": [CLOSED]}, scope=Scope.OPERATOR, params={"reason": "incident 7"})
    assert house.get("/v1/routes/chat").json()["spec"]["closed_paths"] == [CLOSED]
    for path in ("/v1/routes/chat", "/v1/routes", "/v1/gateway/snapshot"):
        text = house.get(path, scope=Scope.READER).text
        assert "EH-12" in text
        assert not any(word in text for word in ("GHSA-x", "ann", "until the pin"))
    reason = house.get("/v1/audit-events").json()["items"][-1]["reason"]
    assert reason == "incident 7; multimodal closed as EH-12 for GHSA-x by ann: until the pin is out"


def test_one_route_is_about_a_model(house):
    put(house, "routes", {})
    again = put(house, "routes", {"model": "chat"}, "other")
    assert again.status_code == 409
    assert "route 'chat'" in again.json()["detail"]


def test_an_alias_leads_to_one_route(house):
    put(house, "routes", {"aliases": ["latest"]})
    found = problems(put(house, "routes", {"aliases": ["latest"]}, "other"))
    assert found == {"/spec/aliases/0": "'latest' leads to the route 'chat' already"}
    assert put(house, "routes", {"aliases": ["latest"]}, etag="*").status_code == 200


def test_an_answer_is_as_long_as_the_batch_settings_allow(house):
    assert route(house).max_output_tokens == 4096
    put(house, "routes", {"max_output_tokens": 100})
    assert route(house).max_output_tokens == 100


def test_a_filter_that_a_manifest_asks_for_is_not_taken_away(house):
    house.put(house.pinned("masked", access={"tenants": ["acme"], "output_filter": "pii"}))
    put(house, "routes", {"output_filter": "none"}, "masked")
    assert route(house, "masked").output_filter == "pii"


def test_a_filter_that_is_named_stays(house):
    put(house, "output-filters", {}, "fruit")
    put(house, "routes", {"output_filter": "fruit"})
    answer = house.call("DELETE", "/v1/output-filters/fruit", etag='"1"')
    assert answer.status_code == 409
    assert "route 'chat'" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("spec", "pointer", "words"),
    [
        ({"patterns": [{"name": "ticket", "pattern": "a(b"}]}, "/spec/patterns/0/pattern", "a group is not closed"),
        ({"patterns": [{"name": "ticket", "pattern": "a+"}]}, "/spec/patterns/0/pattern", "without end"),
        ({"classes": {"emial": "mask"}}, "/spec/classes/emial", "did you mean 'email'"),
        ({"failure_mode": "opne"}, "/spec/failure_mode", "did you mean 'open'"),
    ],
)
def test_a_mistake_in_a_filter_is_named(unchanged, spec, pointer, words):
    assert words in problems(put(unchanged, "output-filters", spec, "fruit"))[pointer]


@pytest.mark.parametrize("name", ["none", "pii"])
def test_filters_that_are_there_are_not_defined(unchanged, name):
    assert put(unchanged, "output-filters", {}, name).status_code == 409


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"allowed_tenants": ["acmee"]}, "/spec/allowed_tenants/0", "did you mean 'acme'"),
        ({"tenants": {"them": "globexx"}}, "/spec/tenants/them", "did you mean 'globex'"),
        ({"allowed_tenants": []}, "/spec/allowed_tenants", "names nobody"),
        ({"keys": []}, "/spec/keys", "jwks_url"),
        ({"algorithms": ["RS256"]}, "/spec/keys/0", "add EdDSA"),
        ({"algorithms": ["HS256"]}, "/spec/algorithms/0", "is not known here"),
        ({"keys": [{**KEY, "d": "secret"}]}, "/spec/keys/0/d", "unknown field 'd'"),
        ({"jwks_url": "http://login.example.com/keys"}, "/spec/jwks_url", ""),
        ({"models": ["chta"]}, "/spec/models/0", "did you mean 'chat'"),
    ],
)
def test_a_mistake_in_a_token_issuer_is_named(unchanged, changes, pointer, words):
    assert words in problems(put(unchanged, "token-issuers", {**ISSUER, **changes}))[pointer]


def test_who_vouches_for_tenants_is_a_matter_of_security(house):
    assert put(house, "token-issuers", ISSUER, scope=Scope.OPERATOR).status_code == 403
    assert put(house, "token-issuers", ISSUER).status_code == 201
    (issuer,) = snapshot(house).issuers
    assert issuer == TokenIssuer.model_validate(ISSUER)
    assert put(house, "token-issuers", ISSUER, "other").status_code == 409


def test_the_snapshot_says_its_version(house):
    assert json.loads(house.get("/v1/gateway/snapshot").content)["version"] == SNAPSHOT_VERSION
