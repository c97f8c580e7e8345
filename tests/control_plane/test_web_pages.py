"""The pages for people: nobody gets in without a token, nothing hostile gets out, the API stays as it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from control_plane.records import Scope
from control_plane.web import rendering
from control_plane.web.application import ROUTES
from control_plane.web.sessions import MOST, Sessions
from control_plane.web.signing_in import COOKIE
from control_plane.web.words import day_and_time, https_links
from fleet.advisory import Reference
from tests.control_plane.browser import ORIGIN, Page, check_frame, sign_in

PAGES = ("/", "/routes", "/prices", "/filters", "/advisories", "/pins", "/usage", "/audit")
HTML = {"Accept": "text/html,application/xhtml+xml"}
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
HOSTILE = st.one_of(
    TEXT,
    st.sampled_from(
        ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onfocus='x", "{{ 7 * 7 }}", "</title><b>"]
    ),
)


def filled(world) -> None:
    """Deployments of every sort, advisories, events."""
    world.put(world.pinned("fine"))
    world.put(world.pinned("older", version="0.32.0"))
    world.publish(world.record("GHSA-fixed", fixed="0.33.0"), world.record("GHSA-rated-none", severity=None))
    while world.assembly.house.proposals.work():
        pass
    world.assembly.house.reconciler.look()


def facts_digest(world) -> str:
    """The digest as pages show it."""
    return world.assembly.house.facts.current().digest.removeprefix("sha256:")[:12]


# Who gets in


def test_without_a_session_every_page_asks_for_a_token(world):
    filled(world)
    for path in (*PAGES, "/deployments/fine", "/deployments/none", "/deployments/fine/deeper"):
        answer = world.client.get(path, headers=HTML)
        assert answer.status_code == 401
        check_frame(answer)
        assert "Sign in" in answer.text
        assert "vllm" not in answer.text
        assert facts_digest(world) not in answer.text


def test_no_route_but_the_sign_in_and_the_files_answers_without_a_session(world):
    for route in ROUTES:
        path = route.path.replace("{name}", "style.css")
        is_open = route.path in ("/sign-in", "/sign-out", "/assets/{name}")
        for method in route.methods:
            answer = world.client.request(method, path)
            assert (answer.status_code == 401) is not is_open, (method, path)


def test_a_token_of_the_api_is_no_session(world):
    assert world.client.get("/", headers=world.as_(Scope.SECURITY_ADMIN)).status_code == 401


def test_a_token_of_any_scope_of_people_opens_a_session(world):
    for scope in set(Scope) - {Scope.GATEWAY}:
        assert sign_in(world, scope).get("/").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(world):
    for base, is_secure in (("http://testserver", False), ("https://testserver", True)):
        browser = TestClient(world.assembly.app, base_url=base, follow_redirects=False)
        token = world.tokens[Scope.READER]
        answer = browser.post("/sign-in", data={"token": token}, headers={"Origin": base})
        cookie = answer.headers["set-cookie"]
        assert token not in cookie
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/", "max-age=28800"} <= parts
        assert ("secure" in parts) is is_secure


def test_a_wrong_token_is_refused_without_saying_more(world):
    answers = set()
    for token in ("", "x", "eh_" + "a" * 39, "eh_\x80", world.tokens[Scope.READER][:-1]):
        answer = world.client.post("/sign-in", data={"token": token}, headers=ORIGIN)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        answers.add(answer.text)
    assert len(answers) == 1
    assert "This token is not valid." in answers.pop()


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
def test_a_form_of_another_site_is_refused(world, path):
    browser = sign_in(world)
    for origin in ({}, "null", "http://evil.example", "https://testserver.evil.example", "http://["):
        headers = {"Origin": origin} if origin else {}
        answer = browser.post(path, data={"token": world.tokens[Scope.READER]}, headers=headers)
        assert answer.status_code == 403
        check_frame(answer)
        assert "set-cookie" not in answer.headers
    assert browser.get("/").status_code == 200


def test_a_form_that_is_no_form_is_a_page_too(world):
    for body, kind in (("{}", "application/json"), ("a=" + "x" * 5_000, None), ("a=1&" * 20, None)):
        headers = ORIGIN | {"Content-Type": kind or "application/x-www-form-urlencoded"}
        answer = world.client.post("/sign-in", content=body, headers=headers)
        assert answer.status_code == 400
        check_frame(answer)


def test_a_session_ends_after_eight_hours_and_says_so(world):
    browser = sign_in(world)
    world.clock.forward(hours=7, minutes=59)
    assert browser.get("/").status_code == 200
    world.clock.forward(minutes=1)
    answer = browser.get("/")
    assert answer.status_code == 401
    assert "session has ended" in answer.text


def test_a_replaced_token_ends_its_sessions(world):
    browser = sign_in(world)
    world.assembly.house.tokens.create(f"test-{Scope.READER}", Scope.READER)
    assert browser.get("/").status_code == 401


def test_signing_out_ends_the_session_not_only_the_cookie(world):
    browser = sign_in(world)
    secret = browser.cookies[COOKIE]
    answer = browser.post("/sign-out", headers=ORIGIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert world.client.get("/", headers={"Cookie": f"{COOKIE}={secret}"}).status_code == 401


def test_only_forms_sign_out(world):
    browser = sign_in(world)
    assert browser.get("/sign-out").status_code == 405
    assert browser.get("/").status_code == 200


def test_signing_in_again_gives_another_session_and_ends_the_one_before(world):
    browser = sign_in(world)
    before = browser.cookies[COOKIE]
    browser.post("/sign-in", data={"token": world.tokens[Scope.OPERATOR]}, headers=ORIGIN)
    assert browser.cookies[COOKIE] != before
    assert world.client.get("/", headers={"Cookie": f"{COOKIE}={before}"}).status_code == 401


def test_the_page_that_was_wanted_is_shown_afterwards(world):
    asked = world.client.get("/advisories?package=vllm&severity=high")
    target = next(tag["value"] for tag in Page(asked.text).of("input") if tag.get("name") == "next")
    assert target == "/advisories?package=vllm&severity=high"
    browser = TestClient(world.assembly.app, follow_redirects=False)
    answer = browser.post("/sign-in", data={"token": world.tokens[Scope.READER], "next": target}, headers=ORIGIN)
    assert answer.headers["location"] == target


def test_signing_in_never_leads_to_another_site(world):
    browser = TestClient(world.assembly.app, follow_redirects=False)
    elsewhere = ("//evil.example", "/\\evil.example", "https://evil.example", "evil", "/\t/evil.example", "/a\r\nb")
    for target in (*elsewhere, "", "/sign-out", "/sign-in"):
        answer = browser.post("/sign-in", data={"token": world.tokens[Scope.READER], "next": target}, headers=ORIGIN)
        assert answer.headers["location"] == "/"


def test_sessions_are_limited_in_number_and_show_no_token(world):
    sessions = Sessions(tokens=world.assembly.house.tokens, clock=world.clock)
    token = world.tokens[Scope.READER]
    first, second = sessions.open(token), sessions.open(token)
    for _ in range(MOST - 1):
        sessions.open(token)
    assert sessions.find(first) is None
    found = sessions.find(second)
    assert found is not None
    assert token not in repr(found)


# What is shown


@pytest.mark.parametrize("is_filled", [False, True])
def test_every_page_renders_with_and_without_data(world, is_filled):
    if is_filled:
        filled(world)
    browser = sign_in(world)
    for path in (*PAGES, "/?show=refused", "/?show=not-running", "/advisories?severity=critical&q=x"):
        answer = browser.get(path)
        assert answer.status_code == 200
        check_frame(answer)
        assert facts_digest(world) in answer.text
        assert "invented" in answer.text
        assert "read today" in answer.text


def test_the_overview_says_of_each_deployment_whether_the_rules_accept_it(world):
    filled(world)
    words = re.sub(r"\s+", " ", Page(sign_in(world).get("/").text).words)
    assert "2 deployments 1 compliant 1 refused 0 running" in words
    assert "older example/model vllm 0.32.0 Starting refused vllm 0.33.0" in words
    refused = Page(sign_in(world).get("/?show=refused").text)
    assert (
        next(tag["href"] for tag in refused.of("a") if "/deployments/" in (tag["href"] or "")) == "/deployments/older"
    )
    assert "/deployments/fine" not in str(refused.tags)


def test_a_deployment_shows_why_it_is_refused_and_what_would_be_right(world):
    filled(world)
    answer = sign_in(world).get("/deployments/older")
    check_frame(answer)
    shown = world.get("/v1/deployments/older").json()["status"]
    assert shown["violations"]
    assert shown["residuals"]
    for item in (*shown["violations"], *shown["residuals"]):
        assert item["message"] in Page(answer.text).words
        assert item["remedy"] in Page(answer.text).words
    assert shown["proposal"]["reason"] in Page(answer.text).words
    assert shown["identity"] in answer.text


def test_a_deployment_without_a_proposal_says_why(world):
    world.put(world.pinned())
    world.publish(world.record("GHSA-everywhere"))
    browser = sign_in(world)
    page = browser.get("/deployments/chat")
    assert page.status_code == 200
    while world.assembly.house.proposals.work():
        pass
    reason = world.get("/v1/deployments/chat").json()["status"]["noProposalReason"]
    assert reason is not None
    assert reason in Page(browser.get("/deployments/chat").text).words


def test_what_does_not_exist_is_a_page(world):
    browser = sign_in(world)
    for path in ("/deployments/none", "/deployments/%3Cb%3E", "/deployments/chat/deeper", "/nowhere", "/assets/none"):
        answer = browser.get(path, headers=HTML)
        assert answer.status_code == 404
        check_frame(answer)
        assert "<b>" not in answer.text


def test_a_wrong_parameter_is_a_page_that_says_which(world):
    browser = sign_in(world)
    for path in ("/?show=x", "/?after=%00", "/advisories?severity=x", "/audit?until=-1"):
        answer = browser.get(path)
        assert answer.status_code == 400
        check_frame(answer)


def test_lists_go_on_page_by_page(world):
    for number in range(52):
        world.put(world.pinned(f"chat-{number:03}"))
    world.publish(*(world.record(f"GHSA-{number:03}", fixed="0.1.0") for number in range(60)))
    browser = sign_in(world)
    for start, wanted in (("/", 52), ("/advisories?package=vllm", 61), ("/audit", 50)):
        seen, path = [], start
        while path:
            page = Page(browser.get(path).text)
            seen += [tag for tag in page.of("th") if tag.get("scope") == "row"]
            path = next((tag["href"] for tag in page.of("a") if tag.get("rel") == "next"), None)
        assert len(seen) >= wanted
    assert len(seen) == world.get("/v1/audit-events:head").json()["sequence"]


def test_what_needs_attention_stands_on_every_page(world):
    world.feed.problem = "the folder is <gone>"
    world.assembly.sync.look()
    world.assembly.house.readiness.refresh()
    for path in PAGES:
        assert "the folder is <gone>" in Page(sign_in(world).get(path).text).words


# Nothing hostile gets out


@given(text=HOSTILE)
def test_whatever_stands_in_the_data_stays_text(text):
    template = rendering._templates().from_string('<p title="{{ text }}">{{ text }}</p>')
    page = Page(template.render(text=text))
    assert [name for name, _ in page.tags] == ["p"]
    assert set(page.tags[0][1]) == {"title"}


def test_hostile_names_and_reasons_stay_text(world):
    evil = "<script>alert('x')</script>\"'>"
    hostile = replace_references(
        world.record(f"GHSA-{evil}"), "javascript:alert(1)", "https://good.example/a", "http://p/"
    )
    world.put(world.pinned(served_name=evil))
    world.publish(hostile)
    while world.assembly.house.proposals.work():
        pass
    world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}}, params={"reason": evil})
    browser = sign_in(world)
    for path in (*PAGES, "/deployments/chat", "/advisories?q=%3Cscript%3E", "/?show=%3Cscript%3E"):
        answer = browser.get(path)
        assert "<script>alert" not in answer.text
        check_frame(answer)
    assert evil in Page(browser.get("/audit").text).words
    links = [tag for tag in Page(browser.get("/advisories").text).of("a") if not tag["href"].startswith(("/", "#"))]
    assert [tag["href"] for tag in links] == ["https://good.example/a"]
    assert all("noreferrer" in (tag["rel"] or "") for tag in links)


def replace_references(record, *urls: str):
    return record.model_copy(update={"references": tuple(Reference(type="WEB", url=url) for url in urls)})


@given(text=st.one_of(TEXT, TEXT.map("https://".__add__), TEXT.map("javascript:".__add__)))
def test_only_plain_https_addresses_are_links(text):
    for url, host in https_links([text]):
        assert url == text
        assert url.startswith("https://")
        assert re.fullmatch(r"[a-z0-9.-]+", host)


def test_addresses_with_a_name_before_the_host_are_no_links():
    assert https_links(["https://good.example@evil.example/", "https://[", "HTTPS://a.example/"]) == [
        ("HTTPS://a.example/", "a.example")
    ]


def test_a_moment_is_written_for_people_and_other_text_stays():
    assert day_and_time("2030-01-01T12:00:00.000000Z") == "2030-01-01 12:00:00 UTC"
    assert day_and_time("soon") == "soon"
    assert day_and_time(None) == "not known"


# The API stays as it is


def test_the_pages_are_no_part_of_the_description(world):
    assert not set(world.assembly.app.openapi()["paths"]) & {route.path for route in ROUTES}


def test_errors_of_the_api_stay_problems_even_for_browsers(world):
    browser = sign_in(world)
    for method, path, status in (("GET", "/v1/nothing", 404), ("POST", "/livez", 405), ("GET", "/v1/pins", 401)):
        answer = browser.request(method, path, headers=HTML)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_session_is_no_token_of_the_api(world):
    assert sign_in(world, Scope.SECURITY_ADMIN).get("/v1/deployments", headers=HTML).status_code == 401


def test_an_unknown_address_is_a_problem_for_programs(world):
    answer = world.client.get("/nowhere")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_the_files_of_the_pages_come_from_here_and_no_others(world):
    for name, media_type in rendering.ASSETS.items():
        answer = world.client.get(f"/assets/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(media_type)
        assert answer.headers["x-content-type-options"] == "nosniff"
    for name in ("none.css", "..%2Fpages.py", "%2e%2e"):
        assert world.client.get(f"/assets/{name}").status_code == 404
