"""The pack's own server answers as the framework's does, and decodes each resource once."""

from pathlib import Path

import pytest
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy import policy as framework

from policies import pack
from policies.decode_once import DecodedOnce
from policies.knowledge import ground_of
from tests.policies.edited import program
from tests.policies.fault import all_of, put
from tests.policies.faults_of_nodes import H100_TEMPLATE, L4
from tests.policies.pack_server import PACK, requests, stack_resources
from tests.policies.unknown_places import PLACES

CHANGES = {
    "clean": all_of(),
    "faulty": all_of(put(L4, "diskSize", 9), put(H100_TEMPLATE, "networkInterfaces.5.deviceIndex", 9)),
    "unknown": all_of(PLACES["key-rotation"], PLACES["interface-index"]),
}


@pytest.fixture(scope="module")
def policies():
    ground = ground_of(
        {"PULUMI_STACK": "prod"}, root=Path("nowhere"), policy=PACK / "policy.yaml", today=lambda: pytest.fail("asked")
    )
    return pack.policies(ground)


def answers(server, request_of_each, request_of_all):
    """Everything that a server says, without the wording of its warnings."""
    found = [*(server.Analyze(item, None) for item in request_of_each), server.AnalyzeStack(request_of_all, None)]
    return [
        (item.policyName, item.urn, item.enforcementLevel, item.message.rpartition("during preview")[2])
        for answer in found
        for item in answer.diagnostics
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_both_servers_say_the_same(policies, change):
    changed = program()
    CHANGES[change](changed)
    together = analyzer_pb2.AnalyzeStackRequest(resources=stack_resources(changed.resources))
    alone = list(requests(changed.resources))
    servers = [kind("pack", "1", policies, EnforcementLevel.MANDATORY) for kind in (DecodedOnce, framework_server())]
    ours, theirs = (answers(server, alone, together) for server in servers)
    assert ours == theirs
    assert bool(ours) == (change != "clean")


def framework_server():
    """The framework's own, whatever this process has put in its place."""
    return DecodedOnce.__mro__[1]


def test_the_framework_still_has_what_is_put_in_its_place():
    assert framework_server().__name__ == "_PolicyAnalyzerServicer"
    assert hasattr(framework, "_PolicyAnalyzerServicer")
