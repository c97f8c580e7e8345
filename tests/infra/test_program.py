"""The whole program, for every kind of stack: what holds for all its resources."""

import ast
import json
from collections.abc import Iterator
from datetime import date

import pulumi
import pytest

from engines.catalogue import load
from infra import program
from infra.manifest_review import Judged
from infra.object_layer import NAMESPACE
from infra.program_inputs import Inputs
from sources.environment import Environment
from tests.infra import manifest_folders
from tests.infra.built import built, the_program
from tests.infra.recording import record
from tests.infra.stacks import DEV, MIG, VARIANTS, config_of, stack

PROTECTED = frozenset({"Vpc", "Key", "Bucket", "LustreFileSystem", "Cluster", "Namespace"})
"""Types whose loss hurts; with a namespace go all engines in it."""
RETAINED = frozenset({"Bucket", "LustreFileSystem"})
KEYS = frozenset({"Key", "KeyPolicy"})
"""Kept beside what they encrypt."""


@pytest.fixture(params=sorted(VARIANTS))
def variant(request):
    return VARIANTS[request.param], built(VARIANTS[request.param])


def kind(resource):
    return resource.type.rsplit(":", 1)[-1]


def test_every_component_finishes_and_every_resource_has_one(variant):
    _, recording = variant
    components = {item.urn for item in recording.resources if not item.is_custom}
    assert components <= recording.finished
    for item in recording.resources:
        if item.is_custom and not item.type.startswith("pulumi:providers:") and kind(item) != "Namespace":
            assert item.parent in components, item.name


def test_every_resource_has_a_provider_of_ours(variant):
    _, recording = variant
    for item in recording.resources:
        package = item.type.split(":")[0]
        if item.is_custom and package in ("aws", "kubernetes"):
            assert f"pulumi:providers:{package}::enginehouse-" in item.provider, item.name


def test_what_hurts_to_lose_is_protected_but_in_dev(variant):
    config, recording = variant
    for item in recording.resources:
        if item.is_custom and kind(item) in PROTECTED:
            assert item.options.protect is (config.environment != "dev"), item.name
        if item.is_custom and kind(item) in RETAINED:
            assert item.options.retain_on_delete, item.name


def test_the_providers_carry_tags_region_and_mutable_config_maps(variant):
    config, recording = variant
    aws = recording.one("pulumi:providers:aws").inputs
    assert aws["region"] == config.region
    assert json.loads(aws["defaultTags"])["tags"] == {
        "environment": config.environment, "owner": "platform", "managed-by": "pulumi", "project": "enginehouse"
    }  # fmt: skip
    kubernetes = recording.one("pulumi:providers:kubernetes")
    assert kubernetes.inputs["enableConfigMapMutable"] == "true"
    assert kubernetes.inputs["enableServerSideApply"] == "true"
    access = {item.urn for item in recording.of("AccessPolicyAssociation")}
    assert access <= kubernetes.depends_on


def test_nodes_wait_for_what_they_need_and_later_add_ons_wait_for_nodes(variant):
    _, recording = variant
    early = {item.urn for item in recording.of("Addon") if "-node-add-ons-" in item.name}
    for group in recording.of("NodeGroup"):
        assert early <= group.depends_on, group.name
    system = recording.one("NodeGroup", next(x.name for x in recording.of("NodeGroup") if "-system-" in x.name))
    late = [item for item in recording.of("Addon") if "-node-add-ons-" not in item.name]
    assert late
    assert all(system.urn in item.depends_on for item in late)


def test_outputs_say_where_things_are_and_what_nodes_cost_and_hold_no_secret(variant):
    config, recording = variant
    outputs = recording.outputs
    assert recording.secret_outputs == frozenset()
    assert outputs["kubeconfig_command"] == (
        f"aws eks update-kubeconfig --region {config.region} --name enginehouse-{config.environment}"
    )
    assert outputs["weights_bucket"] == recording.one("Bucket").outputs["bucket"]
    assert (outputs.get("lustre") is not None) == (config.weights.kind == "lustre")
    if config.weights.kind == "lustre":
        assert outputs["lustre"]["mount_name"] == recording.one("LustreFileSystem").outputs["mountName"]
    for pool, cost in zip(config.pools, outputs["pool_costs"], strict=True):
        assert cost["pool"] == pool.name
        assert cost["usd_per_hour"] is None or cost["as_of"]
        assert cost["usd_per_hour"] is not None or cost["reason"]


def test_lustre_comes_with_its_volume_and_not_without(variant):
    config, recording = variant
    wanted = 1 if config.weights.kind == "lustre" else 0
    assert len(recording.of("LustreFileSystem")) == len(recording.of("PersistentVolumeClaim")) == wanted
    assert recording.one("Namespace").inputs["metadata"]["name"] == NAMESPACE


def test_names_of_roles_fit(variant):
    _, recording = variant
    for role in recording.of("Role"):
        assert len(role.name) + 8 <= 64, role.name  # a hyphen and seven digits are added


@pytest.mark.parametrize("name", ["dev", "prod"])  # without Lustre, and with all that there is
def test_a_preview_registers_the_same_resources(name):
    preview = built(VARIANTS[name], preview=True)
    assert [item.urn for item in preview.resources] == [item.urn for item in built(VARIANTS[name]).resources]


def test_a_pool_more_changes_no_resource_of_the_others():
    fewer = {item.urn: item for item in built(DEV.model_copy(update={"pools": DEV.pools[:1]})).resources}
    more = {item.urn: item for item in built(DEV).resources}
    assert fewer.keys() < more.keys()
    changed = {urn for urn, item in fewer.items() if item.inputs != more[urn].inputs}
    assert {kind(fewer[urn]) for urn in changed} <= {"Release"}  # a chart knows the pools that it serves


def test_a_registry_with_a_secret_gets_a_cache_and_nothing_else_changes():
    secret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:ecr-pullthroughcache/docker-AbCdEf"
    before = {item.urn for item in built(VARIANTS["dev"]).resources}
    found = built(DEV.model_copy(update={"pull_through_secrets": {"docker": secret}}))
    added = [item for item in found.resources if item.urn not in before]
    assert sorted(map(kind, added)) == ["PullThroughCacheRule", "RepositoryCreationTemplate"]
    (rule,) = (item.inputs for item in added if kind(item) == "PullThroughCacheRule")
    assert (rule["credentialArn"], rule["upstreamRegistryUrl"]) == (secret, "registry-1.docker.io")


def test_a_new_image_changes_its_node_group_alone():
    first = MIG.pools[0]
    image = first.image.model_copy(update={"release": "1.36.9-20300201"})  # invented
    bumped = MIG.model_copy(update={"pools": (first.model_copy(update={"image": image}), *MIG.pools[1:])})
    before = {item.urn: item.inputs for item in built(MIG).resources}
    after = {item.urn: item.inputs for item in built(bumped).resources}
    assert before.keys() == after.keys()
    (changed,) = [urn for urn in before if before[urn] != after[urn]]
    assert "NodeGroup" in changed
    assert {key for key in after[changed] if after[changed][key] != before[changed][key]} == {"releaseVersion"}


def test_manifests_of_the_folder_become_config_maps_and_their_pods_may_read_weights():
    pinned = manifest_folders.pin_of(manifest_folders.written())
    inputs = Inputs(Environment(), Judged((pinned,), (), ("runs, and now: news",)), load())
    recording = record(the_program(stack("prod"), inputs))
    found = recording.one("ConfigMap", "enginehouse-prod-manifests-chat")
    assert found.inputs["metadata"]["namespace"] == NAMESPACE
    assert ("warning", "runs, and now: news") in recording.messages
    association = recording.one("PodIdentityAssociation")
    assert association.inputs["serviceAccount"] == pinned.name
    layer = recording.by_urn(found.parent)
    assert recording.one("Namespace").urn in layer.depends_on


def test_the_program_runs_from_its_configuration(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setattr(program, "ROOT", tmp_path)  # no folder environments
    recording = record(program.run, config=config_of(DEV))
    assert recording.outputs["cluster_name"] == "enginehouse-dev"
    assert all(severity == "warning" for severity, _ in recording.messages)
    (text,) = (text for _, text in recording.messages if "pool" in text)  # the other one has a node to begin with
    assert text.startswith("the pool l4 stays empty: ")
    assert "give it min_nodes or desired_nodes" in text


@pytest.mark.parametrize(("kubernetes", "today", "told"), [
    ("1.36", date(2026, 11, 30), None),
    ("1.34", date(2026, 10, 2), None),
    ("1.34", date(2026, 10, 3), "ends on 2026-12-02: EKS then upgrades the cluster by itself"),
    ("1.34", date(2026, 12, 2), "ended on 2026-12-02"),
    ("1.36", date(2030, 1, 1), "ended on 2027-08-02"),
    ("1.99", date(2026, 11, 30), "how long EKS supports Kubernetes 1.99 is not known here"),
])  # fmt: skip
def test_one_warning_tells_that_the_support_of_kubernetes_is_over_soon_or_unknown(kubernetes, today, told):
    config = DEV.model_copy(update={"cluster": DEV.cluster.model_copy(update={"kubernetes": kubernetes})})
    found = [text for text in program.warnings_of(config, today) if text.startswith("cluster.kubernetes: ")]
    assert len(found) == (told is not None)
    assert (told or "") in "".join(found)


def test_what_outlives_a_stack_keeps_no_name_that_the_next_one_needs(variant):
    for item in variant[1].resources:
        if item.options.retain_on_delete:
            assert kind(item) in RETAINED or kind(item).startswith("Bucket") or kind(item) in KEYS, item.name
            assert "name" not in item.inputs, item.name
            assert kind(item) != "Bucket" or "bucket" not in item.inputs, item.name


def test_a_folder_that_cant_be_read_is_one_message(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    folder = tmp_path / "environments" / "dev"
    folder.mkdir(parents=True)
    (folder / "pools.yaml").write_text("pools: 3\n")

    def run():
        with pytest.raises(pulumi.RunError, match="1 mistake"):
            program.run()

    recording = record(run, config=config_of(DEV))
    assert recording.resources == ()
    ((_, text),) = recording.messages
    assert "pools.yaml" in text


FREE_KEYS = frozenset(
    {"tags", "labels", "annotations", "requests", "limits", "capacity", "volume_attributes", "data", "values",
     "match_labels", "node_selector", "spec", "string_data"}
)  # fmt: skip
"""Properties whose keys are the user's: the SDK has no class for them."""
SDK = ("pulumi_aws", "pulumi_kubernetes")


def dict_inputs(source: str) -> Iterator[str]:
    """Each dict that is written down where a call into the SDK takes an input."""
    tree = ast.parse(source)
    names = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        and (getattr(node, "module", None) or node.names[0].name).startswith(SDK)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _root(node.func) in names:
            for keyword in node.keywords:
                if keyword.arg not in FREE_KEYS and _holds_dict(keyword.value):
                    yield f"line {keyword.value.lineno}: {keyword.arg} is a dict; take the SDK's Args class"


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _holds_dict(node: ast.expr) -> bool:
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return any(isinstance(item, ast.Dict | ast.DictComp) or _is_dict_call(item) for item in items)


def _is_dict_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict"


def test_no_component_writes_a_dict_where_the_sdk_has_a_class(checkout):
    files = sorted((checkout / "infra").rglob("*.py"))
    assert files
    found = {path.name: list(dict_inputs(path.read_text(encoding="utf-8"))) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "call",
    ["eks.NodeGroup('n', scaling_config={'min_sizes': 0})", "ec2.LaunchTemplate('t', network_interfaces=[{'a': 1}])",
     "eks.Cluster('c', vpc_config=dict(subnet_ids=[]))"],
)  # fmt: skip
def test_a_planted_dict_is_found(call):
    assert len(list(dict_inputs(f"from pulumi_aws import ec2, eks\n{call}\n"))) == 1
    assert not list(dict_inputs("from pulumi_aws import ec2\nec2.Vpc('v', tags={'a': 'b'})\n"))


def test_an_admin_of_another_account_is_a_warning_and_more_so_where_there_is_no_other():
    own, foreign = DEV.cluster.admins[0], "arn:aws:iam::444455556666:role/platform"

    def told(*admins: str) -> list[str]:
        config = DEV.model_copy(update={"cluster": DEV.cluster.model_copy(update={"admins": admins})})
        return [text for text in program.warnings_of(config, date(2026, 11, 30)) if text.startswith("cluster.admins")]

    assert told(own) == []
    assert told(own, foreign) == [
        f"cluster.admins[1]: {foreign} is of the account 444455556666, and the stack's is 111122223333"
    ]
    assert [text.partition(": ")[0] for text in told(foreign)] == ["cluster.admins[0]", "cluster.admins"]


def test_mistakes_of_the_configuration_and_of_the_folder_are_told_together(monkeypatch, tmp_path):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yaml").write_text("default: {}\nenvironments: {prod: {}}\n", encoding="utf-8")
    (tmp_path / "Pulumi.prod.yaml").touch()
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    errors: list[str] = []
    monkeypatch.setattr(program.pulumi.log, "error", errors.append)
    with pytest.raises(pulumi.RunError, match="3 mistakes"):
        record(program.run, config=config_of(stack("mine", repositories=["prod/x"], owner=" ")))
    assert [text.partition(":")[0] for text in errors] == ["owner", "repositories", "environment"]
