"""The client of the admin API: paging, ETags, problems and exit codes, against a fake server."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx2 as httpx
import pytest

from cli.client import Api, Refused
from cli.exits import CommandError, Exit, UsageError
from cli.server_profile import Profile, profile
from local.identity import ProcessIdentity
from local.layout import Layout
from local.record import FleetRecord, write


def api(handler: Callable[[httpx.Request], httpx.Response]) -> Api:
    return Api(Profile("http://fleet", "secret-token"), httpx.MockTransport(handler))


def problem(status: int, **fields: object) -> httpx.Response:
    return httpx.Response(status, json={"title": "Wrong", "detail": "because", "status": status, **fields})


def test_a_list_is_read_page_by_page_with_the_token_of_each() -> None:
    pages = {None: ([1, 2], "a"), "a": ([3], "b"), "b": ([], None)}
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        token = request.url.params.get("page_token")
        seen.append(request.headers["Authorization"])
        items, following = pages[token]
        return httpx.Response(200, json={"items": [{"n": n} for n in items], "next_page_token": following})

    assert [item["n"] for item in api(handler).every("/v1/deployments")] == [1, 2, 3]
    assert set(seen) == {"Bearer secret-token"}


def test_a_change_of_what_exists_carries_its_etag() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"metadata": {}}, headers={"ETag": '"7"'})
        assert request.headers["If-Match"] == '"7"'
        return httpx.Response(200, json=json.loads(request.content))

    client = api(handler)
    _, etag = client.get_with_etag("/v1/deployments/x")
    assert client.put("/v1/deployments/x", {"a": 1}, etag=etag) == {"a": 1}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, Exit.USAGE),
        (401, Exit.FAILED),
        (403, Exit.FAILED),
        (404, Exit.NOT_FOUND_OR_CONFLICT),
        (409, Exit.NOT_FOUND_OR_CONFLICT),
        (412, Exit.NOT_FOUND_OR_CONFLICT),
        (428, Exit.NOT_FOUND_OR_CONFLICT),
        (500, Exit.FAILED),
    ],
)
def test_a_problem_becomes_an_exit_code_and_a_sentence(status: int, code: Exit) -> None:
    with pytest.raises(CommandError, match="Wrong: because") as caught:
        api(lambda _: problem(status)).get("/v1/deployments/x")
    assert caught.value.code is code


def test_a_refusal_shows_its_violations_and_exits_3() -> None:
    violations = [{"rule": "version-published", "message": "vllm 0.18.2 is not published"}]
    with pytest.raises(Refused, match=r"version-published: vllm 0\.18\.2 is not published") as caught:
        api(lambda _: problem(422, violations=violations)).put("/v1/deployments/x", {})
    assert caught.value.code is Exit.REFUSED


def test_something_that_does_not_exist_is_an_answer() -> None:
    assert api(lambda _: problem(404)).find("/v1/deployments/x") is None
    with pytest.raises(CommandError):
        api(lambda _: problem(500)).find("/v1/deployments/x")


def test_an_answer_that_is_no_problem_document_still_ends_well() -> None:
    with pytest.raises(CommandError, match="HTTP 502"):
        api(lambda _: httpx.Response(502, text="<html>")).get("/v1/deployments")


def test_a_server_that_is_away_is_named_and_the_token_is_not() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(CommandError, match="http://fleet can't be reached") as caught:
        api(handler).get("/v1/deployments")
    assert "secret-token" not in str(caught.value)
    assert "secret-token" not in repr(Profile("http://fleet", "secret-token"))


def test_options_win_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("ENGINEHOUSE_SERVER", raising=False)
    monkeypatch.delenv("ENGINEHOUSE_TOKEN", raising=False)
    with pytest.raises(UsageError, match="no server"):
        profile(None, None)
    (tmp_path / "enginehouse").mkdir()
    (tmp_path / "enginehouse" / "config.toml").write_text(
        '[profiles.default]\nserver = "http://file/"\ntoken = "t"\n[profiles.prod]\nserver = "https://prod"\n'
    )
    assert profile(None, None) == Profile("http://file", "t")
    assert profile(None, None, "prod").server == "https://prod"
    monkeypatch.setenv("ENGINEHOUSE_SERVER", "http://env")
    assert profile(None, None).server == "http://env"
    assert profile("http://option", "u") == Profile("http://option", "u")
    with pytest.raises(UsageError, match="it has default, prod"):
        profile(None, None, "stage")


def test_without_a_word_the_one_fleet_on_this_machine_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("ENGINEHOUSE_SERVER", "ENGINEHOUSE_TOKEN", "ENGINEHOUSE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    supervisor = ProcessIdentity(pid=1, start_ticks=1)
    for name in ("local", "demo-1"):
        layout = Layout(tmp_path / "state" / "enginehouse" / name)
        layout.create()
        urls = {"control_plane": f"http://{name}"}
        write(layout.record, FleetRecord(state="running", supervisor=supervisor, urls=urls))
        layout.token("operator").write_text("eh_token\n")
        if name == "local":
            assert profile(None, None) == Profile("http://local", "eh_token")
    with pytest.raises(UsageError, match="no server"):
        profile(None, None)
