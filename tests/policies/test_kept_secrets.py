"""No message of any policy shows a secret: planted ones are looked for in everything that the pack says."""

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY

from fleet.cloud import registry
from policies import pack
from policies.decode_once import DecodedOnce
from policies.knowledge import ground_of
from policies.secrecy import Unsaid
from tests.infra.sdk_shapes import UNKNOWN
from tests.infra.stacks import VARIANTS
from tests.policies.edited import program
from tests.policies.fault import add, all_of, put
from tests.policies.faults_of_kinds import holding, listed, template
from tests.policies.faults_of_nodes import L4, L4_TEMPLATE
from tests.policies.faults_of_workloads import DEPLOYMENT, deployed
from tests.policies.pack_server import PACK, _struct, requests, stack_resources
from tests.policies.test_planted_faults import FAULTS
from tests.policies.unknown_places import PLACES

PLANTED = "hunter2-Is.the;Word"
NUMBER = 876543219
KEY = f"HF_TOKEN={PLANTED}"
LONG = 8
"""Characters of a text that is looked for wherever it stands."""


@pytest.fixture(scope="module")
def server():
    stack = VARIANTS["prod"].model_dump(mode="json", exclude_none=True)
    told = {"PULUMI_STACK": "prod", "PULUMI_CONFIG": json.dumps({"enginehouse:stack": json.dumps(stack)})}
    ground = ground_of(told, root=Path("nowhere"), policy=PACK / "policy.yaml", today=lambda: date(2030, 1, 1))
    return DecodedOnce("pack", "1", pack.policies(ground), EnforcementLevel.ADVISORY)


def said(server, changed, mark=lambda value: value, *, among=None):
    """Everything that the pack says of what was changed, with marks of the engine put in, and of a whole stack."""
    touched = changed.changed
    resources = stack_resources(changed.resources if among is None else among)
    asked = list(requests(touched))
    for item in (*asked, *(item for item in resources if item.urn in {one.urn for one in touched})):
        item.properties.CopyFrom(_struct({key: mark(value) for key, value in _plain(item.properties).items()}))
    found = [said for item in asked for said in server.Analyze(item, None).diagnostics]
    return [*found, *server.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=resources), None).diagnostics]


def _plain(struct):
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value):
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _plain(value.struct_value)
    return [_value(item) for item in value.list_value.values] if kind == "list_value" else getattr(value, kind)


def marked(value):
    """As the engine sends a secret."""
    return {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": value}


def everywhere(value, change):
    """A value with its last values changed."""
    if isinstance(value, dict):
        return {key: everywhere(item, change) for key, item in value.items()}
    return [everywhere(item, change) for item in value] if isinstance(value, list) else change(value)


def put_for(one, planted):
    """What is planted, in place of what is not known."""
    return marked(planted) if one == UNKNOWN else one


@pytest.mark.parametrize("policy", PLACES)
@pytest.mark.parametrize("planted", [PLANTED, [[PLANTED, {"x": NUMBER}]]], ids=["text", "list"])
def test_what_decides_a_policy_is_not_shown_where_the_engine_marks_it_as_secret(server, policy, planted):
    changed = program()
    PLACES[policy](changed)
    found = said(server, changed, lambda value: everywhere(value, lambda one: put_for(one, planted)))
    shown = [item.message for item in found if PLANTED in item.message or str(NUMBER) in item.message]
    assert shown == []


@pytest.mark.parametrize("fault", list({fault.policy: fault for fault in FAULTS}.values()), ids=str)
def test_a_mistake_in_secrets_is_found_and_told_without_them(server, fault):
    changed = program(fault.variant)
    fault.change(changed)
    values = set()

    def kept(value):
        values.add(str(value))
        return marked(value)

    found = said(server, changed, lambda value: everywhere(value, kept))
    assert fault.policy in {item.policyName for item in found}
    for item in found:
        rule = registry.BY_ID[item.policyName]
        known = " ".join([rule.what, rule.remedy, *(resource.urn for resource in changed.resources)])
        shown = [text for text in values if len(text) >= LONG and text in item.message and text not in known]
        assert not shown, (shown, item.message)


HEAD = {"name": "one", "namespace": "inference"}
POD = {"containers": [{"name": "one", "image": PLANTED, "env": PLANTED, "resources": PLANTED}]}
HELD = [PLANTED, [PLANTED], {"a": PLANTED}, {"a": {"b": [PLANTED]}}, POD, {"replicas": PLANTED, "spec": POD}]
SHAPES = {
    "a Secret": lambda held: add("kubernetes:core/v1:Secret", "one", {"metadata": HEAD, **held}),
    "a patch": lambda held: add("kubernetes:core/v1:SecretPatch", "one", {"metadata": HEAD, **held}),
    "a list": lambda held: listed("core/v1:SecretList", {"metadata": HEAD, **held}),
    "a List": lambda held: listed("core/v1:List", {"kind": "Secret", "metadata": HEAD, **held}),
    "a group": lambda held: add("kubernetes:yaml/v2:ConfigGroup", "one", {"objs": [{"kind": "Secret", **held}]}),
    "a part": lambda held: holding("acme.invalid/v1:Sealed", {"template": {"kind": "Secret", **held}}),
}


@pytest.mark.parametrize("key", ["data", "stringData"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_that_stands_in_a_secret_reaches_a_policy(server, shape, key):
    for held in HELD:
        changed = program()
        SHAPES[shape]({key: held})(changed)
        assert said(server, changed, among=changed.changed) == []
        assert said(server, changed, marked, among=changed.changed) == []


CONTAINER = "spec.template.spec.containers.0"
WRONG = [PLANTED, KEY, [KEY], {"HF_TOKEN": PLANTED}, [{"name": "HF_TOKEN", "value": {"a": PLANTED}}], [[PLANTED]]]
WRITTEN = {
    **{f"{key} of a container": lambda value, key=key: all_of(deployed, put(DEPLOYMENT, f"{CONTAINER}.{key}", value))
       for key in ("env", "envFrom", "args", "command")},
    "containers": lambda value: all_of(deployed, put(DEPLOYMENT, "spec.template.spec.containers", value)),
    "a pod": lambda value: all_of(deployed, put(DEPLOYMENT, "spec.template.spec", value)),
    "a ConfigMap": lambda value: add("kubernetes:core/v1:ConfigMap", "one", {"metadata": HEAD, "data": value}),
    "labels": lambda value: add("kubernetes:core/v1:ConfigMap", "one", {"metadata": {**HEAD, "labels": value}}),
    "a node pool": lambda value: holding("karpenter.sh/v1:NodePool", template({}, requirements=value)),
    "members": lambda value: add("kubernetes:apps/v1:DeploymentList", "one", {"items": value}),
    "doors": lambda value: add("kubernetes:core/v1:ServiceList", "one", {"items": value}),
    "values": lambda value: add("kubernetes:helm.sh/v3:Release", "one", {
        "chart": "nvidia-device-plugin", "values": {"config": {"map": value}, "nodeSelector": value}}),
}  # fmt: skip


@pytest.mark.parametrize("place", WRITTEN)
def test_a_wrongly_typed_variable_or_argument_is_not_shown(server, place):
    for value in WRONG:
        changed = program()
        WRITTEN[place](value)(changed)
        among = None if place == "values" else changed.changed
        assert [item.message for item in said(server, changed, among=among) if PLANTED in item.message] == []


def test_what_is_not_secret_is_told_beside_a_secret_and_a_common_word_hides_nothing(server):
    changed = program()
    put(L4_TEMPLATE, "metadataOptions.httpPutResponseHopLimit", "three")(changed)
    put(L4, "tags", {"a": "prod", "b": json.dumps({"words": ["whole", "number", "l4", "us-east-1"]})})(changed)
    found = said(server, changed, lambda value: marked(value) if value == changed.get(L4, "tags") else value)
    (own,) = [item.message for item in found if item.policyName == "metadata-hop-limit"]
    assert "'metadataOptions.httpPutResponseHopLimit' is 'three'" in own


def test_a_remedy_keeps_what_is_marked_as_secret(server):
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["tags-present"].enforcementLevel = analyzer_pb2.REMEDIATE
    request.policyConfig["tags-present"].properties.update({"required_tags": ["environment"]})
    server.Configure(request, None)
    added = {"environment": "prod"}
    for tags, right in (
        (None, added),
        ({"a": marked(PLANTED)}, {"a": marked(PLANTED), **added}),
        (marked({"a": PLANTED}), marked({"a": PLANTED, **added})),
    ):
        props = _struct({"password": marked(PLANTED), **({"tags": tags} if tags else {})})
        asked = analyzer_pb2.AnalyzeRequest(type="aws:rds/instance:Instance", name="x", urn="x", properties=props)
        (put_right,) = server.Remediate(asked, None).remediations
        assert _plain(put_right.properties) == {"password": marked(PLANTED), "tags": right}
    server.Configure(analyzer_pb2.ConfigureAnalyzerRequest(), None)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)


@given(TEXTS | st.integers(), st.sampled_from(["", "it is ", "('"]), st.sampled_from(["", " GiB", "',"]))
def test_a_marked_value_is_recognised_however_it_is_written_out(value, before, after):
    unsaid = Unsaid()
    unsaid.learn("x:y:Z", _struct({"a": [{"b": marked(value)}], "c": "open"}))
    for written in (str(value), str(value).strip(), repr(value), json.dumps(value)):
        assert unsaid.is_in(f"{before}{written}{after}") or str(value).strip().casefold() in ("", "open")
    unsaid.forget()
    assert not unsaid.is_in(f"{before}{value}{after}")
