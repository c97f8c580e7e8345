"""The feed of folders: what is dropped in counts, what is broken is set aside, what is gone is said."""

import json
import os

import pytest

from control_plane.adapters.folders import FolderFeed
from control_plane.main import assemble
from control_plane.ports import FeedError
from control_plane.settings import settings_of


def osv(name: str, fixed: str = "9.9.9") -> str:
    events = [{"introduced": "0"}, {"fixed": fixed}]
    affected = [{"package": {"ecosystem": "PyPI", "name": "vllm"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}]
    document = {"schema_version": "1.7.0", "id": name, "modified": "2030-01-01T00:00:00Z", "affected": affected}
    return json.dumps(document)


@pytest.fixture
def feed(tmp_path, clock):
    return FolderFeed([tmp_path], use_bundled=False, clock=clock)


def ids(data):
    return sorted(advisory.id for advisory in data.advisories)


def test_a_record_that_is_dropped_in_changes_the_fingerprint_and_the_data(feed, tmp_path, clock):
    empty = feed.fingerprint()
    assert feed.fingerprint() == empty
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.json").write_text(osv("GHSA-one"))
    assert feed.fingerprint() != empty
    data = feed.read()
    assert ids(data) == ["GHSA-one"]
    assert data.retrieved == clock.now().date()


def test_only_files_that_changed_are_read_again(feed, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(osv(f"GHSA-{name}"))
    feed.read()
    kept = dict(feed._scans)
    (tmp_path / "two.json").write_text(osv("GHSA-two", fixed="8.8.8.8"))
    feed.read()
    same = [key for key in feed._scans if feed._scans[key] is kept.get(key)]
    assert [os.path.basename(key[0]) for key in same] == ["one.json"]


@pytest.mark.parametrize("target", ["/nowhere", "a.json"])
def test_a_link_that_leads_nowhere_hides_no_other_file(feed, tmp_path, target):
    os.symlink(target, tmp_path / "a.json")
    (tmp_path / "b.json").write_text(osv("GHSA-after"))
    data = feed.read()
    assert ids(data) == ["GHSA-after"]
    assert [item.source for item in data.quarantined] == ["a.json"]
    assert feed.fingerprint() == feed.fingerprint()


def test_a_truncated_file_is_set_aside_and_the_others_go_in(feed, tmp_path):
    (tmp_path / "good.json").write_text(osv("GHSA-good"))
    (tmp_path / "bad.json").write_text(osv("GHSA-bad")[:-30])
    data = feed.read()
    assert ids(data) == ["GHSA-good"]
    assert [item.source for item in data.quarantined] == ["bad.json"]
    (tmp_path / "bad.json").write_text(osv("GHSA-bad"))
    assert ids(feed.read()) == ["GHSA-bad", "GHSA-good"]


def test_a_removed_file_is_forgotten(feed, tmp_path):
    (tmp_path / "one.json").write_text(osv("GHSA-one"))
    feed.read()
    (tmp_path / "one.json").unlink()
    assert ids(feed.read()) == []


def test_a_folder_that_is_gone_is_named(tmp_path, clock):
    feed = FolderFeed([tmp_path / "gone"], use_bundled=True, clock=clock)
    for ask in (feed.fingerprint, feed.read):
        with pytest.raises(FeedError, match="gone"):
            ask()


def test_folders_count_beside_the_bundled_snapshot(tmp_path, clock):
    (tmp_path / "one.json").write_text(osv("GHSA-exer-cise-0001"))
    data = FolderFeed([tmp_path], use_bundled=True, clock=clock).read()
    assert "GHSA-exer-cise-0001" in ids(data)
    assert len(data.advisories) > 500
    assert "bundled snapshot" in data.source


def test_hidden_and_other_files_are_not_read(feed, tmp_path):
    before = feed.fingerprint()
    (tmp_path / ".draft.json").write_text(osv("GHSA-one"))
    (tmp_path / "notes.txt").write_text("x")
    assert feed.fingerprint() == before


def test_a_folder_that_is_gone_at_the_start_leaves_the_bundled_snapshot_in_force(tmp_path):
    settings = {"database_url": f"sqlite:///{tmp_path}/state.db", "advisory_folders": [str(tmp_path / "gone")]}
    for is_bundled in (True, False):
        assembly = assemble(settings_of(settings | {"advisory_bundled": is_bundled}))
        assembly.sync.look()
        assembly.house.readiness.refresh()
        is_ready, checks = assembly.house.readiness.answer()
        assert is_ready is is_bundled
        assert bool(assembly.house.facts.data.advisories) is is_bundled
        assert "gone" in next(item["message"] for item in checks if item["type"] == "AdvisoryFeedReachable")
        assembly.store.close()
