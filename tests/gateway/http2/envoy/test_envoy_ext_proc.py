"""External processing and the access log with real Envoy: what the fakes of the other tests stand for."""

import json
import socket

import httpx2
import pytest

from gateway.body_edits import Edit
from gateway.ext_proc_contract import ChosenFilter, Pick, Reply
from gateway.refusals import error_body

PATH = "/v1/chat/completions"
JSON = (("content-type", "application/json"),)


class Picker:
    reads_answers = False

    def __init__(self, verdict):
        self.verdict, self.asked, self.told, self.over = verdict, [], [], 0
        self.passing, self.wholes = b"", []

    def pick(self, asked, now):
        self.asked.append(asked)
        return self.verdict(asked) if callable(self.verdict) else self.verdict

    def filter_of(self, pick, head):
        return None

    def responded(self, pick, status, served):
        self.told.append(status)

    def passed(self, pick, data):
        self.passing += data

    def ended(self, pick, *, is_whole):
        self.over += 1
        self.wholes.append(is_whole)


class Hiding:
    """Writes ``secret`` otherwise, whatever pieces it comes in."""

    def __init__(self, calls=10**9):
        self.held, self.calls, self.has_ended = b"", calls, False

    def feed(self, data, now):
        self.calls -= 1
        if self.calls < 0:
            raise ValueError("the-secret-answer")
        text = (self.held + data).replace(b"secret", b"******")
        keep = next((n for n in range(5, 0, -1) if text.endswith(b"secret"[:n])), 0)
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self, now):
        return self.held

    def flush_due(self, now):
        return b""


@pytest.fixture
def picks(lab):
    with lab.client(lab.picking_port) as client:
        yield client
    lab.log()


@pytest.fixture
def filters(lab):
    lab.opened.clear()
    lab.chooser = lambda head: ChosenFilter(Hiding())
    with lab.client(lab.filtering_port) as client:
        yield client
    lab.log()


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_picked_engine_gets_the_edited_request_and_the_picker_its_end(lab, picks, until, name):
    edit = Edit(6, 6, b', "priority":1')
    lab.picker = Picker(Pick((lab.address(name),), (("x-gateway-tenant", "acme"),), ("authorization",), (edit,)))
    answer = picks.post(PATH, content=b'{"a":1}', headers={"authorization": "Bearer the-key"})
    assert answer.json() == {"engine": name, "got": '{"a":1, "priority":1}'}
    head = lab.requests[-1][1].lower()
    assert f"x-gateway-destination-endpoint: {lab.address(name)}" in head
    assert "x-gateway-tenant: acme" in head
    assert "the-key" not in head
    asked = lab.picker.asked[0].request
    assert (asked.method, asked.target, asked.body) == ("POST", PATH, b'{"a":1}')
    ended = lab.log()[0]
    assert (ended.status, ended.endpoint) == (200, lab.address(name))
    assert ended.metadata == {"envoy.lb": {"x-gateway-destination-endpoint": lab.address(name)}}
    until(lambda: lab.picker.over == 1, "the end of the pick")
    assert (lab.picker.told, lab.picker.passing, lab.picker.wholes) == ([200], answer.content, [True])


def test_more_calls_than_a_connection_may_reset_come_and_go(lab, picks, filters):
    lab.picker = Picker(Pick((lab.address("one"),)))
    for client in (picks, filters):  # the lab allows a few resets alone
        seen = {client.post(PATH, content=b"{}").status_code for _ in range(400)}
        assert seen == {200}


def test_the_next_endpoint_of_the_list_is_tried_when_the_first_is_dead(lab, picks):
    lab.picker = Picker(Pick((lab.address("dead"), lab.address("two"))))
    assert picks.post(PATH, content=b"{}").json()["engine"] == "two"
    assert lab.log()[0].attempts == 2


@pytest.mark.parametrize(
    ("status", "code"), [(503, "no_endpoint"), (429, "rate_limit_exceeded"), (404, "model_not_found")]
)
def test_a_refusal_reaches_the_client_as_it_was_written(lab, picks, status, code):
    body = error_body(status, "no", code=code)
    lab.picker = Picker(Reply(status, body, (*JSON, ("retry-after", "3")), code))
    answer = picks.post(PATH, content=b"{}")
    assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (status, body, "3")
    assert answer.headers["content-type"] == "application/json"
    assert (lab.log()[0].details, lab.picker.over) == (code, 0)


def test_large_bodies_and_requests_without_a_body_and_chunked_ones_pass(lab, picks):
    lab.picker = Picker(Pick((lab.address("one"),)))
    large = "x" * 3_000_000
    assert picks.post(PATH, content=large.encode()).json()["got"] == large
    assert picks.get("/v1/models").json() == {"engine": "one", "got": ""}
    assert picks.post(PATH, content=iter([b'{"a"', b":1}"])).json()["got"] == '{"a":1}'
    assert picks.post(PATH, content=b"x" * 9_000_000).status_code == 413


def test_a_picker_that_raises_refuses_with_an_error_of_our_form(lab, picks):
    lab.picker = Picker(lambda asked: 1 / 0)
    answer = picks.post(PATH, content=b"{}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "internal_error")


def test_a_client_that_leaves_ends_its_pick_and_its_engine_request(lab, picks, until):
    lab.picker = picker = Picker(Pick((lab.address("one"),)))
    aborted = lab.aborted
    with picks.stream("POST", PATH, content=b'{"stream":"endless"}') as answer:
        next(answer.iter_bytes())
    until(lambda: picker.over == 1, "the end of the pick")
    until(lambda: lab.aborted == aborted + 1, "the abort of the engine")
    ended = lab.log()[0]
    assert (ended.flags, ended.client_left, ended.status) == (("DC",), True, 200)
    assert picker.wholes == [False]


def test_a_route_without_a_filter_asks_nobody(lab, filters):
    answer = filters.post(PATH, content=b'{"stream":1}')
    assert answer.text == "".join(f'data: {{"t":"secret {n}"}}\n\n' for n in range(3))
    assert lab.opened == []
    ended = lab.log()[0]
    assert (ended.ticket, ended.flags, ended.details) == ("t-1", (), "via_upstream")
    assert ended.metadata["usage"]["chunks"] >= 2


def test_a_split_value_is_replaced_in_a_stream_of_the_route_that_asks(lab, filters):
    heads = []
    lab.chooser = lambda head: heads.append(head) or ChosenFilter(Hiding())
    answer = filters.post(PATH, content=b'{"stream":1}', headers={"x-test-filter": "pii"})
    assert answer.text == "".join(f'data: {{"t":"****** {n}"}}\n\n' for n in range(3))
    assert heads[0].metadata["x-gateway-output-filter"] == "pii"
    assert lab.opened[0][b"x-gateway-tenant"] == b"acme"
    assert len(lab.opened) == 1


def test_a_whole_answer_is_filtered_and_has_no_wrong_length(lab, filters):
    answer = filters.post(PATH, content=b'{"a":"secret"}', headers={"x-test-filter": "pii"})
    assert json.loads(answer.json()["got"]) == {"a": "******"}


@pytest.mark.parametrize("calls", [0, 4])
def test_a_filter_that_raises_cuts_the_answer_or_makes_it_a_503_never_a_clean_end(lab, filters, calls):
    lab.chooser = lambda head: ChosenFilter(Hiding(calls))
    try:
        answer = filters.post(PATH, content=b'{"stream":1}', headers={"x-test-filter": "pii"})
    except httpx2.RemoteProtocolError:
        answer = None
    if answer is not None:  # Envoy had not sent the headers yet
        assert (answer.status_code, answer.content) == (503, b"")
    assert "ext_proc_error" in lab.log()[0].details


def test_a_filter_that_ends_the_answer_stops_the_engine_and_the_client_gets_a_clean_end(lab, filters, until):
    aborted = lab.aborted

    class Ending(Hiding):
        def feed(self, data, now):
            self.has_ended = b"ret" in data
            return b"the end" if self.has_ended else b""

    lab.chooser = lambda head: ChosenFilter(Ending())
    answer = filters.post(PATH, content=b'{"stream":"endless"}', headers={"x-test-filter": "pii"})
    assert (answer.status_code, answer.text) == (200, "the end")
    until(lambda: lab.aborted == aborted + 1, "the abort of the engine")


def test_a_filter_that_can_not_be_chosen_is_an_error_of_our_form(lab, filters):
    lab.chooser = lambda head: 1 / 0
    answer = filters.post(PATH, content=b'{"stream":1}', headers={"x-test-filter": "pii"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "output_filter_unavailable")
    assert "secret" not in answer.text


@pytest.mark.parametrize("name", ["pii", None])
def test_a_stream_that_its_client_left_is_in_the_log_with_what_was_counted(lab, filters, until, name):
    closed, aborted = lab.closed, lab.aborted
    headers = {"x-test-filter": name} if name else {}
    with filters.stream("POST", PATH, content=b'{"stream":"endless"}', headers=headers) as answer:
        next(answer.iter_bytes())
    until(lambda: lab.aborted == aborted + 1, "the abort of the engine")
    ended = lab.log()[0]
    assert (ended.flags, ended.details, ended.ticket) == (("DC",), "downstream_remote_disconnect", "t-1")
    assert ended.metadata["usage"]["chunks"] >= 1
    until(lambda: lab.closed == closed + (name is not None), "the end of the call")


def test_a_client_that_does_not_read_costs_a_bounded_memory(lab, filters):
    def resident():
        with open(f"/proc/{lab.envoy.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024

    before = resident()
    lab.count_request()
    with socket.create_connection(("127.0.0.1", lab.filtering_port)) as client:
        body = b'{"stream":"flood"}'
        client.sendall(
            b"POST / HTTP/1.1\r\nhost: x\r\nx-test-filter: pii\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        lab.settled()
        assert resident() - before < 24


def test_without_the_service_nothing_passes_that_it_should_have_seen(own_lab):
    own_lab.run(own_lab.leave())
    with own_lab.client(own_lab.picking_port) as client:
        assert client.post(PATH, content=b"{}").status_code == 503
    with own_lab.client(own_lab.filtering_port) as client:
        assert client.post(PATH, content=b'{"a":"secret"}', headers={"x-test-filter": "pii"}).status_code == 503
        assert client.post(PATH, content=b"{}").status_code == 200
