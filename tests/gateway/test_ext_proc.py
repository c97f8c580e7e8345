"""External processing on a fake call: every way in which the proxy's messages can come, and the core can answer."""

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.asked import Request
from gateway.body_edits import Edit, apply_edits
from gateway.ext_proc import DECISION_NAMESPACE
from gateway.ext_proc_contract import ChosenFilter, Pick, Reply
from gateway.ext_proc_messages import TYPES, BadMessage, read, streamed_replies
from gateway.ext_proc_picking import LB_NAMESPACE, SERVED_KEY, SUBSET_KEY, SUBSET_NAMESPACE
from gateway.http2.grpc_calls import CallRefused
from tests.gateway.ext_proc_talk import Talk, pieces_of

DESTINATION = "x-gateway-destination-endpoint"
PICK = Pick(("10.0.0.1:8000", "10.0.0.2:8000"))


class Picker:
    """Gives one verdict, or raises it."""

    reads_answers = False

    def __init__(self, verdict):
        self.verdict, self.asked, self.told, self.over = verdict, [], [], []
        self.passing, self.wholes = b"", []

    def pick(self, asked, now):
        self.asked.append(asked)
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    def filter_of(self, pick, head):
        return None

    def responded(self, pick, status, served):
        self.told.append((status, served))

    def passed(self, pick, data):
        self.passing += data

    def ended(self, pick, *, is_whole):
        self.over.append(pick)
        self.wholes.append(is_whole)


SIDES, PARTS = ("request", "response"), ("headers", "body", "trailers")


class Hiding:
    """Holds back a ``s`` until more comes, and writes ``secret`` otherwise."""

    def __init__(self, raises=None):
        self.held, self.raises, self.due, self.has_ended = b"", raises, False, False

    def feed(self, data, now):
        if self.raises is not None and self.raises in data:
            raise ValueError("the-secret-answer")
        text = (self.held + data).replace(b"secret", b"******")
        keep = next((n for n in range(5, 0, -1) if text.endswith(b"secret"[:n])), 0)
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self, now):
        rest, self.held = self.held, b""
        return rest

    def flush_due(self, now):
        return self.close(now) if self.due else b""


class Chooser:
    def __init__(self, chosen):
        self.chosen, self.heads = chosen, []

    def choose(self, head):
        self.heads.append(head)
        if isinstance(self.chosen, Exception):
            raise self.chosen
        return self.chosen


BODY_AND_CUTS = st.tuples(st.binary(max_size=300), st.sets(st.integers(0, 300), max_size=8))


@given(st.binary(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.binary(max_size=4))))
def test_edits_change_what_they_name_and_nothing_else(body, raw):
    edits, at = [], 0
    for start, end, insert in sorted(raw):
        if at <= start <= end <= len(body):
            edits.append(Edit(start, end, insert))
            at = end
    expected = body
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.insert + expected[edit.end :]
    assert apply_edits(body, edits) == expected


@pytest.mark.parametrize("edits", [[Edit(0, 3, b""), Edit(2, 4, b"")], [Edit(3, 9, b"")], [Edit(2, 1, b"")]])
def test_edits_that_overlap_or_leave_the_body_are_an_error(edits):
    with pytest.raises(ValueError, match="overlaps another or leaves"):
        apply_edits(b"12345", edits)


@given(BODY_AND_CUTS, st.booleans())
@settings(deadline=None)
def test_a_request_goes_on_edited_whatever_its_pieces(body_and_cuts, trailers):
    body, cuts = body_and_cuts
    edit = Edit(len(body) // 2, len(body), b"!")
    picker = Picker(Pick(PICK.endpoints, (("x-tenant", "acme"),), ("authorization",), (edit,)))
    talk = Talk(picker).request(*pieces_of(body, cuts), trailers=trailers)
    assert picker.asked[0].request == Request("POST", "/v1/x", {":method": "POST", ":path": "/v1/x"}, body)
    head = talk.call.sent[0].request_headers.response.header_mutation
    assert [(o.header.key, o.header.raw_value, o.append_action) for o in head.set_headers] == [
        (DESTINATION, b"10.0.0.1:8000,10.0.0.2:8000", 2),
        ("x-tenant", b"acme", 2),
    ]
    assert list(head.remove_headers) == ["authorization"]
    assert talk.call.sent[0].dynamic_metadata[LB_NAMESPACE][DESTINATION] == "10.0.0.1:8000,10.0.0.2:8000"
    assert talk.body("request_body") == apply_edits(body, [edit])
    assert [part.end_of_stream for part in talk.streamed("request_body")][-1] is not trailers
    assert (talk.kinds()[-1] == "request_trailers") is trailers


def test_a_request_without_a_body_is_decided_at_its_headers():
    talk = Talk(Picker(PICK)).say("request_headers", headers={":method": "GET", ":path": "/"}, end_of_stream=True)
    assert talk.kinds() == ["request_headers"]
    talk = Talk(Picker(PICK), modes={"request_body_mode": 0}).say("request_headers", headers={":method": "POST"})
    assert talk.kinds() == ["request_headers"]


@pytest.mark.parametrize("mode", [1, 2, 3, 5])
def test_other_body_modes_are_refused_by_name(mode):
    assert Talk(Picker(PICK), modes={"request_body_mode": mode}).request(b"x").call.status == 9
    assert Talk(Picker(PICK), modes={"request_body_mode": 77}).request(b"x").call.status == 3


def test_a_large_body_goes_on_in_pieces_that_a_proxy_takes():
    talk = Talk(Picker(PICK)).request(bytes(200_000))
    assert max(len(part.body) for part in talk.streamed("request_body")) <= 64 * 1024
    assert [part.end_of_stream for part in talk.streamed("request_body")] == [False, False, False, True]


@given(
    size=st.integers(0, 70_000) | st.sampled_from([0, 127, 128, 16_383, 16_384, 61_440, 61_441, 2**20]),
    ends=st.booleans(),
)
@settings(deadline=None)
def test_pieces_written_by_hand_are_what_protobuf_would_write(size, ends):
    for side in ("request_body", "response_body"):
        for at, reply in enumerate(replies := streamed_replies(side, bytes(size), ends=ends), 1):
            message = TYPES["ProcessingResponse"]()
            part = getattr(message, side).response.body_mutation.streamed_response
            part.body = bytes(min(61_440, size - 61_440 * (at - 1)))
            part.end_of_stream = ends and at == len(replies)
            assert TYPES["ProcessingResponse"].FromString(reply) == message


@pytest.mark.parametrize(
    ("verdict", "status", "code"),
    [
        (Reply(429, b"{}", (("retry-after", "2"),), "rate_limit_exceeded"), 429, "rate_limit_exceeded"),
        (Pick(()), 503, "no_endpoint"),
        (ValueError("the-secret-prompt"), 503, "internal_error"),
        (Pick(PICK.endpoints, edits=(Edit(5, 9, b""),)), 503, "internal_error"),
    ],
    ids=["reply", "no endpoint", "raises", "bad edits"],
)
def test_a_refusal_answers_the_client_at_once(verdict, status, code):
    talk = Talk(Picker(verdict)).request(b"xyz")
    assert talk.kinds() == ["immediate_response"]
    answer = talk.call.sent[0].immediate_response
    assert (answer.status.code, answer.details) == (status, code)
    assert b"secret" not in answer.body
    if status == 503:
        assert f'"code": "{code}"'.encode() in answer.body


def test_a_body_that_is_too_large_is_refused_once_and_not_kept():
    picker = Picker(PICK)
    talk = Talk(picker).request(*[bytes(2**20)] * 12)
    assert talk.kinds() == ["immediate_response"]
    assert talk.call.sent[0].immediate_response.status.code == 413
    assert not picker.asked


@pytest.mark.parametrize("hint", [["10.0.0.2:8000"], ["10.0.0.2"], "10.0.0.9:1, 10.0.0.2:8000"])
def test_only_endpoints_of_the_subset_are_named(hint):
    picker = Picker(PICK)
    talk = Talk(picker).request(b"x", spaces={SUBSET_NAMESPACE: {SUBSET_KEY: hint}})
    assert talk.call.sent[0].dynamic_metadata[LB_NAMESPACE][DESTINATION] == "10.0.0.2:8000"
    assert picker.asked[0].subset is not None


@pytest.mark.parametrize("hint", [[], ["10.0.0.3:8000"], ""])
def test_an_endpoint_outside_of_the_subset_is_no_endpoint(hint):
    picker = Picker(PICK)
    talk = Talk(picker).request(b"x", spaces={SUBSET_NAMESPACE: {SUBSET_KEY: hint}})
    assert talk.call.sent[0].immediate_response.status.code == 503
    talk.handler.closed()
    assert picker.over == [PICK]


def test_the_picker_hears_who_served_what_passed_and_when_it_is_over():
    picker = Picker(PICK)
    talk = Talk(picker).request(b"x").respond(b"y", spaces={LB_NAMESPACE: {SERVED_KEY: "10.0.0.2:8000"}})
    assert picker.told == [(200, "10.0.0.2:8000")]
    assert (picker.passing, picker.over) == (b"y", [])
    talk.handler.closed()
    assert (picker.over, picker.wholes) == ([PICK], [True])


def test_an_answer_whose_end_did_not_pass_is_not_whole():
    picker = Picker(PICK)
    talk = Talk(picker).request(b"x").say("response_headers", headers={":status": "200"})
    talk.say("response_body", body=b"y").handler.closed()
    assert (picker.passing, picker.wholes) == (b"y", [False])
    talk = Talk(picker).request(b"x").respond(b"z", trailers=True)
    talk.handler.closed()
    assert picker.wholes == [False, True]


@given(steps=st.integers(0, 8), allows=st.booleans())
@settings(deadline=None)
def test_each_pick_is_over_once_wherever_the_call_ends(steps, allows):
    picker = Picker(PICK if allows else Reply(503, b""))
    talk = Talk(picker)
    acts = [
        lambda: talk.say("request_headers", headers={":method": "POST"}),
        lambda: talk.say("request_body", body=b"a"),
        lambda: talk.say("request_body", end_of_stream=True),
        lambda: talk.say("response_headers", headers={":status": "200"}),
        lambda: talk.say("response_body", body=b"a"),
        lambda: talk.say("response_body", body=b"a", end_of_stream=True),
        talk.handler.half_closed,
    ]
    for act in acts[:steps]:
        act()
    talk.handler.closed()
    assert picker.over == ([PICK] if allows and steps >= 3 else [])


@example([("request_headers", True), ("request_headers", True)])
@given(st.lists(st.tuples(st.sampled_from([f"{s}_{p}" for s in SIDES for p in PARTS]), st.booleans()), max_size=8))
def test_in_whatever_order_a_proxy_speaks_each_pick_is_over_once(said):
    picker = Picker(PICK)
    talk = Talk(picker)
    for kind, ends in said:
        talk.say(kind, **({} if kind.endswith("trailers") else {"end_of_stream": ends}))
        if talk.call.status is not None:
            break
    talk.handler.closed()
    assert len(picker.over) == len(picker.asked) <= 1


async def test_a_verdict_may_come_later():
    later = asyncio.get_running_loop().create_future()
    talk = Talk(Picker(later)).request(b"x")
    await asyncio.sleep(0)
    assert talk.kinds() == []
    later.set_result(PICK)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert talk.kinds() == ["request_headers", "request_body"]


async def test_a_late_failure_refuses_as_well():
    later = asyncio.get_running_loop().create_future()
    talk = Talk(Picker(later)).request(b"x")
    later.set_exception(ValueError("x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert talk.call.sent[0].immediate_response.status.code == 503


@pytest.mark.parametrize("came", [False, True])
async def test_a_client_that_leaves_while_it_waits_cancels_or_ends_the_pick(came):
    later = asyncio.get_running_loop().create_future()
    picker = Picker(later)
    talk = Talk(picker).request(b"x")
    await asyncio.sleep(0)
    if came:
        later.set_result(PICK)
    talk.handler.closed()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert talk.kinds() == []
    assert picker.over == ([PICK] if came else [])
    assert later.cancelled() is not came


@given(BODY_AND_CUTS, st.booleans())
@settings(deadline=None)
def test_without_a_picker_and_a_filter_everything_passes_unchanged(body_and_cuts, trailers):
    body, cuts = body_and_cuts
    pieces = pieces_of(body, cuts)
    talk = Talk(chooser=Chooser(None)).request(*pieces, trailers=trailers).respond(*pieces, trailers=trailers)
    assert talk.body("request_body") == talk.body("response_body") == body
    assert [part.end_of_stream for part in talk.streamed("response_body")][-1] is not trailers
    assert not talk.call.sent[0].HasField("dynamic_metadata")


@given(BODY_AND_CUTS, st.booleans(), st.sampled_from([1, 2, 4]))
@settings(deadline=None)
def test_a_filtered_response_is_the_filtered_whole_whatever_its_pieces(body_and_cuts, trailers, mode):
    body, cuts = body_and_cuts
    body = body[:100] + b"secret" + body[100:] + b"sec"
    trailers = trailers and mode == 4
    talk = Talk(chooser=Chooser(ChosenFilter(Hiding())), modes={"response_body_mode": mode})
    talk.respond(*pieces_of(body, cuts), trailers=trailers, headers={"content-length": "9"})
    assert "content-length" in talk.call.sent[0].response_headers.response.header_mutation.remove_headers
    if mode == 4:
        assert talk.body("response_body") == body.replace(b"secret", b"******")
        assert [part.end_of_stream for part in talk.streamed("response_body")][-1] is not trailers
    else:
        parts = [a.response_body.response.body_mutation.body for a in talk.call.sent[1:]]
        assert b"".join(parts) == body.replace(b"secret", b"******")
        assert len(parts) == len(pieces_of(body, cuts)) + 1


def test_the_chooser_is_told_what_the_decision_left():
    chooser = Chooser(None)
    metadata = ((b"x-gateway-tenant", b"acme"), (b"x-gateway-model", b"-"), (b"te", b"trailers"))
    talk = Talk(chooser=chooser, metadata=metadata)
    talk.respond(b"x", spaces={DECISION_NAMESPACE: {"x-gateway-output-filter": "pii"}, "other": {"a": "b"}})
    assert chooser.heads[0].metadata == {"x-gateway-tenant": "acme", "x-gateway-output-filter": "pii"}
    assert chooser.heads[0].headers[":status"] == "200"


def test_what_is_held_back_goes_out_in_time():
    hiding = Hiding()
    talk = Talk(chooser=Chooser(ChosenFilter(hiding)))
    talk.say("response_headers", headers={":status": "200"}).say("response_body", body=b"a sec")
    talk.timers.fire()
    assert talk.body("response_body") == b"a "
    hiding.due = True
    talk.timers.fire()
    assert talk.body("response_body") == b"a sec"
    talk.handler.closed()
    talk.timers.fire()
    assert talk.timers.acts == []


@pytest.mark.parametrize("at_tick", [False, True])
def test_a_filter_may_end_the_answer_before_the_engine_does(at_tick):
    hiding, over = Hiding(), []
    chooser = Chooser(ChosenFilter(hiding, on_closed=lambda: over.append(1)))
    talk = Talk(chooser=chooser).say("response_headers", headers={":status": "200"})
    if at_tick:
        talk.say("response_body", body=b"one")
    hiding.has_ended = True
    talk.timers.fire() if at_tick else talk.say("response_body", body=b"one")
    assert [part.end_of_stream for part in talk.streamed("response_body")][-1]
    talk.say("response_body", body=b"two", end_of_stream=True)
    talk.timers.fire()
    assert talk.body("response_body") == b"one"
    assert over == []
    talk.handler.closed()
    assert over == [1]


@pytest.mark.parametrize("open_", [False, True])
def test_a_filter_that_raises_ends_the_response_unless_its_route_says_otherwise(open_):
    talk = Talk(chooser=Chooser(ChosenFilter(Hiding(raises=b"boom"), fails_open=open_)))
    talk.respond(b"one ", b"boom ", b"three")
    assert talk.body("response_body") == (b"one boom three" if open_ else b"one ")
    assert talk.call.status == (None if open_ else 10)


@pytest.mark.parametrize("open_", [False, True])
def test_a_response_that_can_not_be_read_is_not_passed_unless_its_route_says_so(open_):
    talk = Talk(chooser=Chooser(ChosenFilter(Hiding(), fails_open=open_)))
    talk.respond(b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert talk.kinds()[0] == ("response_headers" if open_ else "immediate_response")
    assert talk.body("response_body") == (b"\x1f\x8b" if open_ else b"")


def test_a_filter_without_a_body_to_filter_is_an_error_of_the_configuration():
    chooser = Chooser(ChosenFilter(Hiding()))
    assert Talk(chooser=chooser, modes={"response_body_mode": 0}).respond().kinds()[0] == "immediate_response"
    assert Talk(chooser=chooser).say("response_body", body=b"x").call.status == 9
    assert Talk(Picker(PICK)).say("request_body", body=b"x").call.status == 9


def test_a_chooser_that_raises_gives_the_client_an_error():
    talk = Talk(chooser=Chooser(ValueError("x"))).respond(b"the-secret-answer")
    assert talk.kinds() == ["immediate_response"]
    assert talk.call.sent[0].immediate_response.status.code == 503


def test_observing_alone_is_refused():
    talk = Talk(chooser=Chooser(None))
    message = TYPES["ProcessingRequest"](observability_mode=True)
    message.response_headers.SetInParent()
    with pytest.raises(CallRefused):
        talk.handler.message(message.SerializeToString())


def test_a_proxy_that_takes_nothing_is_listened_to_no_more_until_it_does():
    talk = Talk(chooser=Chooser(None))
    talk.say("response_headers", headers={":status": "200"})
    talk.call.is_blocked = True
    talk.say("response_body", body=b"x")
    assert talk.call.is_paused
    talk.handler.writable()
    assert not talk.call.is_paused


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_no_bytes_do_more_than_refuse_the_call(noise):
    talk = Talk(Picker(PICK), Chooser(ChosenFilter(Hiding())))
    try:
        talk.handler.message(noise)
    except CallRefused:
        talk.call.finish(1)
    talk.handler.closed()


def test_bytes_that_are_no_message_are_told_apart():
    with pytest.raises(BadMessage):
        read(b"\xff\xff")
    assert read(b"").kind == ""
