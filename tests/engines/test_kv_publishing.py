"""Where engines publish which prompts they hold: what they are told is where the gateway listens."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.kv_publishing import EVENTS_PORT, MOST_RANKS, REPLAY_PORT, kv_events, kv_ports, kv_ranks

FLAG = "--kv-events-config"
ASKED = {"features": {"kv_events": "zmq"}}


def told(catalogue, manifest):
    """What the command line says of it; ``None`` = nothing."""
    argv = catalogue.command_line(manifest, host="127.0.0.1", port=8000).argv
    return json.loads(argv[argv.index(FLAG) + 1]) if FLAG in argv else None


@pytest.mark.parametrize(
    ("engine", "version", "switch"),
    [("vllm", "0.33.0", {"enable_kv_cache_events": True}), ("sglang", "0.5.23", {})],
)
def test_an_engine_is_told_to_publish_where_the_gateway_listens(catalogue, pinned, engine, version, switch):
    manifest = pinned(engine, version, **ASKED)
    places = {"endpoint": f"tcp://*:{EVENTS_PORT}", "replay_endpoint": f"tcp://*:{REPLAY_PORT}"}
    assert told(catalogue, manifest) == {**switch, "publisher": "zmq", **places}
    found = kv_events(engine, {}, manifest.spec.features.model_dump())
    assert found == f"tcp://{{host}}:{EVENTS_PORT},tcp://{{host}}:{REPLAY_PORT}"


def test_nothing_is_published_that_the_manifest_does_not_ask_for(catalogue, pinned):
    plain = pinned("vllm", "0.33.0")
    assert told(catalogue, plain) is None
    assert kv_events("vllm", {}, plain.spec.features.model_dump()) is None


def test_the_manifest_s_own_flag_comes_first(catalogue, pinned):
    own = '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:7000"}'
    manifest = pinned("vllm", "0.33.0", flags={FLAG: own}, **ASKED)
    assert told(catalogue, manifest) == json.loads(own)
    assert kv_events("vllm", {FLAG: own}, {"kv_events": "zmq"}) == "tcp://{host}:7000"


def test_it_is_another_identity_and_a_manifest_without_it_keeps_its_own(pinned):
    plain, asked = pinned("vllm", "0.33.0"), pinned("vllm", "0.33.0", **ASKED)
    stated = pinned("vllm", "0.33.0", features=plain.spec.features.model_dump(mode="json"))
    assert plain.identity == stated.identity != asked.identity


def test_it_opens_the_path_by_which_the_cache_leaves_the_engine(catalogue, pinned):
    reasons = catalogue.exposure(pinned("vllm", "0.33.0", **ASKED), "vllm", "0.33.0").reasons
    assert FLAG in reasons["disaggregation"]


@given(st.integers(1, MOST_RANKS))
def test_no_port_of_a_rank_is_that_of_another(ranks):
    found = kv_ports(f"tcp://{{host}}:{EVENTS_PORT},tcp://{{host}}:{REPLAY_PORT}", ranks)
    assert len(set(found)) == 2 * ranks
    assert list(found) == sorted(found)


def test_ports_are_read_from_the_addresses():
    assert kv_ports("tcp://{host}:7000", 3) == (7000, 7001, 7002)
    assert kv_ports("tcp://{host}:65535", 2) == (65535,)
    assert kv_ports(None, 2) == ()


@pytest.mark.parametrize(
    ("flags", "ranks"), [({}, 4), ({"--dp-size": 2}, 2), ({"--dp-size": True}, 1), ({"--dp-size": 0}, 1)]
)
def test_ranks_are_those_of_the_manifest_or_of_its_flags(flags, ranks):
    assert kv_ranks(flags, 4) == ranks
