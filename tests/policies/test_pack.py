"""What the pack says about itself, how its configuration counts, and how it starts and ends."""

import os
import sys
from pathlib import Path

import pytest
from pulumi.runtime.proto import analyzer_pb2

from fleet.cloud import registry
from policies import pack
from sources import policy_file
from tests.policies.edited import program
from tests.policies.faults_of_workloads import served
from tests.policies.pack_server import PACK, PackFailed, pack_server
from tests.policies.test_planted_faults import FAULTS

ROOMS = {"cli", "control_plane", "engines", "fleet", "gateway", "infra", "local", "simulator", "sources", "workloads"}
JUDGED_APART = {"region-allowed", "instance-type-allowed", "image-registry-allowed", "cost-limit", "cuda-driver"}
"""Policies whose faults need another configuration: this file and test_manifest_policies.py have them."""
LIMITS = {
    "region-allowed": {"regions": ["eu-west-1"]},
    "instance-type-allowed": {"instance_types": ["g6.*", "m7i.xlarge"]},
    "cost-limit": {"max_usd_per_hour": 1.5},
}


def test_every_rule_of_the_cloud_is_one_policy_or_has_a_reason_for_none(pack_of):
    names = [policy.name for policy in pack_of("prod").info().policies]
    assert len(names) == len(set(names))
    assert set(names) | set(pack.WITHOUT_POLICY) == {rule.id for rule in registry.RULES}
    assert not set(names) & set(pack.WITHOUT_POLICY)


def test_every_policy_has_a_planted_fault(pack_of):
    names = {policy.name for policy in pack_of("prod").info().policies}
    assert names == {fault.policy for fault in FAULTS} | JUDGED_APART | {"manifest-advised"}


def test_every_policy_says_severity_remedy_and_where_it_is_described(pack_of, checkout):
    page = (checkout / pack.DOCS).read_text(encoding="utf-8")
    for policy in pack_of("prod").info().policies:
        rule = registry.BY_ID[policy.name]
        assert analyzer_pb2.PolicySeverity.Name(policy.severity) == f"POLICY_SEVERITY_{rule.grade.name}"
        assert policy.remediation_steps == rule.remedy
        assert policy.description == f"{rule.what}."
        assert policy.url == f"{pack.DOCS}#{policy.name}"
        assert f"\n### {policy.name}\n" in page


def test_what_a_broken_policy_does_follows_from_its_grade_and_the_environment(pack_of):
    levels = {
        variant: {policy.name: policy.enforcementLevel for policy in pack_of(variant).info().policies}
        for variant in ("dev", "prod")
    }
    assert levels["dev"]["node-repair"] == analyzer_pb2.ADVISORY  # low
    assert levels["prod"]["node-repair"] == analyzer_pb2.MANDATORY
    assert levels["dev"]["gpu-taint"] == analyzer_pb2.ADVISORY  # medium
    assert levels["dev"]["capacity-block-target"] == analyzer_pb2.MANDATORY  # critical
    assert {level["tags-present"] for level in levels.values()} == {analyzer_pb2.REMEDIATE}


def test_the_limits_of_the_policy_file_are_the_first_configuration(pack_of, checkout):
    book = policy_file.read(checkout / "policies" / "policy.yaml")
    dev = pack_of("dev").info()
    assert dev.initialConfig["cost-limit"].properties["max_usd_per_hour"] == book.platform_for("dev").max_usd_per_hour
    assert "cost-limit" not in pack_of("prod").info().initialConfig
    schemas = {policy.name: policy.configSchema for policy in dev.policies if policy.configSchema.properties}
    assert set(schemas) == {
        "region-allowed",
        "instance-type-allowed",
        "image-registry-allowed",
        "cost-limit",
        "tags-present",
    }
    assert schemas["cost-limit"].properties["max_usd_per_hour"]["type"] == "number"


@pytest.mark.parametrize("policy", LIMITS)
def test_a_limit_that_is_configured_counts(pack_of, policy):
    server = pack_of("prod")
    server.configure({policy: LIMITS[policy]})
    try:
        said = server.review(program().resources)
    finally:
        server.configure()
    assert {item.policy for item in said} == {policy}


def test_an_image_of_another_registry_is_refused(pack_of):
    changed = program()
    served(changed)
    server = pack_of("prod")
    server.configure({"image-registry-allowed": {"image_registries": ["*.amazonaws.com"]}})
    try:
        said = server.review_each(changed.changed, among=changed.resources)
    finally:
        server.configure()
    assert {(item.policy, item.urn.rpartition("::")[2]) for item in said} == {
        ("image-registry-allowed", "chat"),
        ("image-registry-allowed", "manifest-chat"),
    }


def test_a_policy_that_is_made_advisory_warns(pack_of):
    changed = program()
    changed.put("Key logs-key", "enableKeyRotation", False)
    server = pack_of("prod")
    server.configure(levels={"key-rotation": "advisory"})
    try:
        said = server.review_each(changed.changed, among=changed.resources)
    finally:
        server.configure()
    assert [(item.policy, item.level) for item in said] == [("key-rotation", "advisory")]


def test_missing_tags_are_added_as_far_as_they_are_known(pack_of):
    vpc = next(item for item in program().resources if item.type == "aws:ec2/vpc:Vpc")
    remedies = pack_of("prod").remedies(vpc)
    assert set(remedies) == {"tags-present"}
    assert dict(remedies["tags-present"]["tags"]) == {"Name": "enginehouse-prod-network", "environment": "prod"}
    subnet = next(item for item in program().resources if item.type == "aws:ec2/subnet:Subnet")
    assert pack_of("prod").remedies(subnet) == {}


def test_a_rule_that_there_is_not_fails_the_preview(pack_checkout, tmp_path):
    for name in ("__main__.py", "policy.yaml"):
        text = (pack_checkout / "policies" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(
            text.replace("tags-present: remediate", "tag-present: remediate"), encoding="utf-8"
        )
    wanted = "no rule of the platform is called 'tag-present'; did you mean 'tags-present'"
    with pytest.raises(PackFailed, match=wanted), pack_server("prod", pack=tmp_path):
        pass


def test_the_environment_may_come_from_the_stack_s_name_alone():
    with pack_server("organization/enginehouse/prod") as server:
        assert server.info().name == "enginehouse"
        os.kill(server.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_no_file_of_the_pack_hides_a_room_or_a_module_of_the_standard_library():
    names = {path.stem for path in PACK.glob("*.py")} - {"__main__", "__init__"}
    assert not names & (ROOMS | set(sys.stdlib_module_names))


def test_only_the_program_of_the_pack_builds_it():
    builders = [path.name for path in PACK.glob("*.py") if "PolicyPack(" in path.read_text(encoding="utf-8")]
    assert builders == ["__main__.py"]
    assert "policy_pack" not in Path(pack.__file__).read_text(encoding="utf-8")
