"""Which models and arms a request may go to, one after the other, and what is held for it meanwhile."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewaySnapshot, GatewayTenant, HostedEndpoint
from gateway.admitted import Ended
from gateway.arms import arms_for, pick_arm
from gateway.asked import Request
from gateway.decision import Allowed, DecisionCore
from gateway.index import index_of
from gateway.passage import End, Ending
from gateway.refusals import Reason
from gateway.token_usage import TokenUsage

CHAT = "/v1/chat/completions"
MODELS = ["large", "small", "tiny", "other"]
TENANTS = ["acme", "globex"]


def arm(name, *addresses, **more):
    endpoints = tuple(GatewayEndpoint(address=address) for address in addresses)
    return GatewayArm(deployment=name, identity="0" * 32, engine="vllm", endpoints=endpoints, **more)


def route(model, *arms, tenants=("acme",), **more):
    return GatewayRoute(model=model, tenants=tenants, arms=arms, **more)


class Deciding:
    """A core, its clock, and the ends it told."""

    def __init__(self, world, *routes, limits=None, **key):
        self.world, self.now = world, world.now
        self.ended: list[Ended] = []
        self.core = DecisionCore(clock=lambda: self.now, on_end=self.ended.append)
        keys = (world.key("k1", world.acme_key, "acme").model_copy(update=key),)
        tenants = (GatewayTenant(name="acme", **(limits or {})), GatewayTenant(name="globex"))
        self.core.replace(index_of(GatewaySnapshot(tenants=tenants, keys=keys, routes=routes)), self.now)

    def ask(self, model, pin=None, path=CHAT, text="hello"):
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 5}).encode()
        headers = {"authorization": f"Bearer {self.world.acme_key}"} | ({} if pin is None else {"x-arm": pin})
        return self.core.decide(Request("POST", path, headers, body), self.now)

    def models(self, target="/v1/models"):
        headers = {"authorization": f"Bearer {self.world.acme_key}"}
        return json.loads(self.core.decide(Request("GET", target, headers), self.now).body)


def legs_of(allowed):
    """Every model that a request is served by when everything fails."""
    admitted = allowed.admitted
    models = [admitted.model]
    while admitted.fall_back():
        models.append(admitted.model)
    return models


# --- Aliases ---


def test_an_alias_leads_to_its_route(world):
    deciding = Deciding(world, route("large", arm("a", "10.0.0.1:1"), aliases=("latest", "größte")))
    for name in ("latest", "größte"):
        allowed = deciding.ask(name)
        assert (allowed.model, allowed.endpoints) == ("large", ("10.0.0.1:1",))


def test_what_is_written_anew_is_the_name_alone(world):
    deciding = Deciding(world, route("large", arm("a", "10.0.0.1:1"), aliases=("latest",)))
    body = b'{ "max_tokens":5,"messages":[{"role":"user","content":"model"}] , "model" : "latest" }'
    request = Request("POST", CHAT, {"authorization": f"Bearer {world.acme_key}"}, body)
    allowed = deciding.core.decide(request, world.now)
    assert allowed.admitted.edited(body) == body.replace(b'"latest"', b'"large"')
    plain = deciding.ask("large")
    assert plain.admitted.edited(b"as it is") == b"as it is"


def test_a_route_of_that_very_name_comes_before_an_alias(world):
    deciding = Deciding(
        world, route("large", arm("a", "10.0.0.1:1"), aliases=("small",)), route("small", arm("b", "10.0.0.2:1"))
    )
    assert deciding.ask("small").endpoints == ("10.0.0.2:1",)


def test_scopes_are_those_of_the_route_and_its_aliases_are_listed(world):
    routes = (
        route("large", arm("a", "10.0.0.1:1"), aliases=("latest",)),
        route("small", arm("b", "10.0.0.2:1"), aliases=("cheap",)),
        route("other", arm("c", "10.0.0.3:1"), tenants=("globex",), aliases=("secret",)),
    )
    deciding = Deciding(world, *routes, models=("large",))
    assert [card["id"] for card in deciding.models()["data"]] == ["large", "latest"]
    assert deciding.models("/v1/models/latest")["id"] == "latest"
    assert isinstance(deciding.ask("latest"), Allowed)
    for name in ("small", "cheap", "secret", "other"):
        assert deciding.ask(name).reason is Reason.MODEL_NOT_FOUND


# --- Fallbacks ---


@given(data=st.data())
def test_no_request_ever_goes_to_a_model_outside_of_the_scopes_of_its_tenant_and_key(world, data):
    names = st.sampled_from([*MODELS, "alias-large", "nobody"])
    routes = [
        route(
            model,
            *(arm(f"{model}-{n}", *([f"10.0.{n}.1:1"] * data.draw(st.integers(0, 1)))) for n in range(2)),
            tenants=tuple(data.draw(st.sets(st.sampled_from(TENANTS)))),
            fallbacks=tuple(data.draw(st.lists(names, max_size=4))),
            aliases=(f"alias-{model}",),
        )
        for model in MODELS
    ]
    scopes = tuple(data.draw(st.sets(st.sampled_from(MODELS))))
    deciding = Deciding(world, *routes, models=scopes)
    allowed = deciding.ask(data.draw(names))
    permitted = {one.model for one in routes if "acme" in one.tenants and (not scopes or one.model in scopes)}
    if isinstance(allowed, Allowed):
        served = legs_of(allowed)
        assert set(served) <= permitted
        assert not allowed.admitted.may_fall_back
        allowed.admitted.end(Ending(End.NO_ENGINE, 0, None))
    assert deciding.core.running == len(deciding.core._budgets) == 0


def test_a_model_without_engines_is_served_by_the_first_of_its_chain_that_has_some(world):
    chain = {"fallbacks": ("nobody", "small", "tiny")}
    deciding = Deciding(
        world, route("large", arm("a"), **chain), route("small", arm("b")), route("tiny", arm("c", "10.0.0.3:1"))
    )
    allowed = deciding.ask("large")
    assert (allowed.model, allowed.deployment, allowed.endpoints) == ("tiny", "c", ("10.0.0.3:1",))
    body = b'{"model":"large","messages":[{"role":"user","content":"hello"}],"max_tokens":5}'
    request = Request("POST", CHAT, {"authorization": f"Bearer {world.acme_key}"}, body)
    assert deciding.core.decide(request, world.now).admitted.edited(body) == body.replace(b"large", b"tiny")
    allowed.admitted.end(Ending(End.WHOLE, 200, TokenUsage(5, 0, 5)))
    assert [(ended.model, ended.asked_model) for ended in deciding.ended] == [("tiny", "large")]


def test_a_chain_is_not_followed_through_another_models_chain(world):
    deciding = Deciding(
        world,
        route("large", arm("a"), fallbacks=("small",)),
        route("small", arm("b"), fallbacks=("tiny",)),
        route("tiny", arm("c", "10.0.0.3:1")),
    )
    assert deciding.ask("large").reason is Reason.NO_ENDPOINT


def test_other_arms_come_before_other_models_and_each_once(world):
    deciding = Deciding(
        world,
        route(
            "large",
            arm("a", "10.0.0.1:1"),
            arm("b", "10.0.0.2:1"),
            arm("c", "10.0.0.3:1", weight=0),
            fallbacks=("small",),
        ),
        route("small", arm("d", "10.0.0.4:1"), arm("a", "10.0.0.1:1")),
    )
    allowed = deciding.ask("large")
    seen = [allowed.deployment]
    while allowed.admitted.fall_back():
        seen.append(allowed.admitted._leg.arm.deployment)
    assert sorted(seen[:2]) == ["a", "b"]
    assert seen[2:] == ["d"]


def test_what_is_held_and_charged_is_the_model_that_serves(world):
    limits = {"concurrent_requests": 1, "models": [{"model": "small", "tokens_per_minute": 1000}]}
    deciding = Deciding(
        world,
        route("large", arm("a", "10.0.0.1:1"), fallbacks=("small",)),
        route("small", arm("b", "10.0.0.2:1")),
        limits=limits,
    )
    admitted = deciding.ask("large").admitted
    admitted.sent_to("10.0.0.1:1")
    assert admitted.fall_back()
    assert len(deciding.core._budgets) == 1
    assert admitted.reservation.model == "small"
    admitted.sent_to("10.0.0.2:1")
    admitted.end(Ending(End.WHOLE, 200, TokenUsage(300, 0, 100)))
    (ended,) = deciding.ended
    assert (ended.model, ended.address, ended.settled.usage.input_tokens) == ("small", "10.0.0.2:1", 300)
    headers = dict(deciding.core._budgets.headers("acme", "small", deciding.now))
    assert headers["x-ratelimit-remaining-tokens"] == "600"
    assert all(not deciding.core._router._loads.in_flight(a) for a in ("10.0.0.1:1", "10.0.0.2:1"))


def test_a_used_up_budget_is_no_reason_for_another_model_and_a_stand_in_without_one_is_passed_over(world):
    limits = {"models": [{"model": "large", "requests_per_minute": 1}, {"model": "small", "requests_per_minute": 1}]}
    chain = ("small", "tiny")
    routes = [route("small", arm("b", "10.0.0.2:1")), route("tiny", arm("c", "10.0.0.3:1"))]
    deciding = Deciding(world, route("large", arm("a", "10.0.0.1:1"), fallbacks=chain), *routes, limits=limits)
    deciding.ask("large").admitted.end(Ending(End.WHOLE, 200, TokenUsage(1, 0, 1)))
    assert deciding.ask("large").status == 429
    deciding = Deciding(world, route("large", arm("a"), fallbacks=chain), *routes, limits=limits)
    assert [deciding.ask("large").model for _ in range(3)] == ["small", "tiny", "tiny"]


def test_a_filtered_model_is_never_stood_in_for_by_one_with_another_filter(world):
    deciding = Deciding(
        world,
        route("large", arm("a"), fallbacks=("small", "tiny"), output_filter="none"),
        route("small", arm("b", "10.0.0.2:1"), output_filter="pii"),
        route("tiny", arm("c", "10.0.0.3:1")),
    )
    assert deciding.ask("large").model == "tiny"


def test_after_the_first_byte_there_is_no_next_and_nothing_of_the_request_is_kept(world):
    small = route("small", arm("b", "10.0.0.2:1"))
    deciding = Deciding(world, route("large", arm("a", "10.0.0.1:1"), fallbacks=("small",)), small)
    admitted = deciding.ask("large").admitted
    admitted.began()
    assert not admitted.may_fall_back
    assert not admitted.fall_back()
    assert not admitted._legs._ways
    assert not deciding.ask("small").admitted._legs._ways


def test_after_the_end_there_is_no_next(world):
    deciding = Deciding(
        world, route("large", arm("a", "10.0.0.1:1"), fallbacks=("small",)), route("small", arm("b", "10.0.0.2:1"))
    )
    admitted = deciding.ask("large").admitted
    admitted.end(Ending(End.CLIENT_LEFT, 0, None))
    assert not admitted.fall_back()
    assert len(deciding.core._budgets) == 0


# --- Arms ---


@given(
    weights=st.lists(st.floats(0.01, 100), min_size=2, max_size=4),
    of_others=st.lists(st.booleans(), min_size=4, max_size=4),
    conversation=st.binary(max_size=8),
)
def test_an_arm_of_other_tenants_changes_nothing_for_a_tenant(weights, of_others, conversation):
    """The shares among the arms that a tenant may use are the shares without the others."""
    arms = [
        arm(f"arm-{n}", f"10.0.0.{n}:1", weight=weight, tenants=("globex",) if others else ("acme",) * (n % 2))
        for n, (weight, others) in enumerate(zip(weights, of_others, strict=False))
    ]
    own = [one for one, others in zip(arms, of_others, strict=False) if not others]
    assert pick_arm(arms_for(route("large", *arms), "acme"), conversation) == pick_arm(own, conversation)


def test_the_shares_of_a_tenant_are_the_weights_of_its_arms(world):
    arms = (
        arm("a", "10.0.0.1:1", weight=3),
        arm("b", "10.0.0.2:1", weight=1, tenants=("acme",)),
        arm("c", "10.0.0.3:1", weight=96, tenants=("globex",)),
    )
    deciding = Deciding(world, route("large", *arms))
    chosen = [deciding.ask("large", text=f"conversation {n}").deployment for n in range(2000)]
    assert chosen.count("c") == 0
    assert chosen.count("b") / 2000 == pytest.approx(0.25, abs=0.04)
    assert len({deciding.ask("large", text="the same").deployment for _ in range(20)}) == 1


# --- Pins ---


def test_a_pin_reaches_an_arm_without_weight_and_falls_back_to_nothing(world):
    canary = arm("canary", "10.0.0.2:1", weight=0)
    routes = (
        route("large", arm("a", "10.0.0.1:1"), canary, fallbacks=("small",)),
        route("small", arm("b", "10.0.0.3:1")),
    )
    deciding = Deciding(world, *routes, pins_arms=True)
    assert {deciding.ask("large").deployment for _ in range(20)} == {"a"}
    for pin in ("canary", f"canary/{canary.identity}", " canary "):
        allowed = deciding.ask("large", pin)
        assert (allowed.deployment, allowed.endpoints) == ("canary", ("10.0.0.2:1",))
        assert not allowed.admitted.fall_back()


@pytest.mark.parametrize("pin", ["", "nothing", "a/other", "b", "/", "a/" + "0" * 31])
def test_a_pin_that_means_no_arm_is_refused_with_those_that_there_are(world, pin):
    deciding = Deciding(
        world, route("large", arm("a", "10.0.0.1:1")), route("small", arm("b", "1.1.1.1:1")), pins_arms=True
    )
    refused = deciding.ask("large", pin)
    assert (refused.status, refused.reason) == (403, Reason.ARM_NOT_ALLOWED)
    assert "there are: a." in refused.message


def test_a_key_that_may_not_pin_is_refused_and_learns_nothing(world):
    deciding = Deciding(world, route("large", arm("a", "10.0.0.1:1")))
    refused = [deciding.ask("large", pin) for pin in ("a", "nothing")]
    assert {(one.status, one.body) for one in refused} == {(403, refused[0].body)}


def test_an_arm_of_another_tenant_can_not_be_pinned(world):
    arms = (arm("a", "10.0.0.1:1"), arm("b", "10.0.0.2:1", tenants=("globex",)))
    assert Deciding(world, route("large", *arms), pins_arms=True).ask("large", "b").status == 403


# --- Timeouts and hosted arms ---


def test_a_route_says_how_long_its_engines_may_take(world):
    deciding = Deciding(
        world,
        route("large", arm("a", "10.0.0.1:1"), first_byte_seconds=2.5),
        route("small", arm("b", "10.0.0.2:1"), idle_seconds=7),
    )
    assert deciding.ask("large").admitted.patience == (2.5, 600.0)
    assert deciding.ask("small").admitted.patience == (600.0, 7.0)


def test_a_hosted_arm_gets_the_hosts_name_of_the_model_and_is_one_endpoint(world):
    hosted = HostedEndpoint(url="https://api.example.com/openai/v1", model="llama-9", api_key_ref="groq-key")
    deciding = Deciding(world, route("large", arm("groq-chat", hosted=hosted)))
    allowed = deciding.ask("large")
    assert allowed.endpoints == (f"groq-chat/{'0' * 32}",)
    target = allowed.admitted.target(allowed.endpoints[0])
    assert (target.host, target.port, target.authority) == ("api.example.com", 443, "api.example.com")
    assert target.path("/v1/chat/completions?a=b") == "/openai/v1/chat/completions?a=b"
    body = b'{"model":"large","messages":[{"role":"user","content":"hello"}],"max_tokens":5}'
    request = Request("POST", CHAT, {"authorization": f"Bearer {world.acme_key}"}, body)
    assert deciding.core.decide(request, world.now).admitted.edited(body) == body.replace(b"large", b"llama-9")


def test_a_host_that_asks_for_a_pause_is_left_alone_until_then(world):
    hosted = HostedEndpoint(url="https://api.example.com/v1", model="llama-9", api_key_ref="groq-key")
    deciding = Deciding(
        world,
        route("large", arm("groq-chat", hosted=hosted), fallbacks=("small",)),
        route("small", arm("b", "1.1.1.1:1")),
    )
    first = deciding.ask("large")
    first.admitted.failed(first.endpoints[0], 30.0)
    assert deciding.ask("large").model == "small"
    deciding.now += 30.0
    assert deciding.ask("large").model == "large"


def test_where_only_a_pause_is_in_the_way_the_client_is_told_how_long(world):
    hosted = HostedEndpoint(url="https://api.example.com/v1", model="llama-9", api_key_ref="groq-key")
    deciding = Deciding(world, route("large", arm("groq-chat", hosted=hosted)), route("small", arm("b")))
    first = deciding.ask("large")
    first.admitted.failed(first.endpoints[0], 29.5)
    refused = deciding.ask("large")
    assert (refused.status, refused.headers) == (503, (("retry-after", "30"),))
    assert deciding.ask("small").headers == ()


def test_an_endpoint_that_keeps_failing_gets_nothing_and_comes_back(world):
    deciding = Deciding(world, route("large", arm("a", "10.0.0.1:1", "10.0.0.2:1")))
    admitted = deciding.ask("large").admitted
    assert [admitted.failed("10.0.0.1:1") for _ in range(5)] == [False] * 4 + [True]
    assert {deciding.ask("large").endpoints for _ in range(10)} == {("10.0.0.2:1",)}
    deciding.now += 5.0
    assert all(set(deciding.ask("large").endpoints) == {"10.0.0.1:1", "10.0.0.2:1"} for _ in range(10))
    probe, other = deciding.ask("large").admitted, deciding.ask("large").admitted
    assert probe.may_ask("10.0.0.1:1")
    assert not other.may_ask("10.0.0.1:1")
    probe.went_well("10.0.0.1:1")
    assert other.may_ask("10.0.0.1:1")


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "https://user:pass@api.example.com/v1",
        "https://api.example.com/v1?key=1",
        "https://api.example.com/v1#x",
        "https:///v1",
        "https://api.example.com/v 1",
        "https://api.example.com/\r\nx",
    ],
)
def test_a_hosts_url_is_https_and_carries_nothing_else(url):
    with pytest.raises(ValueError, match="url"):
        HostedEndpoint(url=url, model="m", api_key_ref="k")


@pytest.mark.parametrize("reference", ["", "../key", "a/b", ".hidden", "a b"])
def test_a_reference_to_a_key_is_a_plain_name(reference):
    with pytest.raises(ValueError, match="api_key_ref"):
        HostedEndpoint(url="https://api.example.com/v1", model="m", api_key_ref=reference)
