"""Laws of IAM documents: what patterns let through, what conditions narrow, and that nothing unreadable passes."""

import json

import pulumi_aws
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.cloud import iam_patterns, identity
from fleet.cloud.iam_conditions import names_what, names_who
from fleet.cloud.iam_document import Condition, Statement, read_document
from fleet.cloud.identity import document_findings
from policies import iam_places, instances, limits

NAMES = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6)
WILD = st.text("*?", min_size=1, max_size=4).filter(lambda text: "*" in text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["*", "Allow", "s3:GetObject", "arn:aws:s3:::a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Statement", "Effect", "Action", "Resource", "Principal", "Condition", "AWS", "Bool"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(NAMES, WILD)
def test_all_of_a_service_is_wide_however_it_is_spelled(service, wild):
    assert iam_patterns.is_wide_action(f"{service}:{wild}")
    assert iam_patterns.is_wide_action(wild)
    assert iam_patterns.is_wide_action(f"{service[0]}{wild}")


@given(NAMES, st.sampled_from(["Get", "Put", "Describe", "Delete", "List"]), NAMES, WILD)
def test_one_verb_is_not_wide(service, verb, rest, wild):
    assert not iam_patterns.is_wide_action(f"{service}:{verb}{rest}")
    assert not iam_patterns.is_wide_action(f"{service}:{verb}{rest}{wild}")
    assert not iam_patterns.is_wide_action(f"{service}:{verb}{wild}".upper())


@given(NAMES, WILD)
def test_a_resource_that_is_all_wildcard_is_wide_and_one_with_a_name_is_not(name, wild):
    assert iam_patterns.is_wide_resource(wild)
    assert iam_patterns.is_wide_resource(f"arn:{wild}")
    assert iam_patterns.is_wide_resource(f"arn:aws:s3:::{wild}")
    assert not iam_patterns.is_wide_resource(f"arn:aws:s3:::{name}{wild}")
    assert not iam_patterns.is_wide_resource(f"arn:aws:s3:::{name}")


@given(st.sampled_from(["StringNotEquals", "StringNotLike", "NotIpAddress", "StringEqualsIfExists"]), NAMES)
def test_what_is_no_positive_match_narrows_nothing(operator, value):
    condition = {operator: {"aws:PrincipalArn": value, "aws:ResourceTag/a": value, "aws:SourceIp": value}}
    (found,) = read_document({"Statement": {"Effect": "Allow", "Action": "a:B", "Condition": condition}}).statements
    assert not names_who(found)
    assert not names_what(found)


@given(st.lists(NAMES, min_size=1, max_size=3), WILD)
def test_one_wildcard_among_the_values_takes_the_condition_away(values, wild):
    def statement(*stated):
        return Statement(conditions=(Condition("stringlike", "aws:principalorgid", stated),))

    assert names_who(statement(*values))
    assert not names_who(statement(*values, wild))


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", " 0.0.0.0/0 ", "::/0", "128.0.0.0/1", "2000::/3"])
def test_a_good_part_of_the_internet_is_no_place(cidr):
    assert iam_patterns.is_any_network(cidr)
    assert not iam_patterns.is_any_network("192.0.2.0/24")


@given(JSON, st.sampled_from(["identity", "resource", "trust"]))
@example({"Statement": [["text"]]}, "identity")
@example({"Statement": {"Effect": "Allow", "Action": None, "Resource": 5}}, "identity")
@example({"Statement": {"Effect": "Allow", "Action": "a:B", "Principal": {"AWS": None}}}, "trust")
@example({"Statement": {"Effect": "Allow", "Action": "a:B", "Condition": {"Bool": None}}}, "trust")
def test_whatever_a_document_is_it_is_judged_or_named(value, kind):
    found = read_document(value)
    list(document_findings(kind, found.statements))
    assert found.statements or found.problems
    assert list(identity.shape_findings(found)) or not found.problems
    assert all(len(problem) < 300 for problem in found.problems)


@given(st.lists(st.sampled_from(["Action", "Effect", "Resource"]), unique=True), st.booleans())
def test_the_case_of_a_name_changes_no_judgement(lowered, allow):
    statement = {"Effect": "Allow" if allow else "Deny", "Action": "*", "Resource": "*"}
    other = {key.lower() if key in lowered else key: item for key, item in statement.items()}
    first, second = (read_document({"Statement": [item]}) for item in (statement, other))
    assert first == second


def test_a_document_of_many_actions_is_one_short_finding():
    document = {"Statement": {"Effect": "Allow", "Action": [f"s3:*{number}" for number in range(50_000)]}}
    (found,) = document_findings("identity", read_document(document).statements)
    assert found.message.endswith("and 49995 more is allowed")
    assert len(json.dumps(found.message)) < 200


TABLES = [
    iam_places.IDENTITY_DOCUMENTS, iam_places.RESOURCE_DOCUMENTS, iam_places.BUCKET_DOCUMENTS, iam_places.GRANTEES,
    iam_places.ATTACHMENTS, dict.fromkeys(iam_places.BUCKET_ACLS, "acl"),
    dict.fromkeys(instances.MACHINES, "metadataOptions"), dict.fromkeys(instances.MACHINES, "rootBlockDevice"),
    dict.fromkeys(limits.TAGGED, "tags"), dict.fromkeys(limits.TYPED, "instanceType"),
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_every_kind_in_a_table_is_one_of_the_sdk_with_that_property(table):
    for type_, prop in table.items():
        module, _, name = type_.removeprefix("aws:").partition("/")
        room = getattr(pulumi_aws, {"lambda": "lambda_"}.get(module, module))
        python = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in prop)
        assert hasattr(getattr(room, name.partition(":")[2]), python), (type_, prop)
