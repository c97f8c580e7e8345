"""OSV records at the border: what is taken, what is counted, what is refused, and that nothing else can happen."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.advisory import EventKind
from fleet.severity import Severity
from sources.errors import BadRecord
from sources.osv import read_document
from sources.osv_record import convert
from sources.package_names import is_ours, package_key
from sources.ratings import rating

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
OSV_KEYS = st.sampled_from(
    ["id", "aliases", "related", "affected", "severity", "references", "modified", "withdrawn", "database_specific"]
)


def osv(**changes) -> dict:
    plain = {
        "id": "TEST-1",
        "modified": "2026-01-01T00:00:00Z",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "vllm"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.0"}]}],
            }
        ],
    }
    return plain | changes


def converted(**changes):
    return convert(read_document(osv(**changes)))


def reason_of(document: object) -> str | None:
    """Why a document is refused, or ``None`` when it is read."""
    try:
        convert(read_document(document))
    except BadRecord as error:
        return str(error)
    return None


@given(document=JSON_VALUES)
def test_any_json_is_a_record_or_a_bad_record_and_nothing_else(document):
    assert reason_of(document) != ""


@given(changes=st.dictionaries(OSV_KEYS, JSON_VALUES, min_size=1, max_size=3))
def test_any_value_in_a_known_key_is_read_or_refused_with_its_place(changes):
    assert "/" in (reason_of(osv(**changes)) or "/")


@given(text=st.text(max_size=80))
def test_any_text_has_a_rating_or_none(text):
    assert rating(text) is None or isinstance(rating(text), Severity)


@given(added=st.lists(st.sampled_from(["record", "entry", "package", "range", "reference"]), max_size=8))
def test_unknown_keys_change_nothing_and_are_counted(added):
    document = osv(references=[{"type": "WEB", "url": "https://a.invalid/1"}])
    plain = convert(read_document(copy.deepcopy(document)))
    entry = document["affected"][0]
    places = {
        "record": document,
        "entry": entry,
        "package": entry["package"],
        "range": entry["ranges"][0],
        "reference": document["references"][0],
    }
    for number, place in enumerate(added):
        places[place][f"x_{number}"] = {"nested": ["anything"]}
    found = convert(read_document(document))
    assert found.record == plain.record
    assert found.unknown_keys == plain.unknown_keys + len(added)


@given(ratings=st.lists(st.sampled_from(["LOW", "MODERATE", "HIGH", "CRITICAL", "no rating"]), max_size=4))
def test_the_highest_rating_counts_and_what_is_none_is_counted(ratings):
    found = converted(severity=[{"type": "WORD", "score": text} for text in ratings])
    read = [rating(text) for text in ratings if rating(text)]
    assert found.record.severity == max(read, key=lambda item: item.rank, default=None)
    assert found.ratings_ignored == ratings.count("no rating")


@pytest.mark.parametrize(
    ("vector", "word"),
    [
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", Severity.CRITICAL),
        ("CVSS:3.0/AV:N/AC:H/PR:N/UI:N/S:U/C:N/I:N/A:H", Severity.MEDIUM),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", Severity.NONE),
        ("CVSS:4.0/AV:N/AC:H/AT:P/PR:N/UI:N/VC:N/VI:N/VA:H/SC:N/SI:N/SA:N", Severity.HIGH),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N/E:X/CR:X/IR:X/AR:X", Severity.CRITICAL),
        ("AV:N/AC:L/Au:N/C:C/I:C/A:C", Severity.HIGH),
        ("(AV:N/AC:L/Au:N/C:P/I:P/A:P)", Severity.HIGH),
        ("moderate", Severity.MEDIUM),
    ],
)
def test_vectors_of_three_generations_and_words_are_read(vector, word):
    assert rating(vector) is word


def test_a_vector_that_cannot_be_parsed_is_ignored_and_counted_and_the_other_counts():
    found = converted(
        severity=[
            {"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L"},
            {"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"},
        ]
    )
    assert (found.record.severity, found.ratings_ignored) == (Severity.CRITICAL, 1)


def test_words_in_the_free_form_places_count_too():
    document = osv(database_specific={"severity": "MODERATE"})
    document["affected"][0]["ecosystem_specific"] = {"severity": "Critical"}
    record = convert(read_document(document)).record
    assert (record.severity, record.affected[0].severity) == (Severity.MEDIUM, Severity.CRITICAL)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"id": 7}, "/id"),
        ({"id": ""}, "/id"),
        ({"aliases": "CVE-1"}, "/aliases"),
        ({"aliases": [1]}, "/aliases/0"),
        ({"affected": {}}, "/affected"),
        ({"affected": []}, "'affected' is missing"),
        ({"affected": None}, "'affected' is missing"),
        ({"modified": "yesterday"}, "/modified"),
        ({"modified": 5}, "/modified"),
        ({"withdrawn": "soon"}, "/withdrawn"),
        ({"severity": [{"type": "CVSS_V3", "score": 9.8}]}, "/severity/0/score"),
        ({"database_specific": []}, "/database_specific"),
        ({"affected": [{"package": "vllm"}]}, "/affected/0/package"),
        ({"affected": [{"versions": [1.0]}]}, "/affected/0/versions/0"),
        ({"affected": [{"ranges": [{"type": "DATES", "events": []}]}]}, "/affected/0/ranges/0/type"),
        ({"affected": [{"ranges": [{"type": "GIT"}]}]}, "/affected/0/ranges/0/events"),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(changes, place):
    with pytest.raises(BadRecord) as refused:
        converted(**changes)
    assert place in str(refused.value)


@pytest.mark.parametrize("event", [{"fixt": "1.0"}, {"introduced": 0}, {}, {"introduced": None}])
def test_an_event_of_an_unknown_kind_or_without_a_version_refuses_the_record(event):
    entry = {"package": {"ecosystem": "PyPI", "name": "vllm"}, "ranges": [{"type": "ECOSYSTEM", "events": [event]}]}
    with pytest.raises(BadRecord, match=r"event|/introduced"):
        converted(affected=[entry])


def test_two_kinds_in_one_event_object_are_two_events():
    entry = osv()["affected"][0] | {
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0", "last_affected": "2"}]}]
    }
    events = converted(affected=[entry]).record.affected[0].ranges[0].events
    assert [event.kind for event in events] == [EventKind.INTRODUCED, EventKind.LAST_AFFECTED]


def test_null_lists_are_empty_and_ranges_may_be_missing():
    record = converted(aliases=None, references=None, affected=[{"package": {"ecosystem": "PyPI", "name": "vllm"}}])
    assert record.record.aliases == ()
    assert record.record.affected[0].ranges == ()


def test_a_record_of_aliases_alone_is_read_for_its_links_and_its_rating():
    record = converted(aliases=["GHSA-1"], affected=None, severity=[{"type": None, "score": "HIGH"}]).record
    assert (record.aliases, record.affected, record.severity) == (("GHSA-1",), (), Severity.HIGH)


def test_a_link_without_a_type_is_a_link():
    links = converted(references=[{"type": None, "url": "https://example.invalid/1"}]).record.references
    assert [(link.type, link.url) for link in links] == [("WEB", "https://example.invalid/1")]


def test_a_withdrawn_record_may_name_no_package():
    record = converted(withdrawn="2026-02-01T00:00:00Z", affected=None).record
    assert (record.withdrawn, record.affected) == ("2026-02-01T00:00:00Z", ())


@pytest.mark.parametrize(
    ("given_time", "utc"),
    [
        ("2026-08-04T00:00:00.000Z", "2026-08-04T00:00:00Z"),
        ("2026-08-04T02:00:00.569348123+02:00", "2026-08-04T00:00:00Z"),
        ("2026-08-04", "2026-08-04T00:00:00Z"),
    ],
)
def test_times_are_kept_in_one_spelling(given_time, utc):
    assert converted(modified=given_time).record.modified == utc


@pytest.mark.parametrize(
    ("package", "repositories", "key"),
    [
        ({"ecosystem": "PyPI", "name": "Text_Generation"}, [], ("PyPI", "text-generation")),
        ({"purl": "pkg:github/sgl-project/sglang"}, [], ("GitHub", "sglang")),
        ({"purl": "pkg:pypi/vllm@0.11.0?file=x#y"}, [], ("PyPI", "vllm")),
        ({"purl": "pkg:github/triton-inference-server/server"}, [], ("GitHub", "triton-inference-server")),
        ({"ecosystem": "Debian:12", "name": "pillow"}, [], ("Debian", "pillow")),
        ({"purl": "pkg:npm/%40scope/name"}, [], ("npm", "name")),
        ({}, ["https://github.com/vllm-project/vllm.git"], ("GitHub", "vllm")),
        ({}, [None, "https://example.invalid/x"], None),
        ({"purl": "vllm"}, [], None),
        ({"ecosystem": "pypi", "name": "vLLM"}, [], ("PyPI", "vllm")),
        ({"ecosystem": " PYPI:simple ", "name": "vllm"}, [], ("PyPI", "vllm")),
        ({"name": "vllm"}, [], ("PyPI", "vllm")),
        ({"name": "vllm", "purl": "vllm"}, [], ("PyPI", "vllm")),
        ({"name": "vllm", "purl": "pkg:npm/vllm"}, [], ("npm", "vllm")),
    ],
)
def test_a_package_is_told_by_name_by_purl_or_by_repository(package, repositories, key):
    found = package_key(package.get("ecosystem"), package.get("name"), package.get("purl"), repositories)
    assert found == key
    assert is_ours(found) == (key is not None and key[0] in {"PyPI", "NVIDIA", "GitHub"})


def test_entries_of_other_ecosystems_are_counted_and_left_out():
    entries = [*osv()["affected"], {"package": {"ecosystem": "npm", "name": "requests"}}]
    found = converted(affected=entries)
    assert [entry.package for entry in found.record.affected] == ["vllm"]
    assert found.entries_ignored == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "MAL-2026-1"},
        {"aliases": ["MAL-2026-1"]},
        {"database_specific": {"cwe_ids": ["CWE-506"]}},
        {"summary": "Two releases published containing credential harvesting malware"},
        {"summary": "Malicious versions of the package on the index"},
        {"summary": "A backdoored release was uploaded"},
        {"summary": "Malicious package under the name of another"},
    ],
)
def test_a_malicious_release_is_recognised(changes):
    assert converted(**changes).record.is_malware


@pytest.mark.parametrize(
    "summary",
    [
        "Sandbox breakout through malicious filenames",
        "Malicious model remote code execution fix bypass",
        "Denial of service through a Malicious Jinja Template",
        "Credentials leak via malicious URLs",
        "Malware scanner can be bypassed by crafted pickles",
        "Arbitrary file write when installing a malicious wheel",
        "Path traversal through malicious uploads",
    ],
)
def test_an_ordinary_defect_is_not_malware(summary):
    assert not converted(summary=summary, details="an attacker uploads malware").record.is_malware


@pytest.mark.parametrize(
    "text",
    [
        "This exists because of an incomplete fix for CVE-2026-1000.",
        "vLLM: incomplete CVE-2026-1000 fix leaks addresses",
        "identified as a bypass for the previously addressed CVE-2026-1000",
        "present up to 2.9.2, despite attempts to fix a similar issue in CVE-2026-1000.",
        "The class of defect addressed in CVE-2026-1000, which was only partially fixed",
    ],
)
def test_the_id_of_an_incomplete_fix_is_kept_and_the_text_is_not(text):
    record = converted(details=text).record
    assert record.incomplete_fix_of == ("CVE-2026-1000",)
    assert "incomplete CVE" not in record.model_dump_json()


@pytest.mark.parametrize(
    "text",
    [
        "This is similar to CVE-2026-1000.",
        "A different bypass than CVE-2026-1000, in another parser.",
        "The parser was fixed upstream. See CVE-2026-1000 for the wheel.",
        "An incomplete fix for TEST-1 and its alias.",
    ],
)
def test_a_comparison_is_not_an_incomplete_fix(text):
    assert converted(details=text).record.incomplete_fix_of == ()


def test_an_excerpt_is_marked_and_facts_of_real_records_are_kept(checkout: Path):
    folder = checkout / "tests" / "data" / "osv" / "PyPI" / "sglang"
    partial = convert(read_document(json.loads((folder / "CVE-2026-110809.json").read_text()))).record
    assert partial.affected[0].is_partial
    assert partial.affected[0].ranges == ()
    whole = convert(read_document(json.loads((folder / "PYSEC-2026-536.json").read_text()))).record
    assert "CVE-2026-7301" in whole.aliases
    assert whole.severity is Severity.CRITICAL
