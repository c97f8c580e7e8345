"""The access log on a fake call: entries as ended requests, and nothing that an entry holds ends the call."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access_log_service import DECISION_NAMESPACE, TYPES, AccessLogReceiver
from gateway.ext_authz import TICKET_HEADER


class Call:
    def __init__(self):
        self.sent, self.is_finished = [], False

    def send(self, message):
        self.sent.append(message)

    def finish(self, status=0, message=""):
        self.is_finished = True


class Receiver:
    def __init__(self, raises=False):
        self.batches, self.failures, self.raises = [], 0, raises
        self.receiver = AccessLogReceiver(self.take, namespaces=["usage"], on_failure=self.failed)
        self.call = Call()
        self.stream = self.receiver.open(self.call)

    def take(self, batch):
        self.batches.append(batch)
        if self.raises:
            raise ValueError

    def failed(self):
        self.failures += 1

    def say(self, *entries):
        self.stream.message(TYPES["StreamAccessLogsMessage"](http_logs={"log_entry": entries}).SerializeToString())
        return self


def entry(**common):
    return TYPES["HTTPAccessLogEntry"](
        common_properties=common,
        request={"request_id": "r-1", "request_body_bytes": 15},
        response={"response_code": {"value": 200}, "response_body_bytes": 120, "response_code_details": "via_upstream"},
    )


def with_metadata(spaces):
    made = entry()
    for space, values in spaces.items():
        made.common_properties.metadata.filter_metadata[space].update(values)
    return made


def test_an_entry_says_how_a_request_ended():
    made = entry(
        start_time={"seconds": 1_900_000_000, "nanos": 500_000_000},
        duration={"seconds": 1, "nanos": 250_000_000},
        time_to_first_upstream_rx_byte={"nanos": 4_000_000},
        upstream_remote_address={"socket_address": {"address": "10.0.0.1", "port_value": 8000}},
        upstream_request_attempt_count=2,
    )
    ended = Receiver().say(made).batches[0][0]
    assert (ended.request_id, ended.status, ended.details) == ("r-1", 200, "via_upstream")
    assert (ended.request_bytes, ended.response_bytes, ended.attempts) == (15, 120, 2)
    assert (ended.started_unix_seconds, ended.duration_seconds) == (1_900_000_000.5, 1.25)
    assert (ended.first_byte_seconds, ended.received_seconds) == (0.004, None)
    assert (ended.endpoint, ended.flags, ended.client_left, ended.ticket) == ("10.0.0.1:8000", (), False, "")


def test_an_endpoint_may_have_an_ipv6_address():
    made = entry(upstream_remote_address={"socket_address": {"address": "::1", "port_value": 80}})
    assert Receiver().say(made).batches[0][0].endpoint == "[::1]:80"


@pytest.mark.parametrize(("flag", "left"), [("DC", True), ("DR", True), ("UC", False), ("UT", False)])
def test_flags_are_named_as_in_the_text_log(flag, left):
    ended = Receiver().say(entry(response_flags={flag: True})).batches[0][0]
    assert (ended.flags, ended.client_left) == ((flag,), left)


def test_metadata_of_the_namespaces_asked_for_is_kept_and_the_ticket_found():
    usage = {"total_tokens": 112, "final": True, "model": "m", "list": [1], "odd": math.nan}
    made = with_metadata({"usage": usage, "envoy.lb": {"a": "b"}, DECISION_NAMESPACE: {TICKET_HEADER: "t-1"}})
    ended = Receiver().say(made).batches[0][0]
    assert ended.metadata == {"usage": {"total_tokens": 112.0, "final": True, "model": "m"}}
    assert ended.ticket == "t-1"
    assert "t-1" not in repr(ended)


def test_a_message_is_one_batch_and_entries_of_what_goes_on_are_left_out():
    receiver = Receiver().say(entry(), entry(intermediate_log_entry=True), entry())
    assert [len(batch) for batch in receiver.batches] == [2]
    assert receiver.receiver.entries == 2


def test_a_message_that_can_not_be_read_is_counted_and_the_next_is_taken():
    receiver = Receiver()
    receiver.stream.message(b"\xff\xff")
    receiver.say().say(entry())
    assert (receiver.receiver.malformed, len(receiver.batches)) == (1, 1)


def test_a_batch_that_can_not_be_settled_does_not_end_the_log():
    receiver = Receiver(raises=True).say(entry()).say(entry())
    assert (receiver.failures, len(receiver.batches)) == (2, 2)


def test_the_end_of_the_log_is_answered():
    receiver = Receiver()
    receiver.stream.half_closed()
    assert (receiver.call.sent, receiver.call.is_finished) == ([b""], True)


@given(st.lists(st.binary(max_size=80), max_size=5), st.integers(0, 60), st.integers(0, 255))
@settings(deadline=None)
def test_no_bytes_raise(noise, at, byte):
    receiver = Receiver()
    whole = bytearray(
        TYPES["StreamAccessLogsMessage"](
            http_logs={"log_entry": [entry(duration={"seconds": 2**62})]}
        ).SerializeToString()
    )
    whole[at % len(whole)] = byte
    for data in (*noise, bytes(whole)):
        receiver.stream.message(data)
