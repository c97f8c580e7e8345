"""The commands around the gateway against a real control plane: what they change, print and exit with."""

import json

import pytest

from cli.commands import keys
from cli.exits import Exit
from fleet.api_keys import KEY_MARK, is_well_formed
from tests.control_plane.commands import APPS


def snapshot(world):
    return world.get("/v1/gateway/snapshot").json()


def test_a_key_is_made_rotated_and_revoked(shell, world):
    assert shell("tenants", "create", "acme", "--tokens-per-minute", 100)[0] == 0
    code, out, talk = shell(
        "keys", "create", "acme", "--name", "app", "--model", "chat", "--expires", "2031-01-01", "-o", "json"
    )
    first = json.loads(out)
    assert (code, first["spec"]["models"], first["spec"]["expires"]) == (0, ["chat"], "2031-01-01T00:00:00Z")
    assert keys.SHOWN_ONCE in talk
    code, out, _ = shell("keys", "rotate", "app", "--overlap", "7d", "--reason", "it stood in a log", "-o", "name")
    assert (code, is_well_formed(out.strip(), KEY_MARK)) == (0, True)
    new, old = snapshot(world)["keys"]
    assert old["expires_unix_seconds"] == int(world.clock.now().timestamp()) + 7 * 86_400
    assert new["generation"] == 2
    table = shell("keys", "list", "--tenant", "acme")[1]
    assert "2030-01-08T12:00:00Z" in table
    assert out.strip() not in table
    assert shell("keys", "get", "app")[0] == 0
    assert shell("keys", "delete", "app")[0] == 0
    assert snapshot(world)["keys"] == []
    assert shell("keys", "get", "app")[0] == Exit.NOT_FOUND_OR_CONFLICT


@pytest.mark.parametrize("overlap", ["1w", "h", "-1s", "1.5h", ""])
def test_an_overlap_that_is_no_time_is_a_usage_error(shell, overlap):
    code, _, message = shell("keys", "rotate", "app", f"--overlap={overlap}")
    assert (code, "such as 24h" in message) == (Exit.USAGE, True)


def test_what_is_given_of_a_tenant_changes_and_the_rest_stays(shell, world, tmp_path):
    file = tmp_path / "acme.yaml"
    file.write_text("kind: Tenant\nmetadata: {name: acme}\nspec: {models: [{model: chat, tokens_per_day: 5}]}\n")
    assert shell("tenants", "apply", file)[0] == 0
    assert shell("tenants", "create", "acme", "--priority", 3)[0] == 0
    (tenant,) = snapshot(world)["tenants"]
    assert (tenant["priority"], tenant["models"][0]["tokens_per_day"]) == (3, 5)


def test_a_code_path_is_closed_and_opened(shell, world):
    closing = ("close", "chat", "multimodal", "--reference", "EH-12", "--owner", "ann", "--reason", "pin follows")
    assert shell("routes", *closing, "--advisory", "GHSA-x")[0] == 0
    (route,) = snapshot(world)["routes"]
    assert route["closed_paths"] == [{"path": "multimodal", "reference": "EH-12"}]
    assert shell("routes", "close", "chat", "tool-parser", *closing[3:])[0] == 0
    assert "multimodal (EH-12)" in shell("routes", "list")[1]
    assert shell("routes", "open", "chat", "multimodal", "--reason", "it is out")[0] == 0
    (route,) = snapshot(world)["routes"]
    assert [item["path"] for item in route["closed_paths"]] == ["tool-parser"]
    code, _, message = shell("routes", "open", "chat", "multimodal")
    assert (code, "closed are: tool-parser" in message) == (Exit.NOT_FOUND_OR_CONFLICT, True)
    reasons = [item["reason"] for item in world.get("/v1/audit-events").json()["items"]]
    assert "multimodal closed as EH-12 for GHSA-x by ann: pin follows" in reasons
    code, _, message = shell("routes", "close", "chat", "multimodl", *closing[3:])
    assert (code, "did you mean 'multimodal'" in message) == (Exit.USAGE, True)


def test_a_price_is_set(shell, world):
    assert shell("prices", "set", "chat", "--input-usd", 0.5, "--output-usd", 1.5, "--cached-usd", 0.05)[0] == 0
    (price,) = snapshot(world)["prices"]
    assert price["usd_per_million_cached_input_tokens"] == 0.05
    assert "0.05" in shell("prices", "list")[1]


def test_what_get_prints_can_be_edited_and_applied(shell, world, tmp_path):
    shell("prices", "set", "chat", "--input-usd", 0.5, "--output-usd", 1.5)
    code, text, _ = shell("prices", "get", "chat", "-o", "yaml")
    file = tmp_path / "price.yaml"
    file.write_text(text.replace("1.5", "2.5"))
    code, out, _ = shell("prices", "apply", file, "--dry-run")
    assert (code, "/usd_per_million_output_tokens" in out) == (0, True)
    assert snapshot(world)["prices"][0]["usd_per_million_output_tokens"] == 1.5
    assert shell("prices", "apply", file, "--reason", "new contract")[0] == 0
    assert snapshot(world)["prices"][0]["usd_per_million_output_tokens"] == 2.5
    assert world.get("/v1/audit-events").json()["items"][-1]["reason"] == "new contract"
    code, _, message = shell("prices", "apply", file)
    assert (code, "read it again" in message) == (Exit.NOT_FOUND_OR_CONFLICT, True)


def test_an_issuer_and_a_filter_are_applied_from_stdin(shell, world):
    shell("tenants", "create", "acme")
    issuer = {
        "kind": "TokenIssuer",
        "metadata": {"name": "login"},
        "spec": {
            "issuer": "https://login.example.com/",
            "audiences": ["gateway"],
            "jwks_url": "https://login.example.com/keys",
            "allowed_tenants": ["acme"],
        },
    }
    assert shell("token-issuers", "apply", "-", text=json.dumps(issuer))[0] == 0
    assert "https://login.example.com/" in shell("token-issuers", "list")[1]
    fruit = "metadata: {name: fruit}\nspec: {denied: [banana], classes: {email: hash}}\n"
    assert shell("output-filters", "apply", "-", text=fruit)[0] == 0
    assert [item["name"] for item in snapshot(world)["output_filters"]] == ["fruit"]
    assert shell("output-filters", "list", "-o", "name")[1].split() == ["fruit"]
    assert shell("output-filters", "delete", "fruit")[0] == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"kind: Tenant\nmetadata: {name: chat}\n", "'prices apply' takes Price"),
        (b"kind: Price\nspec: {}\n", "/metadata/name is missing"),
        (b"- 1\n", "expected an object of kind Price"),
        (b"\xff", "not UTF-8"),
        (b"a: b: c\n", "line 1"),
        (None, "can't be read"),
    ],
)
def test_a_file_that_cannot_be_applied_is_a_usage_error(shell, tmp_path, content, words):
    file = tmp_path / "price.yaml"
    if content is not None:
        file.write_bytes(content)
    code, _, message = shell("prices", "apply", file)
    assert code == Exit.USAGE
    assert words in message
    assert str(file) in message


@pytest.mark.parametrize("noun", APPS)
def test_help_of_every_command_has_an_example(noun):
    for info in APPS[noun].registered_commands:
        said = info.help or info.callback.__doc__
        assert f"Example: enginehouse {noun} {info.name}" in said
