"""Policies on the whole stack see inputs first: what people set and left out, whatever the cloud makes of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, StackValidationPolicy
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy

from policies import pack
from policies.decode_once import DecodedOnce
from policies.inputs_first import CHOSEN_BY_PEOPLE, LEFT_OUT, seen_props
from policies.knowledge import ground_of
from policies.reading import plain
from tests.infra.stacks import PROD
from tests.policies import faults_of_ground, faults_of_nodes
from tests.policies.answers import answered
from tests.policies.edited import Program, program
from tests.policies.fault import all_of, drop
from tests.policies.faults_of_ground import FILE_SYSTEM
from tests.policies.faults_of_nodes import H100, L4
from tests.policies.faults_of_workloads import deployed, scaled
from tests.policies.pack_server import PACK, requests, stack_resources
from tests.policies.test_planted_faults import NEEDS_IDS
from tests.policies.unknown_places import SEEN_AT_UPDATE

CLUSTER, GROUP = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
ON_STACKS = {rule.id for check in pack.CHECKS if getattr(check, "relates", True) for rule in check.rules} - NEEDS_IDS
FAULTS = [
    fault
    for fault in (*faults_of_nodes.FAULTS, *faults_of_ground.FAULTS)
    if fault.variant == "prod" and fault.policy in ON_STACKS
]
LEFT_OUT_FAULTS = {
    "ami-release-unpinned": drop(L4, "releaseVersion"),
    "ami-without-driver": drop(L4, "amiType"),
    "node-repair": drop(L4, "nodeRepairConfig"),
    "update-strategy": drop(H100, "updateConfig"),
    "capacity-block-market": drop(H100, "capacityType"),
    "instance-type-places": drop("NodeGroup system-nodes", "instanceTypes"),
    "data-without-own-key": drop(FILE_SYSTEM, "kmsKeyId"),
}
"""Policy -> what somebody leaves out and the cloud fills in."""
COMPUTED = {
    "ami-release-unpinned": (L4, "releaseVersion"),
    "instance-type-places": (L4, "instanceTypes"),
    "capacity-block-target": (H100, "capacityType"),
    "lustre-ports": (FILE_SYSTEM, "efaEnabled"),
    "bucket-public": ("Bucket weights-bucket", "acl"),
}
"""Policy -> a property that another resource computes."""


@pytest.fixture(scope="module")
def policies():
    stack = json.dumps({"enginehouse:stack": PROD.model_dump_json(exclude_none=True)})
    environ = {"PULUMI_STACK": "prod", "PULUMI_CONFIG": stack}
    ground = ground_of(environ, root=Path("nowhere"), policy=PACK / "policy.yaml", today=lambda: pytest.fail("asked"))
    return [item for item in pack.policies(ground) if isinstance(item, StackValidationPolicy)]


@pytest.fixture
def server(policies):
    return DecodedOnce("pack", "1", policies, EnforcementLevel.MANDATORY)


def show_inputs(server, resources) -> None:
    for request in requests(resources):
        server.Analyze(request, None)


def judged(server, resources) -> tuple[set[str], set[str]]:
    """The policies that refuse something on the whole stack, and those that leave something to the update."""
    request = analyzer_pb2.AnalyzeStackRequest(resources=stack_resources(resources))
    said = [
        (item.policyName, "not judged yet" in item.message) for item in server.AnalyzeStack(request, None).diagnostics
    ]
    return {name for name, pending in said if not pending}, {name for name, pending in said if pending}


def reviewed(server, changed: Program, *, preview: bool) -> tuple[set[str], set[str]]:
    """What the pack says about an operation, from the inputs to the whole."""
    resources = answered(changed.resources, preview=preview)
    show_inputs(server, resources)
    return judged(server, resources)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_first_preview_refuses_whatever_a_policy_on_the_stack_can_refuse(server, fault):
    changed = program(preview=True)
    fault.change(changed)
    refused, pending = reviewed(server, changed, preview=True)
    assert pending <= SEEN_AT_UPDATE
    assert refused - pending == {fault.policy} - pending


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "update"])
@pytest.mark.parametrize("policy", LEFT_OUT_FAULTS)
def test_what_somebody_left_out_is_refused_whatever_the_cloud_fills_in(server, policy, preview):
    changed = program(preview=preview)
    LEFT_OUT_FAULTS[policy](changed)
    refused, _ = reviewed(server, changed, preview=preview)
    assert refused == {policy}


def test_a_clean_update_has_no_violation_and_leaves_nothing_unjudged(server):
    assert reviewed(server, program(), preview=False) == (set(), set())


@pytest.mark.parametrize("policy", COMPUTED)
def test_a_value_that_another_resource_computes_is_not_judged_yet(server, policy):
    changed = program(preview=True)
    name, path = COMPUTED[policy]
    changed.put(name, path, UNKNOWN_STRING_VALUE)
    refused, pending = reviewed(server, changed, preview=True)
    assert policy in pending
    assert refused == set()


def test_an_answer_of_the_cloud_counts_where_absence_has_a_meaning_of_its_own_only_until_then(server):
    changed = program()
    drop(L4, "amiType")(changed)
    resources = answered(changed.resources, preview=False)
    with_drivers = [
        replace(item, outputs={**item.outputs, "amiType": "AL2023_x86_64_NVIDIA"}) if item.type == GROUP else item
        for item in resources
    ]
    show_inputs(server, with_drivers)
    assert judged(server, with_drivers) == (set(), set())


def test_a_resource_whose_inputs_were_not_shown_is_seen_by_its_outputs(server):
    changed = program()
    drop(L4, "releaseVersion")(changed)
    resources = answered(changed.resources, preview=False)
    show_inputs(server, [item for item in resources if item.type != GROUP])
    assert "ami-release-unpinned" not in judged(server, resources)[0]
    show_inputs(server, resources)
    assert "ami-release-unpinned" in judged(server, resources)[0]


def test_the_last_inputs_of_a_resource_count_and_those_of_a_deleted_one_do_not(server):
    faulty = program()
    drop(L4, "releaseVersion")(faulty)
    gone = program()
    gone.add(GROUP, "gone", {"clusterName": "c"})
    show_inputs(server, [*faulty.resources, *gone.changed])
    show_inputs(server, program().resources)
    assert judged(server, program().resources) == (set(), set())


@pytest.mark.parametrize("begin", ["ConfigureStack", "Configure", "AnalyzeStack"])
def test_another_operation_begins_without_the_inputs_of_the_last_one(server, begin):
    faulty = program()
    drop(L4, "releaseVersion")(faulty)
    show_inputs(server, faulty.resources)
    request = {
        "ConfigureStack": analyzer_pb2.AnalyzerStackConfigureRequest(),
        "Configure": analyzer_pb2.ConfigureAnalyzerRequest(),
        "AnalyzeStack": analyzer_pb2.AnalyzeStackRequest(),
    }[begin]
    getattr(server, begin)(request, None)
    assert judged(server, program().resources) == (set(), set())


def test_what_the_api_server_adds_to_an_object_is_nobody_s_choice(server):
    changed = program()
    all_of(deployed, scaled)(changed)
    objects = [
        replace(item, outputs={**item.outputs, "spec": {**item.outputs["spec"], "replicas": 1}})
        if item.type.endswith(":Deployment")
        else item
        for item in changed.resources
    ]
    show_inputs(server, objects)
    assert judged(server, objects) == (set(), set())
    assert judged(server, objects) == ({"replicas-one-owner"}, set())  # outputs alone can't tell


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "part"])
def test_what_the_cloud_adds_to_an_object_of_the_inputs_stays_unknown(server, whole):
    resources = []
    for item in answered(program(preview=True).resources, preview=True):
        if item.type == CLUSTER:
            part = {**item.outputs["vpcConfig"], "clusterSecurityGroupId": UNKNOWN_STRING_VALUE}
            item = replace(item, outputs={**item.outputs, "vpcConfig": UNKNOWN_STRING_VALUE if whole else part})
        resources.append(item)
    show_inputs(server, resources)
    refused, pending = judged(server, resources)
    assert "cluster-security-group-missing" in pending
    assert refused == set()


VALUES = st.one_of(st.integers(0, 9), st.text("ab", max_size=2), st.just(UNKNOWN_STRING_VALUE))
KEYS = st.sampled_from(["amiType", "releaseVersion", "labels", "version", "other"])
PROPERTIES = st.dictionaries(KEYS, VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(KEYS, VALUES, max_size=3))


def read(props, *path):
    """What stands at a path: the value, what stands for an unknown one, or ``None``."""
    try:
        for key in path:
            props = props.get(key)
        return plain(props)
    except UnknownValueError:
        return UNKNOWN_STRING_VALUE


def is_left_out(key: str, value: object) -> bool:
    return key in CHOSEN_BY_PEOPLE[GROUP] or (key in LEFT_OUT[GROUP] and value == UNKNOWN_STRING_VALUE)


@given(PROPERTIES, PROPERTIES)
def test_inputs_come_first_and_outputs_behind_them(inputs, outputs):
    seen = seen_props(GROUP, *map(unknown_checking_proxy, (inputs, outputs)))
    assert len(list(seen)) == len(seen) == len(set(seen))
    for key, value in inputs.items():
        for path, found in (
            [((key, part), value[part]) for part in value] if isinstance(value, dict) else [((key,), value)]
        ):
            assert read(seen, *path) == read(unknown_checking_proxy({"it": found}), "it")
    for key in outputs.keys() - inputs.keys():
        assert (key in set(seen)) != is_left_out(key, outputs[key])
        if key in set(seen):
            assert read(seen, key) == read(unknown_checking_proxy(outputs), key)


@given(KEYS, st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES) | st.just(UNKNOWN_STRING_VALUE), KEYS)
def test_what_an_object_of_the_inputs_does_not_set_is_the_cloud_s_answer(key, inputs, outputs, part):
    seen = seen_props(GROUP, *map(unknown_checking_proxy, ({key: inputs}, {key: outputs})))
    if part not in inputs:
        answer = outputs.get(part) if isinstance(outputs, dict) else outputs
        assert read(seen, key, part) == (None if is_left_out(key, answer) else answer)
