"""The bucket of weights and who reads it."""

import json
from functools import cache

import pytest

from engines.catalogue import load
from fleet.cloud.data import BLOCKS, Bucket, bucket_findings, key_findings
from fleet.cloud.identity import document_findings, statements_of
from infra.weights_address import WeightsAddress, WeightsAddressArgs
from infra.weights_bucket import WeightsBucket, WeightsBucketArgs
from infra.weights_reader import ServiceAccountName, WeightsReader, WeightsReaderArgs
from tests.infra.recording import Recorded, Recording, record
from tests.workloads.invented import pinned
from workloads import NodeLocalWeights, RenderGround, render

ACCOUNTS = (ServiceAccountName("engines", "support-chat"), ServiceAccountName("engines", "code"))


@cache
def recorded(*, protect=True, accounts=ACCOUNTS) -> Recording:
    def program():
        made = WeightsBucket("weights", WeightsBucketArgs(region="eu-central-1", protect=protect))
        WeightsReader("reader", WeightsReaderArgs("cluster", made.read_policy.arn, accounts))

    return record(program)


def policy(resource: Recorded, field: str = "policy") -> dict:
    return json.loads(resource.inputs[field])


def test_the_bucket_has_no_finding():
    recording = recorded()
    blocks = recording.one("BucketPublicAccessBlock").inputs
    (rule,) = recording.one("BucketServerSideEncryptionConfiguration").inputs["rules"]
    named = {"block_public_acls": "blockPublicAcls", "block_public_policy": "blockPublicPolicy"} | {
        "ignore_public_acls": "ignorePublicAcls",
        "restrict_public_buckets": "restrictPublicBuckets",
    }
    bucket = Bucket(
        "weights",
        has_own_key=rule["applyServerSideEncryptionByDefault"]["kmsMasterKeyId"] == recording.one("Key").outputs["arn"],
        is_versioned=recording.one("BucketVersioning").inputs["versioningConfiguration"] == {"status": "Enabled"},
        blocks=frozenset(block for block in BLOCKS if blocks[named[block]]),
    )
    assert list(bucket_findings(bucket)) == []
    assert list(key_findings("key", rotates=recording.one("Key").inputs["enableKeyRotation"])) == []


def test_what_protects_the_bucket_outlives_the_stack_with_it():
    recording = recorded(protect=False)
    parts = ("Bucket", "BucketVersioning", "BucketPublicAccessBlock", "BucketPolicy", "Key", "KeyPolicy")
    assert all(recording.one(kind).options.retain_on_delete for kind in parts)
    assert recording.one("BucketServerSideEncryptionConfiguration").options.retain_on_delete
    assert recording.one("BucketLifecycleConfiguration").options.retain_on_delete


@pytest.mark.parametrize("protect", [True, False])
def test_the_bucket_and_its_key_are_protected_where_the_environment_says_so(protect):
    recording = recorded(protect=protect)
    assert recording.one("Bucket").options.protect is protect
    assert recording.one("Key").options.protect is protect
    assert recording.one("Bucket").inputs["forceDestroy"] is False


def test_old_versions_go_after_a_while_and_unfinished_uploads_too():
    (rule,) = recorded().one("BucketLifecycleConfiguration").inputs["rules"]
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": 90}
    assert rule["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}
    assert "expiration" not in rule


def test_plain_http_is_denied_to_everybody():
    (statement,) = policy(recorded().one("BucketPolicy"))["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_key_lets_fsx_read_this_bucket_of_this_account_through_s3_and_nobody_else():
    recording = recorded()
    own, fsx = policy(recording.one("KeyPolicy"))["Statement"]
    bucket = recording.one("Bucket").outputs["arn"]
    assert own["Principal"] == {"AWS": ["arn:aws:iam::111122223333:root"]}
    assert fsx["Condition"] == {
        "StringEquals": {"kms:ViaService": "s3.eu-central-1.amazonaws.com", "kms:CallerAccount": "111122223333"},
        "ArnLike": {
            "aws:PrincipalArn": "arn:*:iam::*:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/"
            "AWSServiceRoleForFSxS3Access_*"
        },
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]},
    }


def test_nothing_is_encrypted_with_the_key_before_its_policy_stands():
    recording = recorded()
    encrypted = recording.one("BucketServerSideEncryptionConfiguration")
    assert recording.one("KeyPolicy").urn in encrypted.depends_on


def test_pods_may_read_and_decrypt_and_nothing_else():
    recording = recorded()
    document = policy(recording.one("Policy"))
    actions = {action for statement in document["Statement"] for action in statement["Action"]}
    assert actions == {
        "s3:ListBucket", "s3:GetBucketLocation", "s3:GetObject", "s3:GetObjectVersion", "kms:Decrypt",
    }  # fmt: skip
    assert "*" not in {name for statement in document["Statement"] for name in statement["Resource"]}


def test_no_document_breaks_a_rule_of_identity():
    recording = recorded()
    role = recording.one("Role")
    for kind, document in (
        ("identity", policy(recording.one("Policy"))),
        ("resource", policy(recording.one("BucketPolicy"))),
        ("resource", policy(recording.one("KeyPolicy"))),
        ("trust", policy(role, "assumeRolePolicy")),
    ):
        assert list(document_findings(kind, statements_of(document))) == []


def test_each_service_account_gets_the_role_once_and_only_when_it_may_read():
    recording = recorded(accounts=(*ACCOUNTS, ACCOUNTS[0]))
    associations = recording.of("PodIdentityAssociation")
    named = [(item.inputs["namespace"], item.inputs["serviceAccount"]) for item in associations]
    assert named == [("engines", "code"), ("engines", "support-chat")]
    attached = recording.one("RolePolicyAttachment")
    assert all(attached.urn in item.depends_on for item in associations)
    assert attached.inputs["policyArn"] == recording.one("Policy").outputs["arn"]


def test_pods_find_the_bucket_where_their_objects_look_for_it():
    recording = record(lambda: WeightsAddress("w", WeightsAddressArgs("the-bucket", "eu-central-1", "inference")))
    found = recording.one("ConfigMap").inputs
    rendered = render(pinned(), load(), RenderGround(weights=NodeLocalWeights()))
    (deployment,) = (item for item in rendered if item["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    wanted = [item["valueFrom"]["configMapKeyRef"] for item in container["env"] if "valueFrom" in item]
    assert {item["name"] for item in wanted} == {found["metadata"]["name"]}
    assert found["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert {item["key"] for item in wanted} == set(found["data"])
    assert found["data"] == {"bucket": "the-bucket", "region": "eu-central-1"}
