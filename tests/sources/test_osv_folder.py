"""Folders of OSV JSON: one bad file never stops the rest, and its package stays unknown."""

import json
import os
import random
import tracemalloc
import zipfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.advisory import Label
from sources import osv_folder
from sources.companions import Published
from sources.errors import SourceError
from sources.json_files import MAX_DOCUMENT_BYTES, Document, documents
from sources.osv_folder import scan_documents

NOTHING_PUBLISHED = Published({}, "")
FIXED_IN_ONE = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.0"}]}]


def osv(name: str, package: str = "vllm", **changes) -> dict:
    entry = {"package": {"ecosystem": "PyPI", "name": package}, "ranges": FIXED_IN_ONE}
    return {"id": name, "modified": "2026-01-01T00:00:00Z", "affected": [entry]} | changes


def write(folder: Path, name: str, document: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return path


def read(*paths: Path):
    return osv_folder.read(paths, labels={}, published=NOTHING_PUBLISHED)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_one_record_one_companion_or_one_quarantined(data):
    found = scan_documents([Document("PyPI/vllm/TEST-1.json", data)])
    companions = bool(found.labels) or found.published is not None or data.strip().startswith(b"{")
    assert len(found.records) + len(found.quarantined) == 1 or companions


@given(cut=st.integers(min_value=0, max_value=200))
def test_a_truncated_record_is_never_a_record_and_its_package_stays_unknown(cut):
    whole = json.dumps(osv("TEST-1") | {"details": "x" * 300}).encode()
    found = scan_documents([Document("PyPI/vllm/TEST-1.json", whole[:cut])])
    assert found.records == []
    assert [(item.id, item.package) for item in found.quarantined] == [("TEST-1", "vllm")]


@given(seed=st.randoms(use_true_random=False))
def test_neither_order_nor_copies_of_documents_change_the_data(seed: random.Random):
    texts = [osv("TEST-1", aliases=["CVE-1"]), osv("TEST-2", aliases=["CVE-1"]), osv("TEST-3", "sglang")]
    plain = [Document(f"{text['id']}.json", json.dumps(text).encode()) for text in texts]
    shuffled = plain * 2
    seed.shuffle(shuffled)
    assert _advisories(shuffled) == _advisories(plain)


def _advisories(given_documents):
    found = scan_documents(given_documents)
    return osv_folder.assemble(found.records, labels={}, published=NOTHING_PUBLISHED).advisories


def test_a_folder_is_read_with_its_labels_and_versions(checkout: Path):
    data = osv_folder.read([checkout / "tests" / "data" / "osv"], retrieved=date(2030, 1, 1))
    assert data.quarantined == ()
    assert len(data.advisories) == 10
    assert data.retrieved == date(2030, 1, 1)
    assert data.published["vllm"][0] == "0.19.0"
    by_id = {advisory.id: advisory for advisory in data.advisories}
    assert by_id["CVE-2026-22778"].paths("vllm") == {"multimodal", "media-ssrf"}
    assert by_id["CVE-2026-22778"].id not in by_id["CVE-2026-54236"].all_ids
    assert by_id["PYSEC-2026-2"].is_malware
    assert data.why_unknown("lmdeploy") == "no advisory data for lmdeploy"


def test_without_companion_files_the_bundled_labels_and_versions_hold(tmp_path: Path):
    write(tmp_path, "a.json", osv("GHSA-4r2x-xpjr-7cvv", aliases=["CVE-2026-22778"]))
    data = osv_folder.read([tmp_path])
    assert data.advisories[0].paths("vllm") == {"multimodal"}
    assert "0.33.0" in data.published["vllm"]
    assert data.retrieved is None


def test_given_labels_and_versions_win(tmp_path: Path):
    write(tmp_path, "a.json", osv("TEST-1"))
    write(tmp_path, "labels.json", {"labels": {"vllm/TEST-1": ["mm"]}})
    labels = {"vllm/TEST-1": Label(paths=("lora",))}
    data = osv_folder.read([tmp_path], labels=labels, published=Published({"vllm": ("1.0",)}, "2030-01-01"))
    assert data.advisories[0].paths("vllm") == {"lora"}
    assert data.published == {"vllm": ("1.0",)}


def test_codes_become_words_and_an_unknown_code_stays(tmp_path: Path):
    write(tmp_path, "a.json", osv("TEST-1"))
    write(tmp_path, "labels.json", {"taxonomy": {}, "labels": {"vllm/TEST-1": ["dist", "quantum"]}})
    data = osv_folder.read([tmp_path], published=NOTHING_PUBLISHED)
    assert data.advisories[0].paths("vllm") == {"multi-node", "quantum"}


@pytest.mark.parametrize(
    ("name", "document", "reason"),
    [
        ("labels.json", {"labels": {"vllm/TEST-1": "mm"}}, "/labels/vllm/TEST-1"),
        ("labels.json", {"labels": {"TEST-1": ["mm"]}}, "package/ID"),
        ("versions.json", {"versions": {"vllm": [0.1]}}, "/versions/vllm/0"),
        ("notes.json", {"note": "nothing"}, "not an OSV record"),
        ("list.json", [], "expected a JSON object, found a list"),
        ("empty.json", b"", "the file is empty"),
        ("nul.json", b'{"id": "TEST-1\x00"}', "not JSON"),
        ("latin.json", b'{"id": "\xe4"}', "not JSON"),
        ("deep.json", b"[" * 200_000, "recursion limit"),
        ("cut.json", b'{"id": "TEST-1", "affected": [', "not JSON"),
    ],
)
def test_a_bad_file_is_quarantined_with_its_reason_and_the_rest_goes_in(tmp_path: Path, name, document, reason):
    write(tmp_path, name, document)
    write(tmp_path, "good.json", osv("TEST-9"))
    data = osv_folder.read([tmp_path], published=NOTHING_PUBLISHED)
    assert [advisory.id for advisory in data.advisories] == ["TEST-9"]
    assert [item.source for item in data.quarantined] == [name]
    assert reason in data.quarantined[0].reason


def test_a_deep_record_is_quarantined_under_its_package(tmp_path: Path):
    deep = json.dumps(osv("TEST-1"))[:-1].encode() + b', "x": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001
    write(tmp_path, "a.json", deep)
    assert read(tmp_path).why_unknown("vllm").startswith("a record about vllm can't be read (TEST-1: ")


def test_wrong_types_leave_every_package_of_the_record_unknown(tmp_path: Path):
    entries = [{"package": {"ecosystem": "PyPI", "name": name}, "versions": [1]} for name in ("vllm", "ray")]
    entries.append({"package": {"ecosystem": "npm", "name": "torch"}})
    write(tmp_path, "a.json", osv("TEST-1", affected=entries))
    write(tmp_path, "b.json", osv("TEST-2"))
    data = read(tmp_path)
    assert sorted((item.id, item.package) for item in data.quarantined) == [("TEST-1", "ray"), ("TEST-1", "vllm")]
    assert "can't be read" in data.why_unknown("vllm")
    assert data.why_unknown("torch") == "no advisory data for torch"


def test_a_file_of_200_mb_is_quarantined_by_its_size_without_being_read(tmp_path: Path):
    path = write(tmp_path, "PyPI/vllm/TEST-1.json", json.dumps(osv("TEST-1"))[:-1].encode() + b', "details": "')
    os.truncate(path, 200 * 1024 * 1024)
    tracemalloc.start()
    data = read(tmp_path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 8 * 1024 * 1024
    assert [(item.id, item.package) for item in data.quarantined] == [("TEST-1", "vllm")]
    assert data.quarantined[0].reason == f"209715200 bytes; at most {MAX_DOCUMENT_BYTES} are read"


def test_a_zip_is_read_like_a_folder_and_a_bomb_inside_is_not_unpacked(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("PyPI/TEST-1.json", json.dumps(osv("TEST-1")))
        archive.writestr("PyPI/vllm/TEST-2.json", b"0" * (MAX_DOCUMENT_BYTES + 1))
        archive.writestr("README.md", "not a record")
        archive.writestr("TEST-3.json", b"{")
    data = read(tmp_path)
    assert [advisory.id for advisory in data.advisories] == ["TEST-1"]
    assert [(item.source, item.id, item.package) for item in data.quarantined] == [
        ("all.zip!PyPI/vllm/TEST-2.json", "TEST-2", "vllm"),
        ("all.zip!TEST-3.json", "TEST-3", None),
    ]


def test_what_is_no_zip_is_quarantined(tmp_path: Path):
    write(tmp_path, "all.zip", b"PK\x03\x04 and then nothing")
    write(tmp_path, "a.json", osv("TEST-1"))
    data = read(tmp_path)
    assert len(data.advisories) == 1
    assert "not a zip archive" in data.quarantined[0].reason


def test_links_to_files_are_read_links_to_folders_and_hidden_names_are_not(tmp_path: Path):
    store = tmp_path / "store"
    target = write(store, "TEST-1.json", osv("TEST-1"))
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "TEST-1.json").symlink_to(target)
    (mounted / "loop").symlink_to(mounted, target_is_directory=True)
    (mounted / "gone.json").symlink_to(tmp_path / "nowhere.json")
    write(mounted, ".half-written.json", b"{")
    write(mounted, ".git/x.json", b"{")
    data = read(mounted)
    assert len(data.advisories) == 1
    assert [item.source for item in data.quarantined] == ["gone.json"]


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.json")
    assert read(tmp_path).quarantined[0].reason == "not a regular file"


def test_a_path_that_is_not_there_is_an_error_and_an_empty_folder_is_not(tmp_path: Path):
    with pytest.raises(SourceError, match="no such file or folder"):
        read(tmp_path / "nowhere")
    assert read(tmp_path).why_unknown("vllm") == "no advisory data for vllm"


def test_a_byte_order_mark_and_a_repeated_key_are_tolerated(tmp_path: Path):
    write(tmp_path, "a.json", b"\xef\xbb\xbf" + b'{"id": "TEST-0", ' + json.dumps(osv("TEST-1")).encode()[1:])
    assert [advisory.id for advisory in read(tmp_path).advisories] == ["TEST-1"]


def test_a_newer_copy_replaces_an_older_one(tmp_path: Path):
    open_end = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]
    old = osv("TEST-1")
    old["affected"] = [old["affected"][0] | {"ranges": open_end}]
    write(tmp_path, "old.json", old)
    write(tmp_path, "new.json", osv("TEST-1", modified="2026-02-01T00:00:00Z"))
    data = read(tmp_path)
    assert [match.result for match in data.matches("vllm", "2.0")] == ["not_affected"]


def test_a_newer_withdrawal_replaces_the_record(tmp_path: Path):
    write(tmp_path, "old.json", osv("TEST-1"))
    gone = {"id": "TEST-1", "modified": "2026-02-01T00:00:00Z", "withdrawn": "2026-02-01T00:00:00Z"}
    write(tmp_path, "new.json", gone)
    assert read(tmp_path).advisories == ()


def test_two_records_under_one_id_both_stay(tmp_path: Path):
    write(tmp_path, "a.json", osv("TEST-1", aliases=["CVE-1"]))
    write(tmp_path, "b.json", osv("TEST-1", aliases=["CVE-2"], modified="2026-02-01T00:00:00Z"))
    data = read(tmp_path)
    assert [len(advisory.records) for advisory in data.advisories] == [2]
    assert data.as_of == "2026-02-01T00:00:00Z"


def test_a_copy_without_a_date_is_not_taken_for_an_older_one(tmp_path: Path):
    open_end = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]
    undated = osv("TEST-1", modified=None)
    undated["affected"] = [undated["affected"][0] | {"ranges": open_end}]
    write(tmp_path, "a.json", undated)
    write(tmp_path, "b.json", osv("TEST-1"))
    assert [match.result for match in read(tmp_path).matches("vllm", "2.0")] == ["affected"]


def test_the_withdrawal_of_another_record_under_the_same_id_replaces_nothing(tmp_path: Path):
    write(tmp_path, "a.json", osv("TEST-1", aliases=["CVE-1"]))
    date = "2026-02-01T00:00:00Z"
    write(tmp_path, "b.json", osv("TEST-1", aliases=["CVE-2"], modified=date, withdrawn=date))
    data = read(tmp_path)
    assert [match.result for match in data.matches("vllm", "0.9")] == ["affected"]
    assert data.advisories[0].withdrawn_by == ("TEST-1",)


def test_documents_name_themselves_by_their_place_in_the_folder(tmp_path: Path):
    write(tmp_path, "b/TEST-2.JSON", osv("TEST-2"))
    write(tmp_path, "a/TEST-1.json", osv("TEST-1"))
    single = write(tmp_path, "c.json", osv("TEST-3"))
    assert [item.source for item in documents([tmp_path, single])] == [
        "c.json",
        "a/TEST-1.json",
        "b/TEST-2.JSON",
        "c.json",
    ]


def test_a_file_whose_name_is_no_text_is_quarantined_by_a_name_that_json_can_hold(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/folder-\xfe"))
    try:
        write(folder, os.fsdecode(b"bad-\xff.json"), b"")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    write(folder, "good.json", osv("GHSA-good"))
    data = read(folder)
    assert [item.source for item in data.quarantined] == [r"bad-\xff.json"]
    assert [advisory.id for advisory in data.advisories] == ["GHSA-good"]
    assert data.digest.startswith("sha256:")
    data.model_dump_json().encode()


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_quarantined_also_when_it_is_named_itself(tmp_path, kind):
    path = Path("/dev/null")
    if kind == "pipe":
        path = tmp_path / "pipe.json"
        os.mkfifo(path)
    good = write(tmp_path, "good.json", osv("GHSA-good"))
    data = read(path, good)
    assert [(item.source, item.reason) for item in data.quarantined] == [(path.name, "not a regular file")]
    assert len(data.advisories) == 1
