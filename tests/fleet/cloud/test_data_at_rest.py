"""Data at rest: one thing missing gives exactly one rule."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud import data
from fleet.cloud.data import BLOCKS, Bucket

GOOD = Bucket("weights", has_own_key=True, is_versioned=True, blocks=frozenset(BLOCKS))


def ids(findings) -> list[str]:
    return [finding.rule.id for finding in findings]


@given(blocks=st.frozensets(st.sampled_from(BLOCKS)))
def test_a_bucket_is_private_only_with_all_four_blocks(blocks):
    found = ids(data.bucket_findings(replace(GOOD, blocks=blocks)))
    assert found == ([] if len(blocks) == 4 else [data.PUBLIC_BUCKET.id])


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"has_own_key": False}, data.OWN_KEY),
        ({"is_versioned": False}, data.VERSIONED),
        ({"acls": ("private", "public-read")}, data.PUBLIC_BUCKET),
        ({"acls": ("AllUsers",)}, data.PUBLIC_BUCKET),
        ({"lets_everybody_in": True}, data.PUBLIC_BUCKET),
    ],
)
def test_one_fault_of_a_bucket_gives_exactly_its_rule(changes, rule):
    assert ids(data.bucket_findings(replace(GOOD, **changes))) == [rule.id]


def test_a_volume_is_encrypted_or_found():
    assert ids(data.volume_findings("root", is_encrypted=True)) == []
    assert ids(data.volume_findings("root", is_encrypted=False)) == [data.VOLUME_ENCRYPTED.id]


def test_a_file_system_without_a_key_of_its_own_is_found():
    (finding,) = data.own_key_findings("file system", "weights", has_own_key=False)
    assert finding.rule is data.OWN_KEY
    assert finding.message == "the file system weights has no key of the account's own"


@pytest.mark.parametrize(("encrypted", "has_own_key"), [(set(), False), ({"secrets"}, False), ({"pods"}, True)])
def test_the_secrets_of_a_cluster_need_their_own_key(encrypted, has_own_key):
    found = data.secrets_findings("main", encrypted=frozenset(encrypted), has_own_key=has_own_key)
    assert ids(found) == [data.SECRETS.id]
    assert ids(data.secrets_findings("main", encrypted=frozenset({"secrets"}), has_own_key=True)) == []


def test_a_key_rotates_unless_it_is_of_a_kind_that_can_not():
    assert ids(data.key_findings("weights", rotates=True)) == []
    assert ids(data.key_findings("weights", rotates=False)) == [data.ROTATION.id]
    assert ids(data.key_findings("signing", rotates=False, spec="ECC_NIST_P256")) == []


def test_a_repository_is_encrypted_scanned_and_its_tags_stay():
    good = {"mutability": "IMMUTABLE", "is_scanned": True, "has_own_key": True}
    assert ids(data.repository_findings("engines", **good)) == []
    for change, rule in (
        ({"mutability": "MUTABLE"}, data.MUTABLE_TAGS),
        ({"is_scanned": False}, data.UNSCANNED),
        ({"has_own_key": False}, data.OWN_KEY),
    ):
        assert ids(data.repository_findings("engines", **good | change)) == [rule.id]
