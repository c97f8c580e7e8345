"""Lustre file systems: every wish that AWS takes has no finding, every one that it refuses has the right one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud import lustre
from fleet.cloud.lustre import EFA_CAPACITY_GIB, FileSystem, can_have, file_system_findings, smallest_holding

TIERS = st.sampled_from(sorted(EFA_CAPACITY_GIB))
GOOD = FileSystem(capacity_gib=4800, mb_per_second_per_tib=500, metadata_mode="AUTOMATIC", version="2.15")


def ids(system: FileSystem) -> list[str]:
    return [finding.rule.id for finding in file_system_findings(system)]


@given(size=st.floats(0, 500_000), tier=TIERS, has_efa=st.booleans())
def test_the_smallest_capacity_that_holds_some_weights_is_possible_and_no_smaller_one_holds_them(size, tier, has_efa):
    chosen = smallest_holding(size, mb_per_second_per_tib=tier, has_efa=has_efa)
    assert chosen >= size
    assert can_have(chosen, mb_per_second_per_tib=tier, has_efa=has_efa)
    assert ids(replace(GOOD, capacity_gib=chosen, mb_per_second_per_tib=tier, has_efa=has_efa)) == []
    step = EFA_CAPACITY_GIB[tier] if has_efa else 1200
    smaller = [gib for gib in range(step, chosen, step) if can_have(gib, mb_per_second_per_tib=tier, has_efa=has_efa)]
    assert all(gib < size for gib in smaller)


@given(capacity=st.integers(-10_000, 200_000), tier=TIERS, has_efa=st.booleans())
def test_the_judge_and_the_question_agree_about_every_capacity(capacity, tier, has_efa):
    wish = replace(GOOD, capacity_gib=capacity, mb_per_second_per_tib=tier, has_efa=has_efa)
    assert (ids(wish) == []) == can_have(capacity, mb_per_second_per_tib=tier, has_efa=has_efa)


@given(capacity=st.integers(1, 100_000))
def test_the_capacities_that_a_finding_names_are_possible(capacity):
    for finding in file_system_findings(replace(GOOD, capacity_gib=capacity)):
        numbers = [int(word) for word in finding.remedy.split() if word.isdigit()]
        assert numbers
        assert all(can_have(number, mb_per_second_per_tib=500) for number in numbers)


@given(tier=st.integers(-10, 5000))
def test_only_the_throughputs_of_the_table_are_accepted(tier):
    assert (ids(replace(GOOD, mb_per_second_per_tib=tier)) == []) == (tier in (125, 250, 500, 1000))


@given(iops=st.integers(-1000, 400_000))
def test_metadata_iops_are_small_steps_or_multiples_up_to_the_maximum(iops):
    wish = replace(GOOD, metadata_mode="USER_PROVISIONED", metadata_iops=iops)
    allowed = {1500, 3000, 6000, *range(12000, 192001, 12000)}
    assert (ids(wish) == []) == (iops in allowed)


def test_1300_gib_is_refused_with_its_neighbours():
    (finding,) = file_system_findings(replace(GOOD, capacity_gib=1300))
    assert finding.rule is lustre.CAPACITY
    assert finding.sentence == "a capacity of 1300 GiB; take 1200 or 2400 GiB"


def test_4800_gib_with_efa_at_250_is_refused_with_the_first_multiple():
    (finding,) = file_system_findings(replace(GOOD, mb_per_second_per_tib=250, has_efa=True))
    assert finding.rule is lustre.EFA_CAPACITY
    assert finding.sentence == "a capacity of 4800 GiB with EFA at 250 MB/s per TiB; take 19200 GiB"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"capacity_gib": None}, lustre.CAPACITY),
        ({"capacity_gib": 0}, lustre.CAPACITY),
        ({"mb_per_second_per_tib": None}, lustre.THROUGHPUT),
        ({"mb_per_second_per_tib": 333}, lustre.THROUGHPUT),
        ({"has_efa": True, "capacity_gib": 9600, "metadata_mode": None, "version": None}, lustre.EFA_NEEDS),
        ({"metadata_iops": 1500}, lustre.METADATA),
        ({"metadata_mode": "USER_PROVISIONED"}, lustre.METADATA),
        ({"metadata_mode": "MANUAL"}, lustre.METADATA),
        ({"version": "2.10"}, lustre.VERSION),
        ({"version": "2.12"}, lustre.VERSION),
        ({"version": "3.0"}, lustre.VERSION),
        ({"old_import_settings": ("import_path",)}, lustre.OLD_IMPORT),
        ({"storage": "HDD"}, lustre.DEPLOYMENT),
        ({"deployment": "PERSISTENT_3"}, lustre.DEPLOYMENT),
        ({"storage": "INTELLIGENT_TIERING", "has_read_cache": True}, lustre.THROUGHPUT),
        ({"storage": "INTELLIGENT_TIERING", "mb_per_second": 4000}, lustre.DEPLOYMENT),
        (
            {"storage": "INTELLIGENT_TIERING", "mb_per_second": 2000, "has_read_cache": True, "has_efa": True},
            lustre.EFA_CAPACITY,
        ),
    ],
)
def test_one_fault_gives_exactly_its_rule(changes, rule):
    assert ids(replace(GOOD, **changes)) == [rule.id]


OLDER = FileSystem(capacity_gib=1200, mb_per_second_per_tib=200, deployment="PERSISTENT_1")


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (OLDER, []),
        (replace(OLDER, old_import_settings=("import_path",)), []),
        (replace(OLDER, mb_per_second_per_tib=1000), [lustre.THROUGHPUT.id]),
        (replace(OLDER, has_efa=True), [lustre.EFA_NEEDS.id]),
        (replace(OLDER, metadata_mode="AUTOMATIC"), [lustre.METADATA.id]),
        (replace(OLDER, storage="HDD", mb_per_second_per_tib=12, capacity_gib=6000), []),
        (replace(OLDER, storage="HDD", mb_per_second_per_tib=40, capacity_gib=6000), [lustre.CAPACITY.id]),
        (replace(OLDER, storage="HDD", mb_per_second_per_tib=200), [lustre.THROUGHPUT.id]),
        (replace(OLDER, deployment="SCRATCH_2"), [lustre.THROUGHPUT.id]),
        (replace(OLDER, deployment="SCRATCH_1", mb_per_second_per_tib=None, capacity_gib=3600), []),
        (replace(OLDER, deployment="SCRATCH_1", mb_per_second_per_tib=None, capacity_gib=4800), [lustre.CAPACITY.id]),
        (replace(OLDER, deployment="SCRATCH_2", mb_per_second_per_tib=None, capacity_gib=4800), []),
    ],
)
def test_other_deployment_types_have_their_own_numbers(system, expected):
    assert ids(system) == expected


def test_intelligent_tiering_has_throughput_and_no_capacity():
    assert (
        ids(
            FileSystem(
                None,
                None,
                storage="INTELLIGENT_TIERING",
                mb_per_second=8000,
                has_read_cache=True,
                has_efa=True,
                metadata_mode="USER_PROVISIONED",
                metadata_iops=12000,
            )
        )
        == []
    )
