"""The pack as the engine runs it: its own process, spoken to over gRPC, ended by its pid."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Timer
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from tests.infra.recording import Recorded, Recording

ROOT = Path(__file__).resolve().parents[2]
PACK = ROOT / "policies"
START_SECONDS = 60
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class PackFailed(Exception):
    """The pack ended before it served, with what it said."""


@dataclass(frozen=True)
class Said:
    """What one policy says about one resource."""

    policy: str
    message: str
    urn: str = ""
    level: str = "mandatory"

    @property
    def is_pending(self) -> bool:
        """Whether the rule could not be judged for an unknown value."""
        return "not judged yet" in self.message


@dataclass(frozen=True)
class PackServer:
    """A running pack."""

    stub: analyzer_pb2_grpc.AnalyzerStub
    pid: int

    def info(self) -> analyzer_pb2.AnalyzerInfo:
        """What the pack says about itself."""
        return self.stub.GetAnalyzerInfo(empty_pb2.Empty())

    def configure(
        self, settings: Mapping[str, Mapping[str, Any]] | None = None, levels: Mapping[str, str] | None = None
    ) -> None:
        """Give the pack its own configuration, as the engine does, with settings and levels of policies over it."""
        own = self.info()
        request = analyzer_pb2.ConfigureAnalyzerRequest()
        for policy in own.policies:
            request.policyConfig[policy.name].enforcementLevel = policy.enforcementLevel
        for name, level in (levels or {}).items():
            request.policyConfig[name].enforcementLevel = analyzer_pb2.EnforcementLevel.Value(level.upper())
        for name, stated in own.initialConfig.items():
            request.policyConfig[name].properties.CopyFrom(stated.properties)
        for name, said in (settings or {}).items():
            request.policyConfig[name].properties.update(said)
        self.stub.Configure(request)

    def review(self, resources: Recording | Sequence[Recorded]) -> list[Said]:
        """Everything that the pack says: first about each resource's inputs, then about the whole stack."""
        found = resources.resources if isinstance(resources, Recording) else tuple(resources)
        return [*self.review_each(found), *self.review_stack(found)]

    def review_each(self, resources: Sequence[Recorded], *, among: Sequence[Recorded] = ()) -> list[Said]:
        """What it says about the inputs of each resource; ``among`` has their providers."""
        said: list[Said] = []
        for request in requests(resources, among=among):
            said += [_said(found, request.urn) for found in self.stub.Analyze(request).diagnostics]
        return said

    def review_stack(self, resources: Sequence[Recorded]) -> list[Said]:
        """What it says about the outputs of all resources together."""
        request = analyzer_pb2.AnalyzeStackRequest(resources=stack_resources(resources))
        return [_said(found) for found in self.stub.AnalyzeStack(request).diagnostics]

    def remedies(self, item: Recorded) -> dict[str, dict[str, Any]]:
        """Policy -> the properties that it would put in place."""
        request = analyzer_pb2.AnalyzeRequest(
            type=item.type, urn=item.urn, name=item.name, properties=_struct(item.inputs), options=_options(item)
        )
        answer = self.stub.Remediate(request)
        return {found.policyName: dict(found.properties) for found in answer.remediations}


def requests(resources: Sequence[Recorded], *, among: Sequence[Recorded] = ()) -> Iterator[analyzer_pb2.AnalyzeRequest]:
    """What the engine asks about each resource before it is registered."""
    providers = {item.urn: item for item in (*among, *resources)}
    for item in resources:
        yield analyzer_pb2.AnalyzeRequest(
            type=item.type, urn=item.urn, name=item.name, properties=_struct(item.inputs),
            options=_options(item), provider=_provider(_provider_of(item, providers)),
        )  # fmt: skip


def stack_resources(resources: Sequence[Recorded]) -> list[analyzer_pb2.AnalyzerResource]:
    """The resources as the engine sends them once all are there."""
    providers = {item.urn: item for item in resources}
    return [copy.deepcopy(_sent(Same(item), Same(_provider_of(item, providers)))) for item in resources]


class Same:
    """An object that is equal to itself alone, and stays as long as something is known about it."""

    def __init__(self, item: Recorded | None) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.item is other.item

    def __hash__(self) -> int:
        return id(self.item)


@lru_cache(maxsize=2000)
def _sent(same: Same, provider: Same) -> analyzer_pb2.AnalyzerResource:
    """A resource as it is sent; most are the same from one changed program to the next."""
    item = same.item
    assert item is not None
    sent = analyzer_pb2.AnalyzerResource(
        type=item.type, urn=item.urn, name=item.name, options=_options(item), parent=item.parent,
        properties=_struct({**item.outputs, **({"id": item.id} if item.id else {})}),
        dependencies=sorted(item.depends_on), provider=_provider(provider.item),
    )  # fmt: skip
    for prop, urns in item.property_dependencies.items():
        sent.propertyDependencies[prop].urns.extend(sorted(urns))
    return sent


@contextmanager
def pack_server(
    environment: str,
    *,
    pack: Path = PACK,
    stack_config: Mapping[str, Any] | None = None,
    data: Sequence[str] = (),
) -> Iterator[PackServer]:
    """Start the pack for a stack; it ends with the block.

    Raises:
        PackFailed: it ended before it served.
    """
    config = {"enginehouse:stack": json.dumps(stack_config)} if stack_config else {}
    settings = {
        "PULUMI_STACK": environment, "PULUMI_PROJECT": "enginehouse", "PULUMI_DRY_RUN": "false",
        "PULUMI_CONFIG": json.dumps({**config, "enginehouse:data": json.dumps(data)}),
    }  # fmt: skip
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(pack)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **settings}, text=True, **streams)
    stop = Timer(START_SECONDS, process.kill)
    stop.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        stop.cancel()
        if not line.strip().isdigit():
            raise PackFailed(line + process.stdout.read())
        with grpc.insecure_channel(f"127.0.0.1:{line.strip()}", options=_OPTIONS) as channel:
            server = PackServer(analyzer_pb2_grpc.AnalyzerStub(channel), process.pid)
            server.configure()
            yield server
    finally:
        stop.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct


def _options(item: Recorded) -> analyzer_pb2.AnalyzerResourceOptions:
    return analyzer_pb2.AnalyzerResourceOptions(
        protect=item.options.protect, ignoreChanges=item.options.ignore_changes, parent=item.parent
    )


def _provider_of(item: Recorded, known: Mapping[str, Recorded]) -> Recorded | None:
    return known.get(item.provider.rpartition("::")[0])


def _provider(found: Recorded | None) -> analyzer_pb2.AnalyzerProviderResource | None:
    if found is None:
        return None
    return analyzer_pb2.AnalyzerProviderResource(
        type=found.type, urn=found.urn, name=found.name, properties=_struct(found.inputs)
    )


def _said(found: analyzer_pb2.AnalyzeDiagnostic, urn: str = "") -> Said:
    level = analyzer_pb2.EnforcementLevel.Name(found.enforcementLevel).lower()
    return Said(found.policyName, found.message, found.urn or urn, level)
