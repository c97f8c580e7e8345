"""The OSV algorithm with its traps: each test is one way in which a matcher can be fooled."""

from dataclasses import dataclass, field
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from fleet.advisory import Advisory, AffectedPackage, AffectedRange, Event, EventKind, RangeType, Record, merge
from fleet.matching import Match, Result, match
from fleet.severity import Severity
from fleet.versions import parse_version

PACKAGE = "engine"
Bounds = tuple[tuple[str, str], ...]


def a_range(*bounds: tuple[str, str], kind: RangeType = "ECOSYSTEM") -> AffectedRange:
    return AffectedRange(type=kind, events=tuple(Event(kind=EventKind(name), version=value) for name, value in bounds))


@dataclass(frozen=True)
class Source:
    """One record, by what matters for matching."""

    id: str = "CVE-2026-1"
    ranges: tuple[AffectedRange, ...] = ()
    versions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    withdrawn: str | None = None
    severity: Severity | None = None
    is_partial: bool = False
    is_malware: bool = False
    package: str = field(default=PACKAGE)

    def record(self) -> Record:
        entry = AffectedPackage(
            ecosystem="PyPI",
            package=self.package,
            ranges=self.ranges,
            versions=self.versions,
            is_partial=self.is_partial,
        )
        return Record(
            id=self.id,
            aliases=self.aliases,
            withdrawn=self.withdrawn,
            severity=self.severity,
            is_malware=self.is_malware,
            affected=(entry,),
        )


def merged(*sources: Source) -> Advisory:
    advisories = merge([source.record() for source in sources], {})
    assert len(advisories) == 1
    return advisories[0]


def judge(version: str, *sources: Source) -> Match:
    return match(merged(*sources), PACKAGE, parse_version(version), version)


def result(version: str, *bounds: tuple[str, str]) -> Result:
    return judge(version, Source(ranges=(a_range(*bounds),))).result


FIXED = (("introduced", "0.8.3"), ("fixed", "0.14.1"))
LAST = (("introduced", "0"), ("last_affected", "0.5.12"))
RELEASES = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)).map(lambda v: ".".join(map(str, v)))


# --- laws


@given(RELEASES, RELEASES, RELEASES)
def test_a_fixed_range_holds_exactly_from_introduced_to_before_fixed(start: str, end: str, version: str) -> None:
    low, high = sorted((Version(start), Version(end)))
    wanted = Version(version)
    expected = Result.AFFECTED if low <= wanted < high else Result.NOT_AFFECTED
    assert result(version, ("introduced", str(low)), ("fixed", str(high))) is expected


@given(RELEASES, RELEASES)
def test_above_last_affected_is_never_called_clean_without_a_fix(end: str, version: str) -> None:
    expected = Result.AFFECTED if Version(version) <= Version(end) else Result.NO_FIX_KNOWN
    assert result(version, ("introduced", "0"), ("last_affected", end)) is expected


@given(st.permutations([("introduced", "0"), ("fixed", "1.0"), ("introduced", "2.0"), ("fixed", "3.0")]), RELEASES)
def test_the_order_of_events_does_not_matter(events: list[tuple[str, str]], version: str) -> None:
    wanted = Version(version)
    inside = wanted < Version("1.0") or Version("2.0") <= wanted < Version("3.0")
    assert result(version, *events) is (Result.AFFECTED if inside else Result.NOT_AFFECTED)


@given(RELEASES, st.sampled_from(["+cu124", "+rocm6.3", "+cpu", "-cu129"]))
def test_a_local_part_never_changes_the_answer(version: str, local: str) -> None:
    for bounds in (FIXED, LAST, (("introduced", "0"), ("last_affected", version))):
        assert result(version + local, *bounds) is result(version, *bounds)


@given(RELEASES, st.lists(st.sampled_from(["fixed", "last", "none", "listed"]), min_size=1, max_size=4))
def test_more_sources_are_never_less_strict_than_the_strictest_fixed_one(version: str, kinds: list[str]) -> None:
    ranges = {"fixed": (a_range(*FIXED),), "last": (a_range(*LAST),), "none": (), "listed": ()}
    sources = [
        Source(
            id=f"CVE-2026-{number}",
            aliases=("CVE-2026-0",),
            ranges=ranges[kind],
            versions=(version,) if kind == "listed" else (),
        )
        for number, kind in enumerate(kinds)
    ]
    together = judge(version, *sources)
    affected = [source for source in sources if judge(version, source).result is Result.AFFECTED]
    assert (together.result is Result.AFFECTED) is bool(affected)


# --- the traps


@pytest.mark.parametrize("version", ["0.14.1rc1", "0.14.1a1", "0.14.1.dev1"])
def test_a_pre_release_of_the_fixed_version_is_not_cleared(version: str) -> None:
    assert result(version, *FIXED) in {Result.AFFECTED, Result.UNKNOWN}


def test_the_release_candidate_of_a_fixed_version_is_affected() -> None:
    assert result("0.14.1rc1", *FIXED) is Result.AFFECTED


def test_a_post_release_above_last_affected_is_not_unaffected() -> None:
    assert result("0.5.12.post1", *LAST) is Result.NO_FIX_KNOWN


def test_a_post_release_of_a_release_candidate_is_above_it() -> None:
    bounds = (("introduced", "0"), ("fixed", "1.3.0 rc13"))
    assert result("1.3.0rc12.post1", *bounds) is Result.AFFECTED
    assert result("1.3.0rc13", *bounds) is Result.NOT_AFFECTED


def test_a_bound_with_a_local_part_is_compared_by_its_public_version() -> None:
    assert result("2.6.0", ("introduced", "0"), ("last_affected", "2.6.0+cu124")) is Result.AFFECTED
    assert result("2.6.0+cu126", ("introduced", "0"), ("last_affected", "2.6.0-cu124")) is Result.AFFECTED


def test_several_intervals_in_one_range_are_not_one() -> None:
    bounds = (("introduced", "0"), ("fixed", "2.22.4"), ("introduced", "3.0.0rc0"), ("fixed", "3.0.0"))
    assert [result(version, *bounds) for version in ("2.22.3", "2.22.4", "2.99", "3.0.0rc1", "3.0.0")] == [
        Result.AFFECTED,
        Result.NOT_AFFECTED,
        Result.NOT_AFFECTED,
        Result.AFFECTED,
        Result.NOT_AFFECTED,
    ]


def test_an_interval_that_ends_where_the_next_begins_has_no_hole() -> None:
    for events in permutations((("introduced", "0"), ("fixed", "1.0"), ("introduced", "1.0"), ("fixed", "2.0"))):
        assert result("1.0", *events) is Result.AFFECTED


def test_an_empty_interval_affects_nothing() -> None:
    assert result("1.0", ("introduced", "1.0"), ("fixed", "1.0")) is Result.NOT_AFFECTED
    assert result("9.0", ("introduced", "1.0"), ("fixed", "1.0")) is Result.NOT_AFFECTED


def test_a_range_without_an_end_affects_every_newer_version() -> None:
    assert result("99", ("introduced", "0.5.5")) is Result.AFFECTED
    assert result("0.5.4", ("introduced", "0.5.5")) is Result.NOT_AFFECTED


def test_introduced_zero_includes_the_first_pre_release() -> None:
    assert result("0.0.1a1", ("introduced", "0"), ("fixed", "1")) is Result.AFFECTED


@pytest.mark.parametrize("bound", ["2.6.0-NA", "8f3097e", "latest", "nightly"])
def test_an_unparsable_bound_makes_that_range_unknown_and_nothing_else(bound: str) -> None:
    broken = a_range(("introduced", "0"), ("last_affected", bound))
    whole = a_range(("introduced", "0"), ("fixed", "1.0"))
    assert judge("2.0", Source(ranges=(broken,))).result is Result.UNKNOWN
    assert judge("0.5", Source(ranges=(broken, whole))).result is Result.AFFECTED
    assert judge("2.0", Source(ranges=(broken,), versions=("2.0",))).result is Result.AFFECTED


def test_an_enumerated_version_counts_without_a_range_and_outside_one() -> None:
    listed = Source(versions=("1.0", "1.1"))
    assert [judge(version, listed).result for version in ("1.1", "1.2")] == [Result.AFFECTED, Result.NOT_AFFECTED]
    outside = Source(ranges=(a_range(*FIXED),), versions=("0.20.0",))
    assert judge("0.20.0", outside).result is Result.AFFECTED


def test_a_list_of_release_lines_does_not_clear_the_releases_in_them() -> None:
    lines = Source(versions=("0.1", "0.2", "0.28"))
    assert judge("0.28.0", lines).result is Result.AFFECTED
    assert judge("0.28.1", lines).result is Result.UNKNOWN
    assert judge("0.28.1rc1", lines).result is Result.UNKNOWN
    assert judge("0.29.0", lines).result is Result.NOT_AFFECTED
    assert judge("0.28.1", Source(versions=("0.1", "0.28", "0.28.0"))).result is Result.NOT_AFFECTED
    assert judge("0.10.1.1", Source(versions=("0.10.0", "0.10.1"))).result is Result.NOT_AFFECTED


def test_spellings_of_a_listed_version_are_compared_as_versions() -> None:
    assert judge("5.0.0b2", Source(versions=("5.0.0-beta.2",))).result is Result.AFFECTED
    assert judge("2022.12.7", Source(versions=("2022.12.07",))).result is Result.AFFECTED


def test_a_listed_spelling_that_is_not_a_version_matches_itself() -> None:
    assert judge("2.0.1rc2-git", Source(versions=("2.0.1rc2-git",))).result is Result.AFFECTED


def test_an_excerpt_of_a_record_clears_nothing_that_it_does_not_list() -> None:
    excerpt = Source(versions=("1.3.0rc24",), is_partial=True)
    assert judge("1.3.0rc24", excerpt).result is Result.AFFECTED
    assert judge("1.2.1", excerpt).result is Result.UNKNOWN


def test_a_record_without_range_and_versions_is_unknown() -> None:
    assert judge("1.0", Source()).result is Result.UNKNOWN


def test_commits_alone_are_unknown_and_beside_a_range_they_are_skipped() -> None:
    commits = a_range(("introduced", "0"), ("fixed", "8f3097e"), kind="GIT")
    assert judge("1.0", Source(ranges=(commits,))).result is Result.UNKNOWN
    assert judge("0.20", Source(ranges=(commits, a_range(*FIXED)))).result is Result.NOT_AFFECTED
    assert judge("1.0", Source(ranges=(commits,), versions=("1.0",))).result is Result.AFFECTED


def test_an_open_commit_range_does_not_clear_what_came_after_its_list() -> None:
    commits = a_range(("introduced", "0"), kind="GIT")
    listed = Source(ranges=(commits,), versions=("1.0", "1.1"))
    assert judge("1.2", listed).result is Result.UNKNOWN
    assert judge("0.9", listed).result is Result.NOT_AFFECTED


def test_a_limit_ends_a_range_and_an_asterisk_does_not() -> None:
    assert result("2.0", ("introduced", "0"), ("limit", "2.0")) is Result.NOT_AFFECTED
    assert result("1.9", ("introduced", "0"), ("limit", "2.0")) is Result.AFFECTED
    assert result("2.0", ("introduced", "0"), ("limit", "*")) is Result.AFFECTED


def test_a_range_of_limits_alone_affects_what_lies_before_them() -> None:
    assert result("1.9", ("limit", "2.0")) is Result.AFFECTED
    assert result("2.0", ("limit", "2.0")) is Result.NOT_AFFECTED


@pytest.mark.parametrize("version", ["0.11.1rc6.dev210+g48d2a1f", "0.33.1.dev5", "nightly", "8f3097e"])
def test_a_build_whose_commits_are_not_known_is_unknown(version: str) -> None:
    assert result(version, *FIXED) is Result.UNKNOWN


# --- several sources


def test_a_fix_that_another_source_names_clears_what_lies_above_it() -> None:
    importer = Source("PYSEC-2026-9", (a_range(("introduced", "0"), ("last_affected", "0.23.0")),), aliases=("GHSA-a",))
    origin = Source("GHSA-a", (a_range(("introduced", "0"), ("fixed", "0.24.0")),))
    assert judge("0.24.0", importer, origin).result is Result.NOT_AFFECTED
    assert judge("0.23.0.post1", importer, origin).result is Result.AFFECTED
    assert judge("0.24.0", importer).result is Result.NO_FIX_KNOWN


def test_a_fix_below_last_affected_fixes_nothing() -> None:
    two_lines = (
        a_range(("introduced", "0"), ("fixed", "1.5")),
        a_range(("introduced", "2.0"), ("last_affected", "2.3")),
    )
    assert judge("2.4", Source(ranges=two_lines)).result is Result.NO_FIX_KNOWN


def test_a_fix_with_a_local_part_is_compared_by_its_public_version() -> None:
    importer = Source("PYSEC-2026-9", (a_range(("introduced", "0"), ("last_affected", "2.5.0")),), aliases=("GHSA-a",))
    origin = Source("GHSA-a", (a_range(("introduced", "0"), ("fixed", "2.6.0-cu124")),))
    assert judge("2.6.0", importer, origin).result is Result.NOT_AFFECTED
    assert judge("2.6.0+cpu", importer, origin).result is Result.NOT_AFFECTED


def test_two_sources_that_disagree_are_both_shown_and_the_stricter_counts() -> None:
    cna = Source("CVE-2026-3059", versions=("0.5.10",), aliases=("GHSA-r",))
    ghsa = Source("GHSA-r", (a_range(("introduced", "0"), ("fixed", "0.5.10")),))
    found = judge("0.5.10", cna, ghsa)
    assert found.result is Result.AFFECTED
    assert found.sources_disagree
    assert {name: answer.result for name, answer in found.by_source} == {
        "CVE-2026-3059": Result.AFFECTED,
        "GHSA-r": Result.NOT_AFFECTED,
    }


@pytest.mark.parametrize("silent", [(), (a_range(("introduced", "0"), kind="GIT"),)])
def test_a_source_with_nothing_to_compare_is_not_heard_beside_one_that_can_be(
    silent: tuple[AffectedRange, ...],
) -> None:
    commits = Source("CVE-2026-8", silent, aliases=("GHSA-s",))
    ranged = Source("GHSA-s", (a_range(("introduced", "0"), ("fixed", "0.30.0")),))
    assert judge("0.33.0", commits).result is Result.UNKNOWN
    assert judge("0.33.0", commits, ranged).result is Result.NOT_AFFECTED
    assert judge("0.29.0", commits, ranged).result is Result.AFFECTED
    unreadable = Source("GHSA-s", (a_range(("introduced", "0"), ("fixed", "latest")),))
    assert judge("0.33.0", commits, unreadable).result is Result.UNKNOWN


def test_withdrawn_by_every_source_is_dropped_and_by_one_is_kept_and_flagged() -> None:
    open_ended = (a_range(("introduced", "0")),)
    gone = Source("PYSEC-1", open_ended, withdrawn="2024-01-01T00:00:00Z", aliases=("GHSA-w",))
    assert judge("1.0", gone).result is Result.NOT_AFFECTED
    kept = judge("0.9", gone, Source("GHSA-w", (a_range(("introduced", "0"), ("fixed", "1.0")),)))
    assert kept.result is Result.AFFECTED
    assert kept.advisory.withdrawn_by == ("PYSEC-1",)
    assert judge("2.0", gone, Source("GHSA-w", (a_range(("introduced", "0"), ("fixed", "1.0")),))).result is (
        Result.NOT_AFFECTED
    )


def test_the_highest_severity_of_all_sources_counts() -> None:
    low = Source("PYSEC-2", (a_range(*FIXED),), aliases=("CVE-2026-7",), severity=Severity.LOW)
    high = Source("CVE-2026-7", (a_range(*FIXED),), severity=Severity.CRITICAL)
    assert judge("0.9", low, high).severity is Severity.CRITICAL
    assert judge("0.9", Source(ranges=(a_range(*FIXED),))).severity is None


def test_the_rating_of_a_source_that_withdrew_its_copy_still_counts() -> None:
    copy = Source("PYSEC-2", aliases=("CVE-2026-7",), severity=Severity.HIGH, withdrawn="2026-07-09T00:00:00Z")
    assert judge("0.9", copy, Source("CVE-2026-7", (a_range(*FIXED),))).severity is Severity.HIGH


def test_fixed_versions_of_every_entry_are_collected() -> None:
    two = (a_range(("introduced", "0"), ("fixed", "1.5")), a_range(("introduced", "2.0"), ("fixed", "2.1")))
    assert judge("1.0", Source(ranges=two)).fixed == ("1.5", "2.1")


def test_a_fixed_version_is_shown_once_and_a_release_number_keeps_its_zeros() -> None:
    image = Source(ranges=(a_range(("introduced", "0"), ("fixed", "r26.06")),))
    assert judge("25.10", image).fixed == ("26.06",)
    first = Source("GHSA-f", (a_range(("introduced", "0"), ("fixed", "v2.0")),), aliases=("CVE-2026-1",))
    second = Source("CVE-2026-1", (a_range(("introduced", "0"), ("fixed", "2.0")),))
    assert judge("1.0", first, second).fixed == ("2.0",)
    third = Source("CVE-2026-1", (a_range(("introduced", "0"), ("fixed", "2.0.0.0")),))
    assert judge("1.0", first, third).fixed == ("2.0",)
    assert judge("1.0", Source(ranges=(a_range(("introduced", "0"), ("fixed", "2.6.0-NA")),))).fixed == ()
    assert judge("1.0", Source(ranges=(a_range(("introduced", "0"), ("fixed", "1.3.0 rc17")),))).fixed == ("1.3.0rc17",)


# --- merging


def test_aliases_merge_transitively_whatever_the_order() -> None:
    chain = [
        Source("CVE-2026-1", aliases=("GHSA-1",)).record(),
        Source("PYSEC-1", aliases=("GHSA-1",)).record(),
        Source("OSV-1", aliases=("PYSEC-1",)).record(),
        Source("CVE-2026-2").record(),
    ]
    for order in permutations(chain):
        groups = merge(order, {})
        assert [advisory.id for advisory in groups] == ["CVE-2026-1", "CVE-2026-2"]
        assert groups[0].aliases == ("GHSA-1", "PYSEC-1", "OSV-1")


def test_related_records_are_not_the_same_defect() -> None:
    first = Source("CVE-2026-1").record()
    second = (
        Source("CVE-2026-2")
        .record()
        .model_copy(update={"incomplete_fix_of": ("CVE-2026-1",), "related": ("CVE-2026-1",)})
    )
    groups = merge([first, second], {})
    assert [advisory.id for advisory in groups] == ["CVE-2026-1", "CVE-2026-2"]
    assert groups[1].incomplete_fix_of == ("CVE-2026-1",)
