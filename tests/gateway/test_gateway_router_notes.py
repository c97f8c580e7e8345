"""What gateways tell each other about requests, and that nothing of it stays for ever."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayEndpoint
from gateway.endpoint_load import EngineMetrics
from gateway.router import Router, RoutingRequest
from gateway.routing_notes import LEASE_SECONDS, Hearsay, NoteError, NoteKind, RoutingNote, message_of, read_notes

ADDRESSES = ("e:0", "e:1")
NOTES = st.lists(
    st.builds(
        RoutingNote,
        st.sampled_from(NoteKind),
        st.sampled_from(["own", "b", "c"]),
        st.integers(0, 3),
        st.sampled_from(ADDRESSES),
        st.integers(0, 5000),
        st.lists(st.integers(0, 2**64 - 1), max_size=3).map(tuple),
        st.none() | st.integers(0, 2**64 - 1),
        st.sampled_from([1, 128]),
        st.booleans(),
    ),
    max_size=40,
)


def counts(router, now):
    endpoints = [GatewayEndpoint(address=address) for address in ADDRESSES]
    choice = router.choose(RoutingRequest(), endpoints, now, Random(0))  # noqa: S311
    return {candidate.address: candidate.load.in_flight for candidate in choice.candidates}


@given(NOTES)
def test_notes_survive_the_way_and_the_counts_are_those_of_live_requests(notes):
    router = Router()
    hearsay, live = Hearsay(router, "own"), {}
    assert read_notes(message_of(notes)) == notes
    for second, note in enumerate(notes):
        hearsay.hear(note, float(second))
        key = (note.gateway, note.number)
        if note.gateway != "own" and note.kind is NoteKind.SENT:
            live[key] = note.address
        elif note.kind is NoteKind.ENDED:
            live.pop(key, None)
        elif note.kind is NoteKind.GONE and note.gateway != "own":
            live = {other: address for other, address in live.items() if other[0] != note.gateway}
        assert counts(router, second) == {address: list(live.values()).count(address) for address in ADDRESSES}
    hearsay.gone("b", 100.0)
    left = [address for (gateway, _), address in live.items() if gateway != "b"]
    assert counts(router, 100.0) == {address: left.count(address) for address in ADDRESSES}
    hearsay.expire(100.0 + LEASE_SECONDS)
    assert set(counts(router, 800.0).values()) == {0}


@given(st.binary(max_size=60))
def test_other_bytes_are_no_note(data):
    try:
        read_notes(data)
    except NoteError as error:
        assert "can't be read" in str(error)  # noqa: PT017


def test_a_first_token_empties_the_queue_but_not_the_count():
    router = Router()
    hearsay = Hearsay(router, "own")
    hearsay.hear(RoutingNote(NoteKind.SENT, "b", 1, "e:0", 5000, (7,), block_tokens=128), 0.0)
    hearsay.hear(RoutingNote(NoteKind.FIRST_TOKEN, "b", 1), 0.1)
    hearsay.hear(RoutingNote(NoteKind.FIRST_TOKEN, "b", 2), 0.1)
    endpoints = [GatewayEndpoint(address="e:0")]
    seen = router.choose(RoutingRequest((7,), 128, 200), endpoints, 0.1, Random(0)).candidates[0]  # noqa: S311
    assert (seen.load.in_flight, seen.load.queued_tokens, seen.cached_tokens) == (1, 0.0, 128)


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_request_whose_first_token_nobody_tells_does_not_fill_an_engine_until_its_end(is_watched):
    router = Router()
    router.measured("e:0", EngineMetrics(measured_at=0.0))
    hearsay = Hearsay(router, "own")
    for number in range(10):
        note = RoutingNote(NoteKind.SENT, "b", number, "e:0", 100, is_watched=is_watched)
        hearsay.hear(note, 0.1)
    endpoint = GatewayEndpoint(address="e:0")
    assert router.is_any_roomy([endpoint], 0.9) is not is_watched
    assert counts(router, 0.9)["e:0"] == 10


def test_a_note_of_another_version_says_what_to_look_at():
    with pytest.raises(NoteError, match="one version"):
        read_notes(b"\x91\x07")
