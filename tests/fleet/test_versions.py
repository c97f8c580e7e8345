"""Versions: spellings, the public part, builds that say nothing, published neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from fleet.versions import PublishedVersions, is_unreleased_build, parse_version, public

RELEASES = st.lists(st.integers(0, 40), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(RELEASES)
def test_a_prefix_and_a_build_suffix_do_not_change_the_public_version(release: str) -> None:
    expected = Version(release)
    prefixed = (f"v{release}", f"r{release}", f"R{release}", f" {release} ")
    images = (f"{release}-cu129", f"v{release}-cu129-amd64", f"{release}-py3", f"{release}-vllm-python-py3")
    for spelling in (*prefixed, *images, f"{release}-x86_64-ubuntu22.04", f"{release}+rocm6.3"):
        version = parse_version(spelling)
        assert version is not None
        assert public(version) == expected


@given(RELEASES, st.integers(0, 40))
def test_a_blank_before_a_tag_reads_as_the_tag(release: str, number: int) -> None:
    for spelling in (f"{release} rc{number}", f"{release} rc {number}", f"{release}rc {number}"):
        assert parse_version(spelling) == Version(f"{release}rc{number}")
    assert parse_version(f"{release} rc{number}.post1") == Version(f"{release}rc{number}.post1")


@pytest.mark.parametrize("raw", ["latest", "nightly", "8f3097e", "2.6.0-NA", "", "1.2.3-frob", "0.1,0.2", "-cu129"])
def test_what_is_not_a_version_is_not_guessed(raw: str) -> None:
    assert parse_version(raw) is None


def test_digits_without_an_end_are_not_a_version() -> None:
    for length in (201, 4300, 100_000):
        assert parse_version("9" * length) is None
    assert parse_version("1." + "9" * 60) is not None


def test_development_builds_are_not_in_the_order_to_choose_in() -> None:
    listed = PublishedVersions.read(["1.0", "1.1.dev3", "1.1rc1"], retrieved="2026-11-29")
    assert [str(version) for version in listed.newest_first] == ["1.0", "1.1rc1"]
    assert listed.has(Version("1.1.dev3"))


def test_the_public_part_keeps_its_own_spelling() -> None:
    spellings = ("0.28", "0.28.0", "0.28+cpu", "0.28.0+cpu")
    assert [str(public(Version(raw))) for raw in spellings] == ["0.28", "0.28.0", "0.28", "0.28.0"]


def test_version_0_18_10_is_above_0_18_2() -> None:
    low, high = parse_version("0.18.2"), parse_version("0.18.10")
    assert low is not None
    assert high is not None
    assert low < high


@pytest.mark.parametrize("raw", ["0.11.1rc6.dev210+g48d2a1f", "0.14.2.dev5", "0.33.0+precompiled", "0.33.0+nightly"])
def test_development_and_precompiled_builds_are_not_releases(raw: str) -> None:
    version = parse_version(raw)
    assert version is not None
    assert is_unreleased_build(version)


def test_a_release_candidate_and_a_cuda_wheel_are_releases() -> None:
    for raw in ("0.14.1rc1", "2.6.0+cu124", "0.5.12.post1"):
        version = parse_version(raw)
        assert version is not None
        assert not is_unreleased_build(version)


@given(st.lists(RELEASES, min_size=1, max_size=12), RELEASES)
def test_neighbours_enclose_an_unpublished_version(raw: list[str], wanted: str) -> None:
    published = PublishedVersions.read(raw, retrieved="2026-11-29")
    version = Version(wanted)
    neighbours = published.near(version)
    assert neighbours
    if not published.has(version):
        between = [other for other in published.ascending if min(neighbours) < other < max(neighbours)]
        assert between == []


def test_the_neighbours_of_vllm_0_18_2_are_named() -> None:
    published = PublishedVersions.read(["0.19.0", "0.18.1", "0.18.0", "nightly"], retrieved="2026-11-29")
    assert [str(version) for version in published.near(Version("0.18.2"))] == ["0.18.1", "0.19.0"]
