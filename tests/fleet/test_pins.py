"""Floors: the smallest version from which on everything published is acceptable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from fleet.advisory import AffectedPackage, AffectedRange, Event, EventKind, Label, Record, merge
from fleet.facts import AdvisoryData, Quarantined
from fleet.matching import Result
from fleet.pins import Closed, EnginePins, Floor, PathPin, engine_pins
from fleet.policy import Policy
from fleet.severity import Severity
from fleet.verdict import check
from fleet.versions import is_final

PACKAGE = "engine"
VERSIONS = ("0.1.0", "0.2.0rc1", "0.2.0", "0.3.0", "0.4.0rc0")


def record(number: int, *bounds: tuple[str, str], severity: Severity | None = Severity.HIGH) -> Record:
    events = tuple(Event(kind=EventKind(kind), version=version) for kind, version in bounds)
    affected = AffectedPackage(
        ecosystem="PyPI", package=PACKAGE, ranges=(AffectedRange(type="ECOSYSTEM", events=events),)
    )
    return Record(id=f"CVE-2026-{number}", severity=severity, affected=(affected,))


def data(*records: Record, labels: dict[str, tuple[str, ...]] | None = None) -> AdvisoryData:
    known = {f"{PACKAGE}/{name}": Label(paths=paths) for name, paths in (labels or {}).items()}
    return AdvisoryData(advisories=merge(records, known), published={PACKAGE: VERSIONS})


def pins(*records: Record, labels: dict[str, tuple[str, ...]] | None = None) -> EnginePins:
    return engine_pins(data(*records, labels=labels), PACKAGE, Policy())


def pin(found: EnginePins, path: str) -> PathPin:
    return next(item for item in found.paths if item.path == path)


BOUNDS = st.sampled_from(["0", "0.1.0", "0.2.0", "0.3.0", "0.4.0"])
RECORDS = st.lists(
    st.tuples(BOUNDS, st.sampled_from(["fixed", "last_affected"]), BOUNDS, st.sampled_from([None, *Severity])),
    min_size=1,
    max_size=5,
).map(
    lambda rows: [
        record(number, ("introduced", start), (kind, end), severity=severity)
        for number, (start, kind, end, severity) in enumerate(rows)
    ]
)


@given(RECORDS)
def test_a_floor_is_acceptable_with_every_newer_final_version_and_none_below_it_is(records: list[Record]) -> None:
    found = data(*records)
    limit = pin(engine_pins(found, PACKAGE, Policy()), "core").limit

    def acceptable(version: str) -> bool:
        matches = found.matches(PACKAGE, version)
        return not any(
            item.result is Result.AFFECTED and item.severity is not None and item.severity.rank >= 2 for item in matches
        )

    def holds_from(version: str) -> bool:
        newer = [other for other in VERSIONS if Version(other) > Version(version) and is_final(Version(other))]
        return acceptable(version) and all(map(acceptable, newer))

    expected = [version for version in VERSIONS if holds_from(version)]
    assert (limit.version if isinstance(limit, Floor) else None) == (expected[0] if expected else None)


@given(RECORDS)
def test_what_is_recommended_is_published_and_not_refused(records: list[Record]) -> None:
    recommended = engine_pins(data(*records), PACKAGE, Policy()).recommended
    if recommended is not None:
        assert recommended in VERSIONS


@given(RECORDS, RECORDS)
def test_one_more_record_never_lowers_a_floor(records: list[Record], more: list[Record]) -> None:
    def floor(of: list[Record]) -> Version:
        limit = pin(pins(*of), "core").limit
        return Version(limit.version) if isinstance(limit, Floor) else Version("99")

    if records:
        renamed = [item.model_copy(update={"id": f"GHSA-{item.id}"}) for item in more]
        assert floor(records) <= floor(records + renamed)


def test_without_a_refusing_record_every_version_is_above_the_floor() -> None:
    found = pins(record(1, ("introduced", "9"), ("fixed", "10")))
    assert pin(found, "core").limit == Floor("0.1.0")
    assert found.recommended == "0.3.0"


def test_a_label_closes_its_own_path_and_leaves_the_others() -> None:
    found = pins(record(1, ("introduced", "0"), ("last_affected", "0.3.0")), labels={"CVE-2026-1": ("multimodal",)})
    assert isinstance(pin(found, "multimodal").limit, Floor)
    assert pin(found, "multimodal").limit == Floor("0.4.0rc0")
    assert pin(found, "core").limit == Floor("0.1.0")
    assert pin(found, "multimodal").decided_by == ("CVE-2026-1",)


def test_a_path_is_closed_when_the_newest_version_is_affected() -> None:
    limit = pin(pins(record(1, ("introduced", "0"))), "core").limit
    assert limit == Closed("the newest final version 0.3.0 is refused by CVE-2026-1")


def test_a_pre_release_is_recommended_only_when_no_final_version_is_left() -> None:
    assert pins(record(1, ("introduced", "0"), ("fixed", "0.3.0"))).recommended == "0.3.0"
    assert pins(record(1, ("introduced", "0"), ("fixed", "0.4.0rc0"))).recommended == "0.4.0rc0"
    assert pins(record(1, ("introduced", "0"))).recommended is None


def test_a_development_build_is_neither_a_floor_nor_recommended() -> None:
    known = AdvisoryData(
        advisories=merge([record(1, ("introduced", "0"), ("fixed", "0.2.0"))], {}),
        published={PACKAGE: ("0.1.0", "0.2.0.dev1", "0.2.0", "0.3.0.dev1")},
    )
    found = engine_pins(known, PACKAGE, Policy())
    assert pin(found, "core").limit == Floor("0.2.0")
    assert found.recommended == "0.2.0"
    only = known.model_copy(update={"published": {PACKAGE: ("0.1.0", "0.2.0.dev1")}})
    assert engine_pins(only, PACKAGE, Policy()).recommended is None
    nightly = known.model_copy(update={"published": {PACKAGE: ("0.2.0.dev1",)}})
    assert pin(engine_pins(nightly, PACKAGE, Policy()), "core").limit == Closed("no release is published")


@pytest.mark.parametrize(("severity", "refused"), [(None, False), (Severity.LOW, False), (Severity.MEDIUM, True)])
def test_a_missing_or_low_rating_never_moves_a_floor(severity: Severity | None, refused: bool) -> None:
    limit = pin(pins(record(1, ("introduced", "0"), ("fixed", "0.3.0"), severity=severity)), "core").limit
    assert limit == Floor("0.3.0" if refused else "0.1.0")


def test_an_unrated_record_moves_a_floor_where_the_policy_wants_it_triaged() -> None:
    found = data(record(1, ("introduced", "0"), ("fixed", "0.3.0"), severity=None))
    strict = engine_pins(found, PACKAGE, Policy(unrated_affected_needs_triage=True))
    assert pin(strict, "core").limit == Floor("0.3.0")
    assert pin(engine_pins(found, PACKAGE, Policy()), "core").limit == Floor("0.1.0")


def test_malware_refuses_on_every_path_and_without_a_rating() -> None:
    bad = record(1, ("introduced", "0.3.0"), ("last_affected", "0.3.0"), severity=None)
    found = pins(bad.model_copy(update={"is_malware": True}), labels={"CVE-2026-1": ("multimodal",)})
    assert pin(found, "core").limit == Floor("0.4.0rc0")
    assert found.recommended == "0.2.0"


def test_a_package_without_records_or_with_a_broken_one_is_never_called_clean() -> None:
    empty = AdvisoryData(published={PACKAGE: VERSIONS})
    assert check(empty, PACKAGE, "0.3.0").result is Result.UNKNOWN
    assert check(empty, PACKAGE, "0.3.0").reason == "unknown: no advisory data for engine"
    assert engine_pins(empty, PACKAGE, Policy()).recommended is None
    broken = data(record(1, ("introduced", "0"), ("fixed", "0.1.0"))).model_copy(
        update={"quarantined": (Quarantined(source="x.json", id="CVE-2026-9", package=PACKAGE, reason="truncated"),)}
    )
    assert check(broken, PACKAGE, "0.3.0").result is Result.UNKNOWN
    assert engine_pins(broken, PACKAGE, Policy()).recommended is None


def test_a_verdict_leaves_out_only_confirmed_labels_that_are_all_off() -> None:
    labels = {"CVE-2026-1": ("multimodal",), "CVE-2026-2": ("multimodal", "api")}
    found = data(*(record(number, ("introduced", "0")) for number in (1, 2, 3)), labels=labels)
    verdict = check(found, PACKAGE, "0.3.0", frozenset({"lora"}))
    assert [match.advisory.id for match in verdict.matches] == ["CVE-2026-2", "CVE-2026-3"]
    assert [match.advisory.id for match in verdict.suppressed] == ["CVE-2026-1"]
    assert len(check(found, PACKAGE, "0.3.0").matches) == 3


def test_the_verdict_takes_the_strictest_result_and_says_whether_the_version_exists() -> None:
    found = data(record(1, ("introduced", "0"), ("last_affected", "0.2.0")), record(2, ("introduced", "0.3.0")))
    assert check(found, PACKAGE, "0.3.0").result is Result.AFFECTED
    assert check(found, PACKAGE, "0.2.5").result is Result.NO_FIX_KNOWN
    assert [check(found, PACKAGE, version).published for version in ("0.3.0", "0.2.5", "latest")] == [
        True,
        False,
        False,
    ]
    assert check(found, "other", "1.0").published is None
