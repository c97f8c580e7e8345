"""Usage through real Envoy: each request is one record, whatever is killed meanwhile, and budgets outlive a kill."""

import json
import signal
from pathlib import Path

import httpx2
import pytest

from fleet.budget import ModelPrice
from fleet.snapshot import GatewayTenant

CHAT = "/v1/chat/completions"
PRICE = ModelPrice(model="acme-chat", usd_per_million_input_tokens=1, usd_per_million_output_tokens=2)
SECRETS = ("the-secret-prompt", "eh-acme")


def chat(**members):
    return {"model": "acme-chat", "messages": [{"role": "user", "content": "the-secret-prompt"}], **members}


@pytest.fixture
def own(gateway_maker, world):
    """A gateway that a test may kill, with quick batches."""
    made = gateway_maker()
    made.settings["usage"] = {"batch_seconds": 0.1, "sync_seconds": 0.02, "is_logged": True}
    limited = GatewayTenant(name="acme", tokens_per_day=200)
    snapshot = world.snapshot(made.one.address)
    tenants = (limited, *snapshot.tenants[1:])
    made.publish(snapshot.model_copy(update={"tenants": tenants, "prices": (PRICE,)}))
    made.start_decision()
    made.start_envoy()
    return made


def ask(gateway, world, **members):
    headers = {"authorization": f"Bearer {world.acme_key}"}
    return httpx2.post(gateway.url + CHAT, json=chat(**members), headers=headers, timeout=10)


def files(gateway):
    return sorted((Path(str(gateway.settings["state_dir"])) / "usage").glob("*"))


def on_disk(gateway):
    return sum(path.read_bytes().count(b"\n") for path in files(gateway))


def restart(gateway):
    Path(str(gateway.settings["ready_file"])).unlink(missing_ok=True)
    gateway.start_decision()


def test_each_request_is_one_record_with_its_cost_and_without_content(own, world, until):
    assert ask(own, world, max_tokens=5).status_code == 200
    own.one.first = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    own.one.last = b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3}}\n\ndata: [DONE]\n\n'
    own.one.go_on.set()
    assert ask(own, world, max_tokens=5, stream=True).status_code == 200
    until(lambda: len(own.control_plane.usage) == 2, "two records")
    whole, stream = own.control_plane.usage
    assert whole["basis"] == "reserved"  # the fake engine answers without usage
    assert (stream["basis"], stream["input_tokens"], stream["output_tokens"]) == ("usage", 11, 3)
    assert stream["cost_picodollars"] == 11 * 10**6 + 3 * 2 * 10**6
    assert (stream["tenant"], stream["model"], stream["key"], stream["end"]) == ("acme", "acme-chat", "k1", "whole")
    assert (stream["deployment"], stream["identity"]) == ("chat", world.arm().identity)
    assert 0 < stream["seconds"] < 10
    assert not any(word in json.dumps(own.control_plane.usage) for word in SECRETS)
    until(lambda: not files(own), "nothing waits")
    assert own.metric('enginehouse_gateway_usage_records_total{outcome="stored"}') == 2
    lines = [json.loads(line) for line in own.gateway_log.splitlines() if "request.ended" in line]
    assert [(line["input_tokens"], line["output_tokens"]) for line in lines][-1] == (11, 3)
    assert (lines[-1]["endpoint"], lines[-1]["key"]) == (own.one.address, "k1")
    assert 0 < lines[-1]["first_byte_seconds"] <= lines[-1]["seconds"]
    ids = {line["request_id"] for line in lines}
    until(lambda: ids <= {line["request_id"] for line in own.access_log}, "the same requests in the access log")
    assert own.metric("enginehouse_gateway_time_to_first_token_seconds_count") == 1
    assert own.metric("enginehouse_gateway_time_per_output_token_seconds_count") == 1
    assert own.metric("enginehouse_gateway_request_seconds_count") == 2
    assert own.metric("enginehouse_gateway_requests_by_engine_total") == 2
    assert not any(word in own.gateway_log for word in SECRETS)


def test_a_killed_gateway_brings_what_was_on_disk_and_gives_nobody_the_day_twice(own, world, until):
    own.control_plane.usage_status = 503
    answers = [ask(own, world, max_tokens=20).status_code for _ in range(12)]
    served = answers.count(200)
    assert answers == [200] * served + [429] * (12 - served)
    until(lambda: on_disk(own) == served, "every record on disk")
    kept = Path(str(own.settings["state_dir"])) / "budgets.json"
    until(lambda: kept.exists() and _charged(kept) > 200 - 40, "the day's charge on disk")
    own.end(own.decision, signal.SIGKILL)
    last = files(own)[-1]
    last.write_bytes(last.read_bytes() + b'{"id":"cut')
    assert not own.control_plane.usage
    own.control_plane.usage_status = 200
    restart(own)
    until(lambda: len({item["id"] for item in own.control_plane.usage}) == served, "every record")
    assert len(own.control_plane.usage) == served
    assert [item["admitted_unix_seconds"] for item in own.control_plane.usage] == sorted(
        item["admitted_unix_seconds"] for item in own.control_plane.usage
    )
    refused = ask(own, world, max_tokens=20)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    until(lambda: not files(own), "nothing waits")


def _charged(path):
    accounts = json.loads(path.read_text())["accounts"]
    return max((item["amount"] for item in accounts if item["unit"] == "tokens per day"), default=0)


def test_a_stream_in_flight_of_a_killed_gateway_is_charged_whole(own, world, until):
    kept = Path(str(own.settings["state_dir"])) / "budgets.json"
    headers = {"authorization": f"Bearer {world.acme_key}"}
    with httpx2.Client(base_url=own.url, headers=headers, timeout=10) as client:
        with client.stream("POST", CHAT, json=chat(stream=True, max_tokens=150)) as stream:
            pieces = stream.iter_raw()  # whose end would be the client's
            assert next(pieces)
            until(lambda: kept.exists() and _charged(kept) >= 150, "what it holds on disk")
            own.end(own.decision, signal.SIGKILL)
        restart(own)
        assert ask(own, world, max_tokens=60).status_code == 429


def test_a_gateway_that_is_stopped_brings_its_last_records_and_one_that_can_not_keeps_them(own, world, until):
    assert ask(own, world, max_tokens=5).status_code == 200
    assert own.end(own.decision) == 0
    assert len(own.control_plane.usage) == 1
    own.control_plane.usage_status = 500
    restart(own)
    assert ask(own, world, max_tokens=5).status_code == 200
    assert own.end(own.decision) == 0
    assert (len(own.control_plane.usage), on_disk(own)) == (1, 1)
    own.control_plane.usage_status = 200
    restart(own)
    until(lambda: len(own.control_plane.usage) == 2, "the record of before")


def test_records_that_nobody_can_read_are_set_aside_and_the_next_ones_come(own, world, until):
    own.control_plane.usage_status = 422
    assert ask(own, world, max_tokens=5).status_code == 200
    until(lambda: [path.suffix for path in files(own)] == [".refused"], "the batch set aside")
    own.control_plane.usage_status = 200
    assert ask(own, world, max_tokens=5).status_code == 200
    until(lambda: len(own.control_plane.usage) == 1, "the next record")
    assert own.metric('enginehouse_gateway_usage_records_total{outcome="refused"}') == 1


def test_a_disk_that_can_not_be_written_stops_no_request(own, world, until):
    folder = Path(str(own.settings["state_dir"])) / "usage"
    away = folder.rename(folder.with_name("away"))
    folder.write_bytes(b"")  # no folder any more, for root as well
    assert ask(own, world, max_tokens=5).status_code == 200
    until(lambda: own.metric("enginehouse_gateway_usage_disk_failures_total") >= 2, "two failures")
    assert ask(own, world, max_tokens=5).status_code == 200
    assert own.gateway_log.count("usage.not_written") == 1
    folder.unlink()
    away.rename(folder)
    until(lambda: len(own.control_plane.usage) == 2, "both records, late")
