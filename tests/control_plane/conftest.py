"""A control plane in the process of the test: real storage in a temporary folder, a fake clock, feed and cluster."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog
from starlette.testclient import TestClient
from typer.testing import CliRunner

from cli.client import Api
from cli.exits import CommandError
from cli.server_profile import Profile
from control_plane.main import Assembly, Parts, assemble
from control_plane.ports import FeedError
from control_plane.records import Launch, Replica, ReplicaState, Scope
from control_plane.settings import settings_of
from control_plane.storage import open_store
from fleet.advisory import AffectedPackage, AffectedRange, Event, EventKind, Label, Record, merge
from fleet.canonical import digest
from fleet.facts import AdvisoryData
from fleet.severity import Severity

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
TODAY = NOW.date()
PUBLISHED = {"vllm": ("0.31.0", "0.32.0", "0.33.0"), "sglang": ("0.5.22", "0.5.23")}


@dataclass
class FakeClock:
    """Time that moves when a test says so."""

    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment

    def forward(self, **parts: float) -> None:
        self.moment += timedelta(**parts)


def record(
    name: str,
    *,
    package: str = "vllm",
    introduced: str = "0",
    fixed: str | None = None,
    severity: Severity | None = Severity.CRITICAL,
) -> Record:
    """An invented record about one package."""
    events = [Event(kind=EventKind.INTRODUCED, version=introduced)]
    events += [Event(kind=EventKind.FIXED, version=fixed)] if fixed else []
    ranges = (AffectedRange(type="ECOSYSTEM", events=tuple(events)),)
    affected = (AffectedPackage(ecosystem="PyPI", package=package, ranges=ranges),)
    return Record(id=name, modified="2030-01-01T00:00:00Z", severity=severity, affected=affected)


def data_of(*records: Record, retrieved: date = TODAY, labels: Mapping[str, Label] | None = None) -> AdvisoryData:
    """Invented advisory data; every engine has a harmless old record, so that it counts as known."""
    old = [record(f"OLD-{name}", package=name, fixed="0.0.1") for name in PUBLISHED]
    merged = merge([*old, *records], labels or {})
    return AdvisoryData(
        advisories=merged, published=PUBLISHED, published_retrieved="2030-01-01", retrieved=retrieved, source="invented"
    )


@dataclass
class FakeFeed:
    """A feed whose data a test gives."""

    data: AdvisoryData = field(default_factory=data_of)
    problem: str | None = None

    def fingerprint(self) -> str:
        self._check()
        return self.data.digest

    def read(self) -> AdvisoryData:
        self._check()
        return self.data

    def _check(self) -> None:
        if self.problem:
            raise FeedError(self.problem)


@dataclass
class FakeCluster:
    """Engines that live in a dictionary."""

    runs_engines: bool = True
    replicas: dict[str, Replica] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    started: list[Launch] = field(default_factory=list)

    def observe(self) -> list[Replica]:
        return list(self.replicas.values())

    def cannot_start(self, engine: str) -> str | None:
        return f"no command for '{engine}'" if engine in self.unknown else None

    def start(self, launch: Launch) -> None:
        number = len(self.started)
        self.started.append(launch)
        address = f"127.0.0.1:{9000 + number}"
        name = f"replica-{number}"
        self.replicas[name] = Replica(
            name, launch.deployment, launch.identity, launch.revision, address, ReplicaState.STARTING, NOW.timestamp()
        )

    def drain(self, replica_id: str) -> None:
        self.change(replica_id, state=ReplicaState.DRAINING, was_asked_to_end=True)

    def end(self, replica_id: str) -> None:
        self.change(replica_id, state=ReplicaState.DEAD, was_asked_to_end=True)

    def forget(self, replica_id: str) -> None:
        del self.replicas[replica_id]

    def close(self) -> None:
        pass

    def change(self, replica_id: str, **changes: Any) -> None:
        self.replicas[replica_id] = replace(self.replicas[replica_id], **changes)


@dataclass
class World:
    """A control plane and everything around it."""

    assembly: Assembly
    client: TestClient
    clock: FakeClock
    feed: FakeFeed
    cluster: FakeCluster
    tokens: dict[Scope, str]
    folder: Path
    pinned: Callable[..., dict[str, Any]]
    record: Callable[..., Record]

    def as_(self, scope: Scope | None) -> dict[str, str]:
        """The header of a token with a scope."""
        return {} if scope is None else {"Authorization": f"Bearer {self.tokens[scope]}"}

    def call(self, method: str, path: str, *, scope: Scope | None = Scope.OPERATOR, etag: str | None = None, **more):
        """One request."""
        headers = {**self.as_(scope), **more.pop("headers", {})}
        if etag is not None:
            headers["If-Match"] = etag
        return self.client.request(method, path, headers=headers, **more)

    def get(self, path: str, **more):
        return self.call("GET", path, **more)

    def put(self, manifest: dict[str, Any], **more):
        """PUT a deployment."""
        return self.call("PUT", f"/v1/deployments/{manifest['metadata']['name']}", json=manifest, **more)

    def condition(self, name: str, kind: str = "Compliant") -> dict[str, Any]:
        conditions = self.get(f"/v1/deployments/{name}").json()["status"]["conditions"]
        return next(item for item in conditions if item["type"] == kind)

    def publish(self, *records: Record, **more: Any) -> None:
        """New advisories arrive, and the loop looks."""
        self.feed.data = data_of(*records, **more)
        self.assembly.sync.look()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> Iterator[World]:
    """A control plane whose loops look only when a test says so."""
    yield from build_world(tmp_path, clock)


@cache
def _empty_database() -> Path:
    """A migrated database, made once: migrations have tests of their own."""
    path = Path(tempfile.mkdtemp(prefix="control-plane-tests-")) / "state.db"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    open_store(settings_of({"database_url": f"sqlite:///{path}"})).close()
    return path


def build_world(folder: Path, clock: FakeClock, **settings: Any) -> Iterator[World]:
    """A world in a folder; what is there already goes on."""
    if not (folder / "state.db").exists():
        shutil.copy(_empty_database(), folder / "state.db")
    feed, cluster = FakeFeed(), FakeCluster()
    chosen = settings_of({"database_url": f"sqlite:///{folder}/state.db", **settings})
    assembly = assemble(chosen, Parts(clock=clock, feed=feed, cluster=cluster))
    tokens = {scope: assembly.house.tokens.create(f"test-{scope}", scope) for scope in Scope}
    assembly.sync.look()
    assembly.house.readiness.refresh()
    client = TestClient(assembly.app, raise_server_exceptions=False)  # without its lifespan: no loops
    yield World(assembly, client, clock, feed, cluster, tokens, folder, pinned, record)
    client.close()
    assembly.store.close()


def pinned(name: str = "chat", *, version: str = "0.33.0", engine: str = "vllm", **spec: Any) -> dict[str, Any]:
    """A pinned manifest that the rules accept."""
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "PinnedInferenceDeployment",
        "metadata": {"name": name, "labels": {}},
        "spec": {
            "workload": "chat",
            "model": {"id": "example/model", "revision": "0" * 40, "quantization": "fp8"},
            "engine": {"name": engine, "version": version, "runtime": "process"},
            "batch": {"max_model_len": 4096},
            "hardware": {"instance_type": "p5.48xlarge", "gpus": 2},
            "parallelism": {"tensor": 2},
            "access": {"tenants": ["acme"]},
            **spec,
        },
        "pin": {"source_digest": digest(name), "facts_digest": "", "catalogue_digest": "", "runtime": "process"},
    }


@pytest.fixture(scope="session")
def world_maker() -> Callable[..., dict[str, Any]]:
    """Pinned manifests without a control plane around them."""
    return pinned


@pytest.fixture(scope="module")
def module_world() -> Iterator[Callable[[Path], World]]:
    """Worlds that a whole module shares."""
    made: list[Iterator[World]] = []

    def make(folder: Path) -> World:
        made.append(build_world(folder, FakeClock()))
        return next(made[-1])

    yield make
    for world in made:
        next(world, None)


@pytest.fixture
def shell(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs commands around the gateway as somebody with a token of scope security-admin."""
    from tests.control_plane.commands import APPS

    def forward(request):
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        answer = world.client.request(request.method, str(request.url), headers=headers, content=request.read())
        return httpx2.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)

    def connect(server=None, token=None, name=None):
        target = Profile("http://testserver", world.tokens[Scope.SECURITY_ADMIN])
        return Api(target, httpx2.MockTransport(forward))

    monkeypatch.setattr(Api, "connect", connect)
    world.put(world.pinned())

    def run(noun, *words, text=None):
        """The exit code, stdout and the message of a command."""
        with structlog.testing.capture_logs():  # the server's lines, which stand elsewhere
            found = CliRunner().invoke(APPS[noun], [str(word) for word in words], input=text)
        if isinstance(found.exception, CommandError):
            return int(found.exception.code), found.stdout, str(found.exception)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return found.exit_code, found.stdout, found.stderr

    return run
