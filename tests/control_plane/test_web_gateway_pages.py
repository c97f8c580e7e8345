"""The pages about the gateway's side: routes, prices and output filters."""

import re
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.records import ReplicaState, Scope
from control_plane.web.gateway_views import PAGE, _usd
from fleet.advisory import Label
from fleet.api_keys import KEY_MARK
from tests.control_plane.browser import Page, check_frame, sign_in

ADMIN = Scope.SECURITY_ADMIN
EVIL = "<script>alert('x')</script>\"'>"
PATTERN = "internal-[0-9]{6}"
CLOSED = {"path": "tool-parser", "reference": "EH-7", "owner": "o-ann", "reason": "so", "advisory": "GHSA-why"}


def shown(browser, path):
    """The words of a page on one line."""
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    check_frame(answer)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", answer.text)))


def put(world, noun, name, spec):
    answer = world.call("PUT", f"/v1/{noun}/{name}", json={"metadata": {"name": name}, "spec": spec}, scope=ADMIN)
    assert answer.status_code == 201, answer.text


@pytest.fixture
def house(world):
    """Two deployments of one model with engines that run, settings for it, and another model."""
    put(world, "tenants", "acme", {})
    images = {"features": {"modalities": ["text", "image"]}}
    world.put(world.pinned("chat", **images))
    world.put(world.pinned("chat-two", served_name="chat", engine="sglang", version="0.5.23"))
    world.put(world.pinned("plain"))
    world.assembly.house.reconciler.look()
    for name, replica in list(world.cluster.replicas.items()):
        world.cluster.replicas[name] = replace(replica, state=ReplicaState.HEALTHY)
    world.assembly.house.reconciler.look()
    put(world, "output-filters", "fruit", {
        "classes": {"email": "hash", "card": "block", "phone": "hash"},
        "patterns": [{"name": "ticket", "pattern": PATTERN}],
        "denied": ["the secret fruit", "another one"],
        "moderation": {"service": "guard"},
    })  # fmt: skip
    put(world, "routes", "chat", {
        "output_filter": "fruit",
        "arms": {"chat": {"weight": 3, "tenants": ["acme"]}},
        "aliases": ["talk"],
        "fallbacks": ["plain"],
        "closed_paths": [CLOSED],
    })  # fmt: skip
    put(world, "prices", "chat", {"usd_per_million_input_tokens": 0.5, "usd_per_million_output_tokens": 12.125})
    return world


def test_without_anything_the_pages_say_so(world):
    browser = sign_in(world)
    assert "No model is served yet." in shown(browser, "/routes")
    assert "No model has a price." in shown(browser, "/prices")
    assert "pii mask: api_key, br_cpf" in shown(browser, "/filters")
    assert "There are no more models." in shown(browser, "/routes?after=zzz")


def test_a_route_shows_its_arms_weights_endpoints_and_closed_paths(house):
    browser = sign_in(house)
    words = shown(browser, "/routes")
    addresses = [item.address for item in house.cluster.replicas.values()]
    assert len(addresses) == 3
    assert all(address in words for address in addresses)
    assert "tool-parser (reference EH-7)" in words
    assert "Aliases talk" in words
    assert "Fallbacks plain" in words
    assert re.search(r"chat [0-9a-f]{12} vllm 3 75 % acme 1 of 1 take requests: 127", words)
    assert re.search(r"chat-two [0-9a-f]{12} sglang 1 25 % all 1 of 1 take requests: 127", words)
    page = Page(browser.get("/routes").text)
    links = {tag["href"] for tag in page.of("a")}
    assert {"/deployments/chat", "/deployments/chat-two", "/deployments/plain", "/filters"} <= links
    for link in links - {"#content"}:
        assert browser.get(link).status_code == 200, link


def test_an_engine_that_drains_and_an_arm_without_engines_are_told(house):
    for name, replica in list(house.cluster.replicas.items()):
        if replica.deployment == "chat":
            house.cluster.change(name, state=ReplicaState.DRAINING)
        if replica.deployment == "chat-two":
            house.cluster.forget(name)
    house.assembly.house.reconciler.look()
    words = shown(sign_in(house), "/routes")
    assert "0 of 1 take requests: 127" in words or "no engine takes requests" in words
    assert re.search(r"chat-two [0-9a-f]{12} sglang .{1,20} all (no engine takes requests|0 of 1)", words)


def test_a_proposed_closing_stands_on_the_page_with_the_command_that_takes_it(house):
    house.publish(house.record("GHSA-media"), labels={"vllm/GHSA-media": Label(paths=("multimodal",))})
    words = shown(sign_in(house), "/routes")
    assert "close multimodal : GHSA-media (critical) in chat" in words
    assert "enginehouse routes accept chat --reference REFERENCE --owner YOU" in words


def test_a_command_can_be_pasted_whatever_the_model_is_called(house):
    house.put(house.pinned("third", served_name="org/a b; ls", features={"modalities": ["text", "image"]}))
    house.publish(house.record("GHSA-media", severity=None), labels={"vllm/GHSA-media": Label(paths=("multimodal",))})
    browser = sign_in(house)
    words = shown(browser, "/routes")
    assert "enginehouse routes accept 'org/a b; ls' --route NAME --reference REFERENCE" in words
    assert "(unrated, a residual)" in words
    assert "card note" in browser.get("/routes").text


def test_prices_show_what_was_stated_and_which_models_have_none(house):
    words = shown(sign_in(house), "/prices")
    assert "chat 0.50 0.50 12.125" in words
    assert re.search(r"Without a price .* plain", words)


def test_a_filter_shows_names_and_classes_and_nothing_that_may_be_a_secret(house):
    browser = sign_in(house)
    words = shown(browser, "/filters")
    assert "fruit block: card; hash: email, phone ticket (mask) 2 (block) guard no closed chat" in words
    text = browser.get("/filters").text
    assert not any(secret in text for secret in (PATTERN, "secret fruit", "another one"))


def test_no_page_shows_a_key_or_why_a_path_is_closed(house):
    made = house.call("POST", "/v1/keys", json={"tenant": "acme", "name": "app"}, scope=ADMIN)
    assert made.status_code == 201, made.text
    (key,) = house.get("/v1/gateway/snapshot").json()["keys"]
    browser = sign_in(house)
    for path in ("/routes", "/prices", "/filters"):
        text = browser.get(path).text
        assert not any(secret in text for secret in (KEY_MARK, key["sha256"], "o-ann", "GHSA-why"))


def test_routes_go_on_page_by_page(world):
    for number in range(PAGE + 2):
        world.put(world.pinned(f"chat-{number:03}"))
    browser, path, seen = sign_in(world), "/routes", []
    while path:
        page = Page(browser.get(path).text)
        seen += [tag["href"] for tag in page.of("a") if "/deployments/" in (tag["href"] or "")]
        path = next((tag["href"] for tag in page.of("a") if tag.get("rel") == "next"), None)
    assert len(seen) == len(set(seen)) == PAGE + 2


def test_hostile_names_stay_text(world):
    world.put(world.pinned(served_name=EVIL))
    put(world, "prices", "one", {
        "model": EVIL, "usd_per_million_input_tokens": 1, "usd_per_million_output_tokens": 1,
    })  # fmt: skip
    put(world, "routes", "one", {"model": EVIL, "aliases": [EVIL + "2"]})
    browser = sign_in(world)
    for path in ("/routes", "/prices", "/filters", "/routes?after=%3Cscript%3E"):
        answer = browser.get(path)
        check_frame(answer)
        assert "<script>alert" not in answer.text
    assert EVIL in Page(browser.get("/routes").text).words
    assert EVIL in Page(browser.get("/prices").text).words


@given(st.floats(0, 1e9, allow_subnormal=False))
def test_a_price_is_shown_exactly(amount):
    assert float(_usd(amount).replace(",", "")) == amount
