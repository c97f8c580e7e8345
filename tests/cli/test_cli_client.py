"""The client of the admin API: paging, ETags, problems and exit codes, against a fake server."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from cli import client as cli_client
from cli.client import Api, Refused, member
from cli.exits import CommandError, Exit, UsageError
from cli.main import app
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


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(200, text="<html>hello</html>"), "no JSON"),
        (httpx.Response(200, content=b"\xff\xfe\x00"), "no JSON"),
        (httpx.Response(200, content=b"[" * 100_000), "no JSON"),
        (httpx.Response(200, json=[1]), "no JSON object"),
        (httpx.Response(204), "no JSON"),
        (httpx.Response(302, headers={"Location": "http://elsewhere/login"}), "redirect .302. to http://elsewhere"),
        (httpx.Response(200, json={}), "without a list 'items'"),
        (httpx.Response(200, json={"items": "x"}), "without a list 'items'"),
        (httpx.Response(200, json={"items": [1]}), "without a list 'items'"),
        (httpx.Response(200, json={"items": [], "next_page_token": "a"}), "the same page again"),
        (httpx.Response(500, json=["x"]), "HTTP 500"),
        (httpx.Response(422, json={"violations": [1]}), "HTTP 422"),
        (httpx.Response(503, text="<html>"), "HTTP 503"),
    ],
)
def test_what_is_no_control_plane_is_said_in_words(answer: httpx.Response, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        list(api(lambda _: answer).every("/v1/deployments"))


def test_an_endless_answer_and_one_that_never_becomes_whole_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_client, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(CommandError, match="more than 10 bytes"):
        api(lambda _: httpx.Response(200, content=b"x" * 11)).get("/v1/facts")
    monkeypatch.setattr(cli_client, "ANSWER_SECONDS", -1.0)
    with pytest.raises(CommandError, match="nothing whole within"):
        api(lambda _: httpx.Response(200, content=b"{}")).get("/v1/facts")


@pytest.mark.parametrize("name", ["../audit-events", "a?b#c", "a/b", "ü \n", "%2e%2e", "\udcff"])
def test_no_name_leads_to_another_path(name: str) -> None:
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return httpx.Response(200, json={})

    with contextlib.suppress(UsageError):
        api(handler).get(member("deployments", name))
    for path in seen:
        assert path.startswith(b"/v1/deployments/")
        assert path.count(b"/") == 3
        assert b"?" not in path


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a name"):
        member("deployments", name)


@pytest.mark.parametrize("server", ["http://[::1", "http://127.0.0.1:abc", "http://x:y:z"])
def test_a_server_that_is_no_url_is_a_usage_error(server: str) -> None:
    with pytest.raises(UsageError, match="not a URL"):
        Api(Profile(server), httpx.MockTransport(lambda _: httpx.Response(200, json={})))


@pytest.mark.parametrize("token", ["a\nb", "é", "…", "a\x00b", "\udcff"])
def test_a_token_that_no_header_can_carry_is_a_usage_error(token: str) -> None:
    with pytest.raises(UsageError, match="the token holds signs") as caught:
        profile("http://fleet", token)
    assert token not in str(caught.value)


def test_a_token_from_a_file_may_end_with_a_line_break() -> None:
    assert profile("http://fleet", "eh_x\n").token == "eh_x"


@pytest.mark.parametrize("text", ["profiles = 1", "[profiles]\ndefault = 1", "profiles = [1]"])
def test_a_config_file_without_tables_of_profiles_is_a_usage_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "enginehouse").mkdir()
    (tmp_path / "enginehouse/config.toml").write_text(text)
    with pytest.raises(UsageError, match=r"write \[profiles.NAME\]"):
        profile(None, None)


@pytest.mark.parametrize(("refused", "code"), [(False, 0), (True, 3)])
def test_a_dry_run_shows_the_plan_and_exits_3_when_it_is_refused(
    refused: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    violation = {"rule": "version-published", "severity": "mandatory", "message": "not published", "remedy": "take 1"}
    plan = {
        "kind": "Plan",
        "name": "support-chat",
        "action": "create",
        "refused": refused,
        "changes": [],
        "violations": [violation] if refused else [],
    }

    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return problem(404)
        assert request.url.params["dry_run"] == "true"
        return httpx.Response(200, json=plan)

    monkeypatch.setattr(Api, "connect", classmethod(lambda *_: api(handler)))
    written = tmp_path / "support-chat.yaml"
    written.write_text(WRITTEN)
    assert CliRunner().invoke(app, ["pin", str(written), "--write"]).exit_code == 0
    arguments = ["deployments", "apply", str(tmp_path / "support-chat.pinned.yaml"), "--dry-run"]
    for output in ("table", "json", "name"):
        result = CliRunner().invoke(app, [*arguments, "-o", output])
        assert result.exit_code == code
        assert "support-chat" in result.stdout


WRITTEN = """
kind: InferenceDeployment
metadata: {name: support-chat}
spec:
  workload: chat
  model: {id: Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218}
  batch: {max_model_len: 8192}
  hardware: {instance_type: g6.xlarge, gpus: 1}
"""


def test_a_refusal_for_an_open_engine_names_the_command_that_pins_it() -> None:
    violation = {"rule": "four-pins", "pointer": "/spec/engine/version", "message": "not pinned: the version is open"}
    refused = problem(422, violations=[violation])
    assert "'enginehouse pin FILE --write'" in str(cli_client.problem_of(refused))
    other = problem(422, violations=[violation | {"pointer": "/spec/batch"}])
    assert "enginehouse pin" not in str(cli_client.problem_of(other))


SUMMARY = {"metadata": {"name": "support-chat"}, "status": {"identity": "0" * 32, "phase": "Running", "conditions": []}}
FULL = SUMMARY | {"spec": {"model": {"id": "Qwen/Qwen3-32B"}, "engine": {"name": "vllm", "version": "0.33.0"}}}


@pytest.mark.parametrize(("output", "view"), [("name", "basic"), ("table", None), ("json", None)])
def test_a_list_asks_for_what_it_shows(output: str, view: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert request.url.params.get("view") == view
        return httpx.Response(200, json={"items": [SUMMARY if view else FULL]})

    monkeypatch.setattr(Api, "connect", classmethod(lambda *_: api(handler)))
    result = CliRunner().invoke(app, ["deployments", "list", "-o", output])
    assert result.exit_code == 0, result.exception
    if output == "table":
        assert result.stdout.splitlines()[1].split()[-2:] == ["0" * 32, "-"]
