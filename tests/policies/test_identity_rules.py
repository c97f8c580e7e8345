"""IAM documents, roles, access and doors, as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud import identity, limits
from fleet.cloud.iam_document import Statement
from fleet.cloud.identity import ClusterAccess, ServiceDoor, document_findings, statements_of

ROOT = "arn:aws:iam::111122223333:root"


def rules(kind, *statements):
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return [finding.rule.id for finding in document_findings(kind, statements_of(document))]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ({"Action": "s3:GetObject", "Resource": "arn:aws:s3:::x/*"}, []),
        ({"Action": "s3:Get*", "Resource": "arn:aws:s3:::x/*"}, []),
        ({"Action": "*", "Resource": "*"}, ["iam-action-wildcard"]),
        ({"Action": ["s3:*"], "Resource": ["arn:aws:s3:::x"]}, ["iam-action-wildcard"]),
        ({"Action": "s3:PutObject", "Resource": "*"}, ["iam-resource-wildcard"]),
        ({"Action": "secretsmanager:GetSecretValue", "Resource": "*"}, ["iam-resource-wildcard"]),
        ({"Action": "ec2:DescribeInstances", "Resource": "*"}, []),
        ({"Action": "ecr:GetAuthorizationToken", "Resource": "*"}, []),
        ({"Action": "ec2:RunInstances", "Resource": "*", "Condition": {"StringEquals": {"aws:RequestTag/a": "b"}}}, []),
        ({"NotAction": "iam:*", "Resource": "arn:aws:s3:::x"}, ["iam-action-wildcard"]),
        ({"Action": "s3:PutObject", "NotResource": "arn:aws:s3:::x"}, ["iam-resource-wildcard"]),
    ],
)
def test_an_identity_s_document(statement, expected):
    assert rules("identity", {"Effect": "Allow", **statement}) == expected
    assert rules("identity", {"Effect": "Deny", **statement}) == []


def test_in_the_policy_of_a_key_the_resource_is_the_key():
    assert rules("resource", {"Effect": "Allow", "Principal": {"AWS": ROOT}, "Action": "kms:*", "Resource": "*"}) == []
    everyone = {"Effect": "Allow", "Principal": "*", "Action": "kms:Decrypt", "Resource": "*"}
    assert rules("resource", everyone) == ["iam-trust-everyone"]
    assert rules("resource", {**everyone, "Condition": {"StringEquals": {"kms:CallerAccount": "111122223333"}}}) == []


def test_a_web_identity_needs_its_subject():
    trust = {"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity", "Principal": {"Federated": "arn:aws:iam::x"}}
    assert rules("trust", trust) == ["iam-trust-everyone"]
    audience = {"StringEquals": {"issuer:aud": "sts.amazonaws.com"}}
    assert rules("trust", {**trust, "Condition": audience}) == ["iam-trust-everyone"]
    assert rules("trust", {**trust, "Condition": {"StringEquals": {"issuer:sub": "system:serviceaccount:a:b"}}}) == []


def test_pod_identity_needs_both_actions_wherever_they_stand():
    def trust(action):
        return {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": action}

    assert rules("trust", trust("sts:AssumeRole")) == ["pod-identity-trust"]
    assert rules("trust", trust("sts:TagSession")) == ["pod-identity-trust"]
    assert rules("trust", trust("sts:AssumeRole"), trust("sts:TagSession")) == []
    assert rules("trust", {**trust("sts:AssumeRole"), "Principal": {"Service": "ec2.amazonaws.com"}}) == []


@given(st.lists(st.sampled_from(["s3:GetObject", "ec2:Describe*", "*", "iam:*"]), min_size=1))
def test_one_more_action_never_takes_a_finding_away(actions):
    alone = set(rules("identity", {"Effect": "Allow", "Action": actions[:1], "Resource": "arn:aws:x"}))
    assert alone <= set(rules("identity", {"Effect": "Allow", "Action": actions, "Resource": "arn:aws:x"}))


def test_a_statement_is_named_by_its_actions():
    assert Statement(actions=("a:B", "a:C", "a:D", "a:E")).name == "a:B, a:C, a:D, ..."


def test_roles_access_and_doors():
    assert [found.rule.id for found in identity.role_findings("role_arn", "node")] == ["role-arn"]
    assert not list(identity.role_findings("role_arn", "arn:aws-us-gov:iam::111122223333:role/path/node"))
    assert len(list(identity.access_findings(ClusterAccess()))) == 2
    assert not list(identity.access_findings(ClusterAccess("API", creator_is_admin=False)))
    assert not list(identity.door_findings(ServiceDoor("gateway", "Service", "internet")))
    assert not list(identity.door_findings(ServiceDoor("control-plane", "Service", "network")))
    assert list(identity.door_findings(ServiceDoor("control-plane", "Ingress", "internet")))


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("vllm/vllm-openai:v1", "docker.io"),
        ("nginx", "docker.io"),
        ("registry.k8s.io/kueue/kueue@sha256:0", "registry.k8s.io"),
        ("localhost/x", "localhost"),
        ("host:5000/x:1", "host:5000"),
    ],
)
def test_the_registry_of_an_image(image, registry):
    assert limits.registry_of(image) == registry
    assert not list(limits.registry_findings(image, [registry]))
    assert not list(limits.registry_findings(image, []))
    assert list(limits.registry_findings(image, ["elsewhere.example.org"]))


def test_limits_allow_families_and_all_below_a_name():
    assert not list(limits.instance_type_findings("p5.48xlarge", ["p5.*"]))
    assert list(limits.instance_type_findings("p5en.48xlarge", ["p5.*"]))
    assert not list(limits.registry_findings("a.example.org/x", ["*.example.org"]))
    (found,) = limits.cost_findings({"a": 10.0, "b": 30.0}, 39.99)
    assert found.message == (
        "all node groups at their largest cost 40.00 USD an hour, the limit is 39.99; the dearest is b with 30.00"
    )
    assert not list(limits.cost_findings({"a": 10.0}, None))
    (tags,) = limits.tag_findings({"owner": ""}, ["owner", "environment"])
    assert tags.message == "no tag owner, environment"
