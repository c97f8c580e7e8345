"""Facts gathered from files, and the bundle in which they travel."""

import json
from datetime import date
from pathlib import Path

import pytest

from sources import facts, snapshot
from sources.errors import SourceError

TODAY = date(2030, 1, 1)


@pytest.fixture
def own(checkout: Path):
    return facts.load(
        "prod",
        today=TODAY,
        data_dirs=[checkout / "tests" / "data" / "osv"],
        environments_dir=checkout / "nowhere",
        catalogue_digest="sha256:1",
    )


def test_without_folders_the_bundled_snapshot_is_judged_by_its_own_day(tmp_path: Path):
    found = facts.load("local", today=TODAY, environments_dir=tmp_path)
    assert found.data is snapshot.bundled()
    assert found.advisory_age_days() == (TODAY - date(2026, 11, 29)).days
    assert found.policy.allow_runtime_process


def test_folders_replace_the_snapshot_and_count_as_read_today(own):
    assert len(own.data.advisories) == 10
    assert own.advisory_age_days() == 0
    assert own.environment == "prod"
    assert own.policy.max_advisory_age_days == 7


def test_the_folder_of_the_environment_is_read(checkout: Path, tmp_path: Path):
    fixtures = checkout / "tests" / "data" / "fixtures" / "environment"
    (tmp_path / "staging").symlink_to(fixtures)
    found = facts.load("staging", today=TODAY, environments_dir=tmp_path, allow_invented=True)
    assert found.images
    assert found.waivers
    with pytest.raises(SourceError, match="invented"):
        facts.load("staging", today=TODAY, environments_dir=tmp_path)


def test_a_mistyped_environment_is_an_error(tmp_path: Path):
    with pytest.raises(SourceError, match="did you mean 'staging'"):
        facts.load("stagin", today=TODAY, environments_dir=tmp_path)


def test_a_bundle_reads_back_equal(own, tmp_path: Path):
    path = tmp_path / "facts.json"
    facts.write(path, own)
    again = facts.read(path)
    assert again == own
    assert again.digest == own.digest
    assert [item.name for item in tmp_path.iterdir()] == ["facts.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda bundle: bundle["facts"]["data"]["advisories"].pop(), "the facts have the digest"),
        (lambda bundle: bundle["facts"].update(tody=1), "unknown field 'tody'; did you mean 'today'?"),
        (lambda bundle: bundle.update(kind="Other"), "not a bundle of facts"),
        (lambda bundle: bundle.pop("facts"), "b.json: "),
    ],
)
def test_a_bundle_that_was_changed_is_refused(own, change, message):
    bundle = json.loads(facts.dumps(own))
    change(bundle)
    with pytest.raises(SourceError) as refused:
        facts.loads(json.dumps(bundle), source="b.json")
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
def test_what_is_no_bundle_is_refused(text):
    with pytest.raises(SourceError, match=r"b\.json"):
        facts.loads(text, source="b.json")
