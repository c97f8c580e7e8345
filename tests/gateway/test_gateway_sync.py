"""Following the control plane: what is taken into use, what is kept, and what a failure leaves."""

import json
import math
import stat

import httpx2
import pytest
import structlog

from fleet.snapshot import SNAPSHOT_VERSION
from gateway.asked import Request
from gateway.decision import Allowed, DecisionCore
from gateway.endpoints import RETIRING_SECONDS, EndpointFile, EnvoyAdmin
from gateway.store import SnapshotStore
from gateway.sync import LONGEST_PAUSE_SECONDS, SnapshotSwitch, SnapshotSync
from gateway.telemetry import Telemetry


class Clock:
    now = 1_900_000_000.0

    def __call__(self):
        return self.now


class FakeEnvoy:
    """Says which endpoints were asked for, and what the core decided by at that time."""

    def __init__(self, core):
        self.core, self.asked, self.knows = core, [], True

    async def wait_until_known(self, addresses, deadline_seconds):
        self.asked.append((addresses, self.core.index))
        return self.knows


class Bench:
    """A sync loop whose control plane answers as the test says."""

    def __init__(self, folder):
        self.folder = folder
        self.requests, self.answer = [], httpx2.Response(503)
        self.core, self.telemetry, self.clock = DecisionCore(), Telemetry(), Clock()
        self.envoy = FakeEnvoy(self.core)
        self.token, self.kept, self.eds = folder / "token", folder / "snapshot.json", folder / "endpoints.json"
        self.token.write_text("reader-token\n")
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self.respond), base_url="http://control.plane")
        switch = SnapshotSwitch(self.core, EndpointFile(self.eds), self.envoy, self.telemetry)
        self.sync = SnapshotSync(client, self.token, switch, SnapshotStore(self.kept), self.telemetry, self.clock)

    def respond(self, request):
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return httpx2.Response(self.answer.status_code, content=self.answer.content)

    def serve(self, snapshot):
        self.answer = httpx2.Response(200, content=snapshot.model_dump_json())

    @property
    def failures(self):
        return self.telemetry.registry.get_sample_value("enginehouse_gateway_sync_failures_total")

    @property
    def is_older(self):
        return self.telemetry.registry.get_sample_value("enginehouse_gateway_older_than_control_plane")

    @property
    def endpoints(self):
        hosts = json.loads(self.eds.read_bytes())["resources"][0]["endpoints"][0]["lb_endpoints"]
        return {host["endpoint"]["address"]["socket_address"]["port_value"] for host in hosts}


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


async def test_a_snapshot_is_used_kept_privately_and_named_at_the_next_request(bench, world):
    snapshot = world.snapshot()
    bench.serve(snapshot)
    await bench.sync.step()
    assert bench.core.index.tenants.keys() == {"acme", "globex"}
    assert bench.endpoints == {9001, 9002}
    assert stat.S_IMODE(bench.kept.stat().st_mode) == 0o600
    assert world.acme_key not in bench.kept.read_text()
    bench.answer = httpx2.Response(304)
    await bench.sync.step()
    first, second = bench.requests
    assert first.headers["authorization"] == "Bearer reader-token"
    assert "if-none-match" not in first.headers
    assert second.headers["if-none-match"] == snapshot.etag
    assert dict(second.url.params) == {"wait_seconds": "10"}
    assert bench.failures == 0


async def test_envoy_learns_new_endpoints_before_a_decision_names_them(bench, world):
    bench.serve(world.snapshot("127.0.0.1:9001"))
    await bench.sync.step()
    before = bench.core.index
    bench.serve(world.snapshot("127.0.0.1:9002"))
    await bench.sync.step()
    assert bench.envoy.asked[1] == (frozenset({"127.0.0.1:9002"}), before)
    assert bench.core.index.addresses == {"127.0.0.1:9002"}
    assert bench.endpoints == {9001, 9002}  # the old one stays known for a while


async def test_an_envoy_that_is_late_does_not_stop_a_key_from_being_revoked(bench, world):
    snapshot = world.snapshot()
    bench.serve(snapshot)
    await bench.sync.step()
    bench.envoy.knows = False
    bench.serve(world.snapshot("127.0.0.1:9").model_copy(update={"keys": snapshot.keys[1:]}))
    await bench.sync.step()
    request = Request("POST", "/v1/chat/completions", {"authorization": f"Bearer {world.acme_key}"}, b"{}")
    assert bench.core.decide(request, world.now).status == 401


async def test_a_token_is_read_again_for_each_request(bench):
    await bench.sync.step()
    bench.token.write_text("another-token")
    await bench.sync.step()
    assert [r.headers["authorization"] for r in bench.requests] == ["Bearer reader-token", "Bearer another-token"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx2.Response(503), "answered 503"),
        (httpx2.Response(401), "scope gateway"),
        (httpx2.Response(200, content=b"{"), "another shape"),
        (httpx2.Response(200, content=b'{"tenants":[{"name":"the-secret"}],"more":"the-secret"}'), "['more']"),
        (httpx2.ConnectError("the-secret"), "cannot be reached: ConnectError"),
        (httpx2.ReadTimeout("the-secret"), "cannot be reached: ReadTimeout"),
        (RuntimeError("the-secret"), "RuntimeError"),
    ],
)
async def test_a_failure_leaves_the_last_good_snapshot_in_use(bench, world, answer, told):
    bench.serve(world.snapshot())
    await bench.sync.step()
    bench.answer = answer
    with structlog.testing.capture_logs() as logs:
        for _ in range(8):
            await bench.sync.step()
    body = json.dumps({"model": "acme-chat"}).encode()
    request = Request("POST", "/v1/chat/completions", {"authorization": f"Bearer {world.acme_key}"}, body)
    assert isinstance(bench.core.decide(request, world.now - 1), Allowed)
    assert bench.failures == 8
    assert bench.sync._pause_seconds == LONGEST_PAUSE_SECONDS
    assert len(logs) == 1  # said once
    assert told in logs[0]["error"]
    assert "the-secret" not in repr(logs)
    bench.serve(world.snapshot("127.0.0.1:9"))
    await bench.sync.step()
    assert bench.core.index.addresses == {"127.0.0.1:9"}
    assert bench.sync._pause_seconds == 0


@pytest.mark.parametrize("is_bare", [False, True])
async def test_a_gateway_that_is_older_than_the_control_plane_says_so_and_serves_on(bench, world, is_bare):
    """Also where what is left could be read, as nothing that may be asked for."""
    bench.serve(world.snapshot())
    await bench.sync.step()
    known = {} if is_bare else json.loads(world.snapshot().model_dump_json()) | {"more": ["the-secret"]}
    bench.answer = httpx2.Response(200, content=json.dumps(known | {"version": SNAPSHOT_VERSION + 995}))
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            await bench.sync.step()
    (line,) = logs
    assert "older than the control plane" in line["error"]
    assert (
        f"version {SNAPSHOT_VERSION + 995}, and this gateway reads versions up to {SNAPSHOT_VERSION};" in line["error"]
    )
    assert bench.is_older == 1
    assert bench.failures == 2
    assert bench.core.index.tenants.keys() == {"acme", "globex"}
    assert SnapshotStore(bench.kept).load().snapshot == world.snapshot()
    bench.serve(world.snapshot().model_copy(update={"version": SNAPSHOT_VERSION}))
    await bench.sync.step()
    assert bench.is_older == 0


@pytest.mark.parametrize("version", [None, 1, SNAPSHOT_VERSION])
@pytest.mark.parametrize("missing", ["keys", "tenants", "routes"])
async def test_a_snapshot_that_leaves_something_out_is_not_used(bench, world, version, missing):
    bench.serve(world.snapshot())
    await bench.sync.step()
    said = json.loads(world.snapshot().model_dump_json()) | {"version": version}
    bench.answer = httpx2.Response(200, content=json.dumps({k: v for k, v in said.items() if v and k != missing}))
    with structlog.testing.capture_logs() as logs:
        await bench.sync.step()
    assert missing in logs[0]["error"]
    assert (bench.failures, bench.is_older) == (1, 0)
    assert bench.core.index.tenants.keys() == {"acme", "globex"}


async def test_an_older_control_plane_does_not_know_everything_and_one_of_this_version_does(bench, world):
    said = json.loads(world.snapshot().model_dump_json())
    older = {name: said[name] for name in ("tenants", "keys", "routes")}
    bench.answer = httpx2.Response(200, content=json.dumps(older))
    await bench.sync.step()
    assert bench.core.index is not None
    bench.answer = httpx2.Response(200, content=json.dumps(older | {"version": SNAPSHOT_VERSION}))
    await bench.sync.step()
    assert bench.failures == 1


@pytest.mark.parametrize("kept", [b'{"version":999}', b"{}", b"[]", b'{"version":"x"}', b""])
async def test_what_is_no_snapshot_on_disk_is_not_used(bench, kept):
    bench.kept.write_bytes(kept)
    with structlog.testing.capture_logs() as logs:
        await bench.sync.start_from_disk()
    assert bench.core.index is None
    assert logs[0]["event"] == "snapshot.not_loaded"
    assert ("version 999" in logs[0]["error"]) is (b"999" in kept)
    assert bench.failures == 1


@pytest.mark.parametrize("token", [None, b"", b"\xff", b"a\nb", "ü".encode()])
async def test_a_token_file_without_a_token_is_named(bench, token):
    bench.token.unlink()
    if token is not None:
        bench.token.write_bytes(token)
    with structlog.testing.capture_logs() as logs:
        await bench.sync.step()
    assert str(bench.token) in logs[0]["error"]
    assert not bench.requests


async def test_the_age_grows_until_the_control_plane_answers(bench, world):
    assert math.isnan(bench.sync.age_seconds())
    bench.serve(world.snapshot())
    await bench.sync.step()
    bench.clock.now += 60
    assert bench.telemetry.registry.get_sample_value("enginehouse_gateway_snapshot_age_seconds") == 60
    bench.answer = httpx2.Response(304)
    await bench.sync.step()
    assert bench.sync.age_seconds() == 0


async def test_a_control_plane_that_does_not_wait_is_not_asked_without_a_pause(bench, world):
    bench.serve(world.snapshot())
    await bench.sync.step()
    bench.answer = httpx2.Response(304)
    await bench.sync.step()
    assert 0 < bench.sync._pause_seconds <= 0.5


async def test_a_start_without_the_control_plane_uses_the_disk(bench, world, tmp_path):
    bench.serve(world.snapshot())
    await bench.sync.step()
    again = Bench(tmp_path)
    await again.sync.start_from_disk()
    assert again.core.index == bench.core.index
    await again.sync.step()
    assert again.requests[0].headers["if-none-match"] == world.snapshot().etag


@pytest.mark.parametrize("content", [b"", b"{", b'{"tenants": 1}', b"\xff"])
async def test_a_corrupted_file_is_named_and_replaced(bench, world, content):
    bench.kept.write_bytes(content)
    with structlog.testing.capture_logs() as logs:
        await bench.sync.start_from_disk()
    assert str(bench.kept) in logs[0]["error"]
    assert bench.core.index is None
    bench.serve(world.snapshot())
    await bench.sync.step()
    assert SnapshotStore(bench.kept).load().snapshot == world.snapshot()


async def test_a_disk_that_cannot_be_written_does_not_stop_the_service(bench, world):
    bench.kept.mkdir()
    bench.eds.mkdir()
    bench.serve(world.snapshot())
    await bench.sync.step()
    assert bench.core.index.addresses == {"127.0.0.1:9001", "127.0.0.1:9002"}
    assert bench.failures >= 2
    assert not list(bench.folder.glob(".*draft"))
    bench.eds.rmdir()
    bench.answer = httpx2.Response(304)
    await bench.sync.step()
    assert bench.endpoints == {9001, 9002}  # tried again


def test_an_endpoint_that_left_is_forgotten_after_its_time(tmp_path):
    file = EndpointFile(tmp_path / "eds.json")
    one, two = frozenset({"127.0.0.1:1"}), frozenset({"127.0.0.1:2"})
    file.show(one, 0.0)
    file.show(two, 10.0)
    assert b'"port_value": 1,' in (tmp_path / "eds.json").read_bytes() or b'"port_value": 1\n' in read(tmp_path)
    file.show(two, 10.0 + RETIRING_SECONDS + 0.1)
    assert b'"port_value": 1\n' not in read(tmp_path)
    assert b'"port_value": 2\n' in read(tmp_path)


def read(folder):
    return (folder / "eds.json").read_bytes()


@pytest.mark.parametrize(
    ("page", "is_known"),
    [
        (b'{"cluster_statuses":[]}', False),
        (b"{}", False),
        (b"not json", True),
        (b'{"cluster_statuses":[{"name":"decision","host_statuses":[{"address":{"pipe":{"path":"x"}}}]}]}', False),
        (
            b'{"cluster_statuses":[{"name":"engines","host_statuses":[{"address":'
            b'{"socket_address":{"address":"::1","port_value":1}}}]}]}',
            True,
        ),
    ],
)
async def test_envoy_is_asked_until_it_knows_the_endpoints(page, is_known):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=page))
    async with httpx2.AsyncClient(transport=transport) as client:
        admin = EnvoyAdmin(client, "http://127.0.0.1:1")
        assert await admin.wait_until_known(frozenset({"[::1]:1"}), 0.05) is is_known
