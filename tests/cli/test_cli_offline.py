"""Commands that need no server: their contracts, exit codes and messages."""

import json
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli import facts_at_hand
from cli.exits import CommandError
from cli.main import app
from fleet.policy import Policy
from sources.facts import load, write
from sources.snapshot import bundled

RECORD = {
    "schema_version": "1.7.0",
    "id": "CVE-2026-1000",
    "aliases": ["GHSA-aaaa-bbbb-cccc"],
    "modified": "2026-11-01T00:00:00Z",
    "published": "2026-11-01T00:00:00Z",
    "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "vllm"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "0.33.0"}]}],
        }
    ],
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(RECORD))
    return folder


def test_check_gives_the_documented_document(data: Path) -> None:
    result = run("advisories", "check", "vllm==0.32.0", "--data", str(data), "-o", "json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert {key: answer[key] for key in ("engine", "version", "published", "verdict")} == {
        "engine": "vllm",
        "version": "0.32.0",
        "published": True,
        "verdict": "affected",
    }
    match = answer["matches"][0]
    assert {"id", "aliases", "severity", "paths", "result", "reason", "fixed"} <= set(match)
    assert match["id"] == "CVE-2026-1000"
    assert match["aliases"] == ["GHSA-aaaa-bbbb-cccc"]
    assert match["severity"] == "critical"
    assert match["fixed"] == ["0.33.0"]


@pytest.mark.parametrize(
    ("release", "verdict"),
    [
        ("vllm==0.33.0", "not_affected"),
        ("vllm==0.33.0rc1", "affected"),
        ("vllm==0.32.0+cu129", "affected"),
        ("vllm==0.33.1.dev5+gabc1234", "unknown"),
        ("vllm==nightly", "unknown"),
        ("sglang==0.5.23", "unknown"),
    ],
)
def test_check_follows_the_data_it_was_given(data: Path, release: str, verdict: str) -> None:
    result = run("advisories", "check", release, "--data", str(data), "-o", "json")
    assert json.loads(result.stdout)["verdict"] == verdict


def test_a_query_exits_0_whatever_it_finds_and_3_with_fail(data: Path) -> None:
    arguments = ("advisories", "check", "vllm==0.32.0", "--data", str(data))
    assert run(*arguments).exit_code == 0
    assert run(*arguments, "--fail").exit_code == 3
    assert run("advisories", "check", "vllm==0.33.0", "--data", str(data), "--fail").exit_code == 0


@pytest.mark.parametrize(
    ("release", "limit", "code"),
    [
        ("vllm==0.32.0", "affected", 3),
        ("vllm==nightly", "affected", 0),
        ("vllm==nightly", "no_fix_known", 0),
        ("vllm==nightly", "unknown", 3),
        ("vllm==0.33.0", "unknown", 0),
    ],
)
def test_fail_on_fails_from_that_verdict_on(release: str, limit: str, code: int, data: Path) -> None:
    assert run("advisories", "check", release, "--data", str(data), "--fail-on", limit).exit_code == code


def test_an_affected_version_says_which_one_to_take(data: Path) -> None:
    asked = ("advisories", "check", "vllm==0.32.0", "--data", str(data))
    assert "take vllm==0.33" in run(*asked).stdout
    assert json.loads(run(*asked, "-o", "json").stdout)["recommended"].startswith("0.33")


def test_pins_of_an_unknown_package_are_an_error_with_the_nearest_name() -> None:
    result = run("advisories", "pins", "--engine", "vlm")
    assert isinstance(result.exception, CommandError)
    assert result.exception.code == 4
    assert "did you mean 'vllm'?" in str(result.exception)


def test_an_engine_without_data_has_one_row_that_says_so() -> None:
    assert run("advisories", "pins", "--engine", "lmdeploy").stdout.count("closed") == 1


def test_a_bad_record_is_told_on_stderr_and_json_stays_json(data: Path) -> None:
    (data / "bad.json").write_text('{"id": "CVE-2026-2", "affected": [{"package": {"ecosystem": "PyPI", "name": "vll')
    result = run("advisories", "check", "vllm==0.33.0", "--data", str(data), "-o", "json")
    assert json.loads(result.stdout)["quarantined"]
    assert "quarantined" in result.stderr


def test_extras_do_not_hide_a_package(data: Path) -> None:
    answer = json.loads(run("advisories", "check", "vLLM[audio]==0.32.0", "--data", str(data), "-o", "json").stdout)
    assert (answer["engine"], answer["verdict"]) == ("vLLM", "affected")


def test_a_path_that_only_a_label_of_the_data_names_can_be_asked_for(data: Path) -> None:
    (data / "labels.json").write_text(json.dumps({"labels": {"vllm/CVE-2026-1000": ["watermark"]}}))
    asked = ("advisories", "check", "vllm==0.32.0", "--data", str(data), "-o", "json", "--path")
    assert json.loads(run(*asked, "watermark").stdout)["verdict"] == "affected"
    assert json.loads(run(*asked, "lora").stdout)["verdict"] == "not_affected"


def test_json_is_json_for_a_folder_whose_name_is_not_text(data: Path, checkout: Path) -> None:
    odd = data.parent / "d\udcff"
    odd.mkdir()
    (odd / "one.json").write_text(json.dumps(RECORD))
    program = [sys.executable, "-c", "from cli.main import run; run()", "advisories", "check", "vllm==0.32.0"]
    found = subprocess.run([*program, "--data", str(odd), "-o", "json"], capture_output=True, cwd=checkout, check=True)
    assert json.loads(found.stdout.decode("utf-8"))["verdict"] == "affected"


def test_the_list_shows_the_highest_rating_of_a_record_about_two_packages(data: Path) -> None:
    entry = RECORD["affected"][0]
    rated = [
        entry | {"package": {"ecosystem": "PyPI", "name": name}, "database_specific": {"severity": word}}
        for name, word in (("vllm", "LOW"), ("torch", "MODERATE"))
    ]
    (data / "one.json").write_text(json.dumps(RECORD | {"severity": [], "affected": rated}))
    listed = json.loads(run("advisories", "list", "--data", str(data), "-o", "json").stdout)["advisories"]
    assert [row["severity"] for row in listed] == ["medium"]


def test_a_path_may_be_given_by_its_word_or_its_code() -> None:
    answers = [
        run("advisories", "check", "vllm==0.29.0", "--path", path, "-o", "json") for path in ("mm", "multimodal")
    ]
    assert json.loads(answers[0].stdout) == json.loads(answers[1].stdout)


def test_pins_give_floors_and_a_recommendation(data: Path) -> None:
    result = run("advisories", "pins", "--engine", "vllm", "--data", str(data), "-o", "json")
    engine = json.loads(result.stdout)["engines"][0]
    assert engine["recommended"] == "0.33.0"
    core = next(pin for pin in engine["pins"] if pin["path"] == "core")
    assert core["floor"] == "0.33.0"
    assert core["decided_by"] == ["CVE-2026-1000"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("advisories", "check", "vllm"), "'vllm' is not ENGINE==VERSION"),
        (("advisories", "check", "vllm==  "), "'vllm==  ' is not ENGINE==VERSION"),
        (("advisories", "check", "vllm==0.33.0==1"), "is not ENGINE==VERSION"),
        (("advisories", "check", "vllm===0.33.0"), "is not ENGINE==VERSION"),
        (("advisories", "check", "vllm==0.33.*"), "is not ENGINE==VERSION"),
        (("advisories", "check", "vllm>=0.3,==0.33.0"), "is not ENGINE==VERSION"),
        (("advisories", "check", "vllm==0.33.0\udcff"), "is not ENGINE==VERSION"),
        (("advisories", "check", "vllm==" + "9" * 5000), "is longer than 200 characters"),
        (("advisories", "pins", "--env", "prd"), "did you mean 'prod'?"),
        (("advisories", "pins", "--policy", "nowhere.yaml"), "nowhere.yaml"),
        (("advisories", "check", "vllm==0.33.0", "--path", "multimodl"), "did you mean multimodal?"),
        (("advisories", "check", "vllm==0.33.0", "--data", "nowhere"), "nowhere"),
        (("review", "nowhere.yaml"), "nowhere.yaml"),
        (("deployments", "list", "--server", "localhost"), "is not a URL"),
    ],
)
def test_input_that_cannot_be_read_exits_2_and_says_what_would_be_right(
    arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    result = run(*arguments)
    assert getattr(result.exception, "code", None) == 2
    assert message in str(result.exception)


def test_the_runbook_is_refused_with_records(checkout: Path) -> None:
    files = sorted((checkout / "examples" / "runbook-2026").glob("*.yaml"))
    assert len(files) == 3
    result = run("review", *map(str, files), "-o", "json")
    assert result.exit_code == 3
    by_name = {item["name"]: item for item in json.loads(result.stdout)["manifests"]}
    assert all(item["refused"] for item in by_name.values())
    unpublished = by_name["vllm-multimodal-0-18-2"]["violations"]
    assert any("not published; near it: 0.18.1, 0.19.0" in item["message"] for item in unpublished)
    text_only = {item["advisory"] for item in by_name["sglang-text-only-0-4-3"]["violations"]}
    assert {"CVE-2026-112266", "CVE-2026-7669"} <= text_only
    assert "CVE-2026-3059" not in text_only


WRITTEN = """
apiVersion: enginehouse.dev/v1
kind: InferenceDeployment
metadata: {name: support-chat}
spec:
  workload: chat
  model: {id: Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218}
  engine: {name: vllm}
  batch: {max_model_len: 8192}
  hardware: {instance_type: g6.xlarge, gpus: 1}
"""


def test_pin_writes_a_lock_that_check_accepts_until_the_manifest_changes(tmp_path: Path) -> None:
    written = tmp_path / "support-chat.yaml"
    written.write_text(WRITTEN)
    assert run("pin", str(written), "--check").exit_code == 3
    assert run("pin", str(written), "--write").exit_code == 0
    assert "version: 0.33.0" in (tmp_path / "support-chat.pinned.yaml").read_text()
    assert run("pin", str(written), "--check").exit_code == 0
    written.write_text(WRITTEN.replace("8192", "4096"))
    stale = run("pin", str(written), "--check", "-o", "json")
    assert stale.exit_code == 3
    assert "changed since" in json.loads(stale.stdout)["stale"][0]


def test_a_glob_that_finds_pinned_files_too_works_a_second_time(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(WRITTEN)
    for _ in range(2):
        assert run("pin", *map(str, sorted(tmp_path.glob("*.yaml"))), "--write").exit_code == 0
    assert "already pinned" in str(run("pin", str(tmp_path / "x.pinned.yaml")).exception)


def test_a_pin_that_was_changed_by_hand_is_stale(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN)
    assert run("pin", str(written), "--write").exit_code == 0
    pinned = tmp_path / "x.pinned.yaml"
    pinned.write_text(pinned.read_text().replace("max_model_len: 8192", "max_model_len: 4096"))
    result = run("pin", str(written), "--check", "-o", "json")
    assert result.exit_code == 3
    assert "the manifest says 8192, the pin says 4096" in json.loads(result.stdout)["stale"][0]


def test_pin_keeps_every_rejection_with_its_reason(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN.replace("{name: vllm}", "{name: vllm, version: 0.18.2}"))
    result = run("pin", str(written), "-o", "json")
    assert result.exit_code == 3
    answer = json.loads(result.stdout)["manifests"][0]
    assert answer["pinned"] is None
    assert answer["rejections"][0]["rule"] == "version-published"


def test_pin_for_an_environment_without_a_digest_writes_nothing_and_exits_3(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN)
    result = run("pin", str(written), "--env", "staging", "--write", "-o", "json")
    assert result.exit_code == 3
    assert not (tmp_path / "x.pinned.yaml").exists()
    answer = json.loads(result.stdout)["manifests"][0]
    assert answer["choice"]["engine"] == "vllm"
    assert any(item["rule"] == "four-pins" or "image" in item["rule"] for item in answer["violations"])


def test_a_pin_with_a_canary_on_another_engine_is_two_files(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN + "  canary: {engine: {name: sglang}, share: 0.05}\n")
    assert run("pin", str(written), "--write").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"x.yaml", "x.pinned.yaml", "x.canary.pinned.yaml"}


def test_a_bundle_of_facts_stands_for_every_other_source(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN)
    bundle = tmp_path / "facts.json"
    facts = load("local", today=date(2026, 11, 29))
    write(bundle, facts.model_copy(update={"policy": Policy(allow_runtime_process=False)}))
    strict = run("pin", str(written), "--facts", str(bundle), "-o", "json")
    assert strict.exit_code == 3
    assert json.loads(strict.stdout)["facts"]["digest"] != facts.digest
    assert run("pin", str(written), "-o", "json").exit_code == 0
    both = run("pin", str(written), "--facts", str(bundle), "--data", str(tmp_path))
    assert "leave --data and --policy out" in str(both.exception)
    bundle.write_text("{}")
    assert "not a bundle of facts" in str(run("review", str(written), "--facts", str(bundle)).exception)


def test_a_mistyped_package_is_told_the_nearest(data: Path) -> None:
    result = run("advisories", "check", "vlm==0.33.0", "--data", str(data))
    assert "vlm is in no record; did you mean 'vllm'?" in result.stdout


def test_help_shows_every_command_and_its_exit_codes() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for word in ("advisories", "pin", "review", "deployments", "demo", "audit", "3 refused by rules"):
        assert word in " ".join(result.stdout.split())


def test_colour_is_left_out_where_nobody_looks(data: Path) -> None:
    assert "\x1b[" not in run("advisories", "check", "vllm==0.32.0", "--data", str(data)).stdout


def test_the_program_is_installed(checkout: Path) -> None:
    assert shutil.which("enginehouse", path=str(checkout / ".venv" / "bin")) or shutil.which("enginehouse")


def test_each_remedy_is_said_once_for_all_that_it_mends(checkout: Path) -> None:
    file = checkout / "examples" / "runbook-2026" / "vllm-multimodal-0.18.1.yaml"
    printed = run("review", str(file)).stdout
    assert printed.count("take vllm 0.33.0, the newest published version") == 1
    assert "    fixed in 0.22.0: CVE-2026-48746, " in printed
    assert "a triage entry for vllm and each record" in printed


def test_a_remedy_of_one_record_names_it(data: Path, tmp_path: Path) -> None:
    record = RECORD["affected"][0] | {"ranges": []}
    (data / "one.json").write_text(json.dumps(RECORD | {"affected": [record]}))
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN.replace("{name: vllm}", "{name: vllm, version: 0.33.0}"))
    assert "a triage entry for vllm and CVE-2026-1000" in run("review", str(written), "--data", str(data)).stdout


def test_a_manifest_that_leaves_the_engine_open_is_told_to_be_pinned(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN)
    hint = f"'enginehouse pin {written} --write' chooses what is open of the engine"
    assert hint in run("review", str(written)).stdout
    assert run("pin", str(written), "--write").exit_code == 0
    assert hint not in run("review", str(tmp_path / "x.pinned.yaml")).stdout


@pytest.mark.parametrize("command", [("check", "vllm==0.33.0"), ("pins",), ("show", "CVE-2026-48746")])
def test_the_age_of_old_data_stands_on_stderr_with_its_date(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bundled().retrieved
    assert read is not None
    answers = {}
    for days in (0, 1, 30):
        monkeypatch.setattr(facts_at_hand, "today", lambda later=days: read + timedelta(days=later))
        answers[days] = run("advisories", *command)
    assert answers[0].stderr == ""
    assert f"the advisory data is 1 day old: read on {read}" in answers[1].stderr
    assert f"the advisory data is 30 days old: read on {read}" in answers[30].stderr
    assert answers[0].stdout == answers[30].stdout


def test_data_without_a_day_says_that_its_age_is_not_known(tmp_path: Path) -> None:
    written = tmp_path / "x.yaml"
    written.write_text(WRITTEN)
    found = load("local", today=date(2026, 11, 29))
    bundle = tmp_path / "facts.json"
    write(bundle, found.model_copy(update={"data": found.data.model_copy(update={"retrieved": None})}))
    assert "the age of the advisory data is not known" in run("review", str(written), "--facts", str(bundle)).stderr
