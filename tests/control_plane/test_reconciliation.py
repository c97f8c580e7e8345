"""Engines are kept equal to what was stored: laws of the decision, then the whole way with a fake cluster."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from control_plane.records import Phase, Replica, ReplicaState
from control_plane.services.replacing import SETTLE_SECONDS, Backoff, Step, Wanted, decide

NOW = 1000.0
REPLICAS = st.lists(
    st.builds(
        Replica,
        id=st.uuids().map(str),
        deployment=st.just("chat"),
        identity=st.just("i"),
        revision=st.sampled_from(["old", "new"]),
        address=st.integers(1, 9).map(lambda port: f"127.0.0.1:{port}"),
        state=st.sampled_from(ReplicaState),
        state_since=st.floats(900, 1000),
        running_requests=st.none() | st.integers(0, 3),
        was_asked_to_end=st.booleans(),
    ),
    max_size=6,
)
WANTED = st.builds(Wanted, revision=st.sampled_from(["new", None]), replicas=st.integers(0, 3))


def decided(wanted, replicas, backoff=None, now=NOW):
    return decide(wanted, replicas, backoff or Backoff(), now=now, drain_seconds=30)


@given(wanted=WANTED, replicas=REPLICAS)
def test_old_engines_stay_until_all_new_ones_are_healthy(wanted, replicas):
    decision = decided(wanted, replicas)
    healthy = [r for r in replicas if r.revision == wanted.revision and r.state is ReplicaState.HEALTHY]
    drained_old = [a for a in decision.actions if a.step is Step.DRAIN and a.replica.revision != wanted.revision]
    assert not drained_old or len(healthy) >= wanted.replicas


@given(wanted=WANTED, replicas=REPLICAS)
def test_a_busy_engine_is_never_ended_before_its_time(wanted, replicas):
    for action in decided(wanted, replicas).actions:
        if action.step is Step.END and action.replica.state is ReplicaState.DRAINING:
            waited = NOW - action.replica.state_since
            assert waited >= 30 or (action.replica.running_requests == 0 and waited >= SETTLE_SECONDS)
        if action.step is Step.END:
            assert action.replica.state in (ReplicaState.DRAINING, ReplicaState.ENDING)


@given(wanted=WANTED, replicas=REPLICAS)
def test_starting_and_draining_never_meet_in_one_decision_about_the_same_revision(wanted, replicas):
    decision = decided(wanted, replicas)
    own = [r for r in replicas if r.revision == wanted.revision]
    alive = [r for r in own if r.state in (ReplicaState.STARTING, ReplicaState.HEALTHY)]
    drained = [a for a in decision.actions if a.step is Step.DRAIN and a.replica in own]
    assert len(alive) + decision.start - len(drained) <= max(wanted.replicas, len(alive))
    assert not (decision.start and drained)


@given(wanted=WANTED, replicas=REPLICAS)
def test_endpoints_are_healthy_or_draining_engines(wanted, replicas):
    by_address = {}
    for replica in replicas:
        by_address.setdefault(replica.address, set()).add(replica.state)
    for endpoint in decided(wanted, replicas).endpoints:
        states = by_address[endpoint.address]
        assert states & (
            {ReplicaState.DRAINING, ReplicaState.HEALTHY} if endpoint.is_draining else {ReplicaState.HEALTHY}
        )


@given(failures=st.integers(0, 40))
def test_pauses_grow_and_have_an_end(failures):
    backoff = Backoff(failures).after_failure(NOW)
    assert 0 < backoff.not_before - NOW <= 30
    assert backoff.failures == failures + 1


def settle(world, rounds=3):
    for _ in range(rounds):
        world.assembly.house.reconciler.look()


def heal(world):
    for name, replica in world.cluster.replicas.items():
        if replica.state is ReplicaState.STARTING:
            world.cluster.change(name, state=ReplicaState.HEALTHY)


def endpoints(world, name="chat"):
    return world.get(f"/v1/deployments/{name}").json()["status"]["endpoints"]


def test_a_deployment_gets_its_engines_and_serves_when_they_are_healthy(world):
    world.put(world.pinned(scaling={"min": 2, "max": 2}))
    settle(world)
    assert len(world.cluster.started) == 2
    assert endpoints(world) == []
    assert world.condition("chat", "Ready")["status"] == "False"
    heal(world)
    settle(world)
    assert len(endpoints(world)) == 2
    assert world.get("/v1/deployments/chat").json()["status"]["phase"] == "Running"
    assert world.condition("chat", "Ready")["status"] == "True"
    assert len(world.cluster.started) == 2


def test_another_version_starts_beside_the_old_one_and_takes_over(world):
    world.put(world.pinned(version="0.32.0"))
    settle(world)
    heal(world)
    settle(world)
    (old,) = endpoints(world)
    world.put(world.pinned(version="0.33.0"), etag="*")
    settle(world)
    assert endpoints(world) == [old]
    heal(world)
    settle(world, rounds=1)
    by_draining = {item["draining"]: item for item in endpoints(world)}
    assert by_draining[True] == old | {"draining": True}
    assert by_draining[False]["identity"] == world.get("/v1/deployments/chat").json()["status"]["identity"]
    world.cluster.change("replica-0", running_requests=1, state_since=world.clock.now().timestamp())
    world.clock.forward(seconds=10)
    settle(world)
    assert "replica-0" in world.cluster.replicas
    world.cluster.change("replica-0", running_requests=0)
    settle(world)
    assert list(world.cluster.replicas) == ["replica-1"]
    assert [item["draining"] for item in endpoints(world)] == [False]


def test_a_name_that_clients_see_is_on_the_command_line_so_its_change_replaces(world):
    world.put(world.pinned())
    settle(world)
    heal(world)
    settle(world)
    before = world.get("/v1/deployments/chat").json()["status"]["identity"]
    world.put(world.pinned(served_name="assistant"), etag="*")
    settle(world)
    assert len(world.cluster.started) == 2
    assert {launch.identity for launch in world.cluster.started} == {before}
    world.put(world.pinned(served_name="assistant", access={"tenants": ["globex"]}), etag="*")
    settle(world)
    assert len(world.cluster.started) == 2


def test_a_killed_engine_is_started_again_with_growing_pauses(world):
    world.put(world.pinned())
    settle(world)
    heal(world)
    settle(world)
    for wait in (0.5, 1, 2):
        (alive,) = world.cluster.replicas
        world.cluster.change(alive, state=ReplicaState.DEAD, detail="ended with -9")
        count = len(world.cluster.started)
        settle(world)
        assert len(world.cluster.started) == count
        assert "ended with -9" in world.condition("chat", "Ready")["message"] or wait > 0.5
        world.clock.forward(seconds=wait)
        settle(world)
        assert len(world.cluster.started) == count + 1
    assert world.get("/v1/deployments/chat").json()["status"]["phase"] == Phase.FAILED


def test_a_deleted_deployment_drains_and_ends(world):
    world.put(world.pinned())
    settle(world)
    heal(world)
    settle(world)
    world.call("DELETE", "/v1/deployments/chat", etag="*")
    settle(world, rounds=1)
    (replica,) = world.cluster.replicas.values()
    assert replica.state is ReplicaState.DRAINING
    world.cluster.replicas[replica.id] = replace(replica, running_requests=0)
    world.clock.forward(seconds=5)
    settle(world)
    assert world.cluster.replicas == {}


def test_a_review_alone_ends_no_engine(world):
    world.put(world.pinned())
    settle(world)
    heal(world)
    settle(world)
    world.publish(world.record("GHSA-x"))
    settle(world)
    assert world.condition("chat")["status"] == "False"
    assert [replica.state for replica in world.cluster.replicas.values()] == [ReplicaState.HEALTHY]
    assert world.get("/v1/deployments/chat").json()["status"]["phase"] == "Running"


def test_an_engine_without_a_command_leaves_what_runs_in_place(world):
    world.put(world.pinned())
    settle(world)
    heal(world)
    settle(world)
    world.cluster.unknown = frozenset({"sglang"})
    world.put(world.pinned(engine="sglang", version="0.5.23"), etag="*")
    settle(world)
    assert [replica.state for replica in world.cluster.replicas.values()] == [ReplicaState.HEALTHY]
    ready = world.condition("chat", "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NotRunHere")
    assert "no command for 'sglang'" in ready["message"]


def test_without_a_cluster_deployments_stay_pending(world):
    world.cluster.runs_engines = False
    world.put(world.pinned())
    settle(world)
    assert world.cluster.started == []
    assert world.get("/v1/deployments/chat").json()["status"]["phase"] == "Pending"
    assert "runs no engines" in world.condition("chat", "Ready")["message"]
