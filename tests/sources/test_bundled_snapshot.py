"""The bundled snapshot: facts only, complete, and equal to a rebuild from its folder."""

import json
from datetime import date
from pathlib import Path

import pytest

from fleet.facts import AdvisoryData
from fleet.severity import Severity
from sources import snapshot
from sources.assemble import combine
from sources.errors import SourceError
from sources.osv_folder import read
from sources.rebuild import as_bytes, build, main

RETRIEVED = date(2026, 11, 29)
SNAPSHOT = Path(snapshot.__file__).parent / "data" / "advisories.json"


def shared_advisories(checkout: Path) -> Path:
    folder = checkout.parent / "shared" / "advisories"
    if not folder.is_dir():
        pytest.skip("the folder that the snapshot is made from (../shared/advisories) is not here")
    return folder


def fixtures(checkout: Path) -> Path:
    return checkout / "tests" / "data" / "osv"


def test_a_written_snapshot_reads_back_equal(checkout: Path):
    data = build([fixtures(checkout)], retrieved=RETRIEVED)
    again = AdvisoryData.model_validate_json(as_bytes(data))
    assert again == data
    assert again.digest == data.digest


def test_the_bundled_snapshot_equals_a_rebuild_byte_for_byte(checkout: Path):
    assert as_bytes(build([shared_advisories(checkout)], retrieved=RETRIEVED)) == SNAPSHOT.read_bytes()


def test_every_record_of_the_folder_is_in_the_snapshot(checkout: Path):
    files = {path.stem for path in shared_advisories(checkout).glob("osv*/**/*.json")}
    assert {record.id for advisory in snapshot.bundled().advisories for record in advisory.records} == files


def test_no_field_of_the_snapshot_can_hold_prose():
    plain = json.loads(SNAPSHOT.read_bytes())
    longest = max(_texts(plain), key=len)
    assert longest.startswith("https://")
    assert all(" " not in text or len(text) < 40 for text in _texts(plain))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]


def test_the_snapshot_says_what_it_is():
    data = snapshot.bundled()
    assert (data.source, data.retrieved, data.published_retrieved) == ("bundled snapshot", RETRIEVED, "2026-11-29")
    assert data.quarantined == ()
    assert data.as_of == "2026-11-04T16:53:53Z"
    assert set(data.published) == {"vllm", "sglang", "lmdeploy", "tensorrt-llm"}


def test_exactly_one_of_the_records_is_malware():
    assert [item.id for item in snapshot.bundled().advisories if item.is_malware] == ["PYSEC-2026-2"]


def test_all_94_labels_hold_and_reach_every_alias():
    advisories = snapshot.bundled().advisories
    assert sum(len(advisory.labels) for advisory in advisories) == 94
    assert all(label.is_confirmed for advisory in advisories for _, label in advisory.labels)
    labels = snapshot.bundled_labels()
    assert labels["vllm/CVE-2026-22778"] == labels["vllm/PYSEC-2026-565"] == labels["vllm/GHSA-4r2x-xpjr-7cvv"]


def test_the_known_chains_of_incomplete_fixes_are_linked():
    links = {advisory.id: advisory.incomplete_fix_of for advisory in snapshot.bundled().advisories}
    assert "CVE-2025-24357" in links["GHSA-ggpf-24jw-3fcw"]
    assert "CVE-2026-22778" in links["CVE-2026-54236"]
    assert "GHSA-qh4c-xf7m-gxfc" in links["CVE-2026-25960"]


def test_the_highest_of_two_vectors_counts():
    by_id = {record.id: record for item in snapshot.bundled().advisories for record in item.records}
    assert by_id["PYSEC-2026-1943"].severity is Severity.HIGH


def test_the_runbook_version_was_never_published():
    published = snapshot.bundled().published["vllm"]
    assert "0.18.2" not in published
    assert {"0.18.1", "0.19.0"} <= set(published)


def test_a_snapshot_is_not_made_of_a_folder_with_a_broken_record(tmp_path: Path, capsys):
    (tmp_path / "a.json").write_text("{", encoding="utf-8")
    with pytest.raises(SourceError, match=r"a\.json: not JSON"):
        build([tmp_path], retrieved=RETRIEVED)
    out = tmp_path / "out.json"
    assert main(["build", str(tmp_path), "--retrieved", "2026-11-29", "--out", str(out)]) == 1
    assert "a.json" in capsys.readouterr().err
    assert not out.exists()


def test_one_command_rebuilds_the_snapshot(checkout: Path, tmp_path: Path):
    out = tmp_path / "out.json"
    assert main(["build", str(fixtures(checkout)), "--retrieved", "2026-11-29", "--out", str(out)]) == 0
    assert out.read_bytes() == as_bytes(build([fixtures(checkout)], retrieved=RETRIEVED))


def test_the_digest_beside_the_snapshot_is_the_one_of_what_it_holds():
    computed = snapshot.bundled().model_copy().digest
    assert snapshot.bundled().digest == computed, "run 'python -m sources.snapshot digest'"
    line = SNAPSHOT.with_suffix(".digest").read_text(encoding="ascii")
    assert line == snapshot.digest_line(SNAPSHOT.read_bytes())


def test_the_digest_is_written_beside_a_snapshot_and_can_be_written_again(checkout: Path, tmp_path: Path):
    out = tmp_path / "out.json"
    assert main(["build", str(fixtures(checkout)), "--retrieved", "2026-11-29", "--out", str(out)]) == 0
    written = out.with_suffix(".digest").read_text(encoding="ascii")
    out.with_suffix(".digest").unlink()
    assert main(["digest", "--out", str(out)]) == 0
    assert out.with_suffix(".digest").read_text(encoding="ascii") == written
    assert written.split()[1] == build([fixtures(checkout)], retrieved=RETRIEVED).digest
    assert main(["digest", "--out", str(tmp_path / "none.json")]) == 1


def test_a_record_laid_over_the_snapshot_is_merged_with_its_aliases(tmp_path: Path):
    entry = {"package": {"ecosystem": "PyPI", "name": "vllm"}, "ranges": [], "versions": ["0.33.0"]}
    dropped = {"id": "TEST-1", "aliases": ["CVE-2026-22778"], "modified": "2026-12-01T00:00:00Z", "affected": [entry]}
    (tmp_path / "dropped.json").write_text(json.dumps(dropped), encoding="utf-8")
    base = snapshot.bundled()
    data = combine([base, read([tmp_path], retrieved=date(2030, 1, 1))])
    merged = next(advisory for advisory in data.advisories if "TEST-1" in advisory.all_ids)
    assert [record.id for record in merged.records] == ["PYSEC-2026-565", "TEST-1"]
    assert merged.paths("vllm") == {"multimodal"}
    assert len(data.advisories) == len(base.advisories)
    assert (data.as_of, data.retrieved) == ("2026-12-01T00:00:00Z", RETRIEVED)
    assert data.published == base.published


def test_laying_a_set_over_itself_changes_nothing():
    base = snapshot.bundled()
    assert combine([base, base]).advisories == combine([base]).advisories == base.advisories
