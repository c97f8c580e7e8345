"""`enginehouse advisories show`: one advisory in full, found by any of its names."""

import json

import pytest
from typer.testing import CliRunner

from cli.exits import Exit
from cli.main import app

ENTRY = {
    "package": {"ecosystem": "PyPI", "name": "vllm"},
    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "0.33.0"}]}],
}
GHSA = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "aliases": ["CVE-2026-1000"],
    "modified": "2026-11-01T00:00:00Z",
    "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
    "affected": [ENTRY],
    "references": [{"type": "WEB", "url": "https://example.org/1000"}],
}
PYSEC = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1000"], "modified": "2026-11-02T00:00:00Z", "affected": [ENTRY]}


@pytest.fixture
def show(tmp_path):
    """Shows an advisory of a folder with two records of one defect and three published versions."""
    for name, record in (("a", GHSA), ("b", PYSEC)):
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    (tmp_path / "labels.json").write_text(json.dumps({"labels": {"vllm/CVE-2026-1000": ["mm"]}}))
    (tmp_path / "versions.json").write_text(json.dumps({"versions": {"vllm": ["0.31.0", "0.32.0", "0.33.0"]}}))

    def run(name, *arguments):
        return CliRunner().invoke(app, ["advisories", "show", name, "--data", str(tmp_path), *arguments])

    return run


@pytest.mark.parametrize("name", ["CVE-2026-1000", "ghsa-aaaa-bbbb-cccc", "PYSEC-2026-1"])
def test_any_name_finds_it_with_what_each_source_says(show, name):
    answer = json.loads(show(name, "-o", "json").stdout)
    assert (answer["id"], answer["aliases"]) == ("CVE-2026-1000", ["GHSA-aaaa-bbbb-cccc", "PYSEC-2026-1"])
    assert [(source["id"], source["severity"]) for source in answer["sources"]] == [
        ("GHSA-aaaa-bbbb-cccc", "critical"),
        ("PYSEC-2026-1", None),
    ]
    (package,) = answer["packages"]
    assert (package["package"], package["paths"]) == ("vllm", ["multimodal"])
    assert package["versions"]["affected"] == ["0.31.0", "0.32.0"]
    assert package["versions"]["not_affected"] == ["0.33.0"]


def test_people_see_ranges_spans_and_references(show):
    printed = show("CVE-2026-1000").stdout
    for words in (
        "introduced 0, fixed 0.33.0",
        "0.31.0 to 0.32.0 (2)",
        "multimodal",
        "unrated",
        "see https://example.org/1000",
    ):
        assert words in printed


def test_an_unknown_id_is_not_found_and_the_nearest_are_named(show):
    result = show("CVE-2026-100")
    assert getattr(result.exception, "code", None) is Exit.NOT_FOUND_OR_CONFLICT
    assert "nearest to it: CVE-2026-1000" in str(result.exception)
    assert "'enginehouse advisories list'" in str(show("?").exception)


def test_a_package_without_versions_in_the_data_says_so(show, tmp_path):
    other = PYSEC | {"id": "PYSEC-2026-2", "aliases": []}
    other["affected"] = [ENTRY | {"package": {"ecosystem": "PyPI", "name": "leftpad"}}]
    (tmp_path / "c.json").write_text(json.dumps(other))
    assert json.loads(show("PYSEC-2026-2", "-o", "json").stdout)["packages"][0]["versions"] is None
    assert "none known in the data" in show("PYSEC-2026-2").stdout


def test_a_record_that_cannot_be_read_is_named(show, tmp_path):
    (tmp_path / "d.json").write_text('{"id": "CVE-2026-7", "affected": [')
    assert "the record CVE-2026-7 can't be read" in str(show("CVE-2026-7").exception)
