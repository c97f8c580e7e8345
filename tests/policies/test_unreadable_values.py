"""A value that none of its kind is: one mandatory diagnostic of each policy that needs it, and the others go on."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel

from policies import pack, reading
from policies.decode_once import DecodedOnce
from policies.knowledge import ground_of
from policies.telling import LONGEST, MOST, Capped, capped
from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.edited import program
from tests.policies.fault import add, all_of, chart, drop, put
from tests.policies.faults_of_nodes import H100, H100_TEMPLATE, L4, L4_TEMPLATE
from tests.policies.faults_of_workloads import DEPLOYMENT, deployed, scaled
from tests.policies.pack_server import PACK, requests, stack_resources

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def server():
    ground = ground_of(
        {"PULUMI_STACK": "dev"}, root=Path("nowhere"), policy=PACK / "policy.yaml", today=lambda: pytest.fail("asked")
    )
    return DecodedOnce("pack", "1", pack.policies(ground), EnforcementLevel.ADVISORY)


@pytest.fixture(scope="module")
def limited(server):
    """With a limit on what the node groups cost."""
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["cost-limit"].properties.update({"max_usd_per_hour": 100})
    server.Configure(request, None)
    return server


def said(server, changed):
    alone = [found for item in requests(changed.changed) for found in server.Analyze(item, None).diagnostics]
    whole = analyzer_pb2.AnalyzeStackRequest(resources=stack_resources(changed.resources))
    return [*alone, *server.AnalyzeStack(whole, None).diagnostics]


@pytest.mark.parametrize("value", ["one", [], {}, 1.5, True])
@pytest.mark.parametrize(
    ("name", "path", "policy"),
    [
        (H100_TEMPLATE, "networkInterfaces.5.networkCardIndex", "interface-index"),
        (L4_TEMPLATE, "metadataOptions.httpPutResponseHopLimit", "metadata-hop-limit"),
        (L4, "scalingConfig.maxSize", "scaling-order"),
    ],
)
def test_a_number_that_is_none_names_resource_key_and_value_and_stops_no_other_policy(
    server, name, path, policy, value
):
    changed = program()
    put(name, path, value)(changed)
    put(L4_TEMPLATE, "metadataOptions.httpTokens", "optional")(changed)
    found = said(server, changed)
    (own,) = [item for item in found if item.policyName == policy]
    assert own.enforcementLevel == analyzer_pb2.MANDATORY
    key = path.rpartition(".")[2]
    shown = repr(value)
    assert f"{key}' is {shown}, and a whole number belongs there" in own.message
    assert name.partition(" ")[2] in own.message
    assert own.urn.endswith(name.partition(" ")[2])
    assert "metadata-tokens" in {item.policyName for item in found}


TYPES, CANT = "instance-type-places", "can't be read"
SYSTEM = "NodeGroup system-nodes"


@pytest.mark.parametrize(
    ("unreadable", "change", "faulty"),
    [
        ((L4, H100), drop(SYSTEM, "instanceTypes"), SYSTEM),
        ((SYSTEM, H100), put(L4, "instanceTypes", ["g6.xlarge"]), L4),
        ((L4, SYSTEM), put(H100, "instanceTypes", ["p5.48xlarge"]), H100),
    ],
)
def test_a_policy_tells_each_resource_that_it_can_not_read_and_judges_the_others(server, unreadable, change, faulty):
    changed = program()
    change(changed)
    for name in unreadable:
        put(name, "instanceTypes", [["a list"]])(changed)
    own = [item for item in said(server, changed) if item.policyName == TYPES]
    told = {item.urn.rpartition("::")[2]: item.message for item in own}
    assert len(own) == len(told) == 3
    assert {name for name, message in told.items() if CANT in message} == {ending(told, name) for name in unreadable}
    assert CANT not in told[ending(told, faulty)]


def ending(names, short):
    """The full name of a resource."""
    (found,) = [name for name in names if name.endswith(f"-{short.partition(' ')[2]}")]
    return found


def test_what_can_not_be_read_and_what_is_not_known_are_both_told(server):
    changed = program()
    put(H100, "instanceTypes", [["a list"]])(changed)
    put(L4, "instanceTypes", UNKNOWN)(changed)
    put(SYSTEM, "instanceTypes", [])(changed)
    own = [item for item in said(server, changed) if item.policyName == TYPES]
    assert [(CANT in item.message, item.enforcementLevel == analyzer_pb2.MANDATORY) for item in own] == [
        (False, True),
        (True, True),
        (False, False),
    ]
    assert "not judged yet: .instanceTypes of enginehouse-prod-l4-nodes" in own[2].message


@pytest.mark.parametrize(
    ("policy", "change", "unreadable"),
    [
        ("two-autoscalers", all_of(chart("karpenter"), chart("cluster-autoscaler")),
         put("Cluster cluster-cluster", "computeConfig", {"enabled": "perhaps"})),
        ("replicas-one-owner", all_of(deployed, scaled, put(DEPLOYMENT, "spec.replicas", 2)),
         add("kubernetes:core/v1:ConfigMap", "odd", {"metadata": {"name": "odd", "labels": "none"}})),
        ("cost-limit", put(H100, "scalingConfig.maxSize", 900), put(L4, "scalingConfig.maxSize", "one")),
        ("gpu-operator-driver", chart("gpu-operator"), put(SYSTEM, "instanceTypes", [["a list"]])),
    ],
)  # fmt: skip
def test_a_policy_on_the_stack_as_a_whole_judges_what_it_can_read(limited, policy, change, unreadable):
    changed = program()
    change(changed)
    unreadable(changed)
    own = [item.message for item in said(limited, changed) if item.policyName == policy]
    assert [CANT in message for message in own].count(True) == 1
    if policy != "gpu-operator-driver":  # which needs the nodes to say anything
        assert [CANT in message for message in own].count(False) == 1


def test_a_configuration_that_disables_a_policy_leaves_it_on(server):
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["metadata-tokens"].enforcementLevel = analyzer_pb2.DISABLED
    server.Configure(request, None)
    changed = program()
    put(L4_TEMPLATE, "metadataOptions.httpTokens", "optional")(changed)
    (own,) = [item for item in said(server, changed) if item.policyName == "metadata-tokens"]
    assert own.enforcementLevel == analyzer_pb2.MANDATORY


@given(ANYTHING)
@example("1.0")
@example(float("inf"))
def test_whatever_stands_there_is_read_or_named(value):
    for read in (
        reading.number,
        reading.flag,
        reading.parts,
        reading.texts,
        reading.text,
        reading.labels,
        reading.document,
    ):
        with suppress(reading.Unreadable):
            read({"key": value}, "key")


@given(st.integers(-(10**20), 10**20), st.booleans())
def test_what_is_right_is_read_as_it_is(number, on):
    assert reading.number({"key": str(number)}, "key") == number
    assert reading.number({"key": number}, "key") == number
    assert reading.flag({"key": str(on).lower()}, "key") is reading.flag({"key": on}, "key") is on


def test_a_message_and_a_list_of_findings_stay_readable():
    told = []
    report = Capped(lambda message, urn=None: told.append((message, urn)))
    for number in range(MOST + 5):
        report(str(number), "x::y")
    report("short", "other")
    report.close()
    assert len(told) == MOST + 2
    assert told[-1] == ("y: and 5 more of this policy", "x::y")
    assert capped("a" * LONGEST) == "a" * LONGEST
    assert capped("a" * (LONGEST + 7)).endswith("a... and 7 more characters")
