"""Usage: each record counts once, whoever sends it again; sums by tenant, model and day, as pages and as a table."""

import csv
import io
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.records import Scope
from control_plane.usage_sums import Amounts, Dimension, summed
from fleet.usage import UsageRecord

PATH = "/v1/usage"
BRING = "/v1/gateway/usage"
DAY_SECONDS = 86_400


def record(number, clock, **fields):
    """A record of this moment of a clock."""
    return {
        "id": f"record-{number:012d}",
        "tenant": "acme",
        "model": "chat",
        "deployment": "chat-a",
        "identity": "0" * 32,
        "key": "k1",
        "admitted_unix_seconds": clock.now().timestamp(),
        "seconds": 1.5,
        "input_tokens": 10,
        "cached_tokens": 4,
        "output_tokens": 7,
        "cost_picodollars": 2_000_000,
        "basis": "usage",
        "end": "whole",
        "status": 200,
        **fields,
    }


def bring(world, *records, scope=Scope.GATEWAY):
    return world.call("POST", BRING, scope=scope, json={"records": list(records)})


def signed_in(world, scope):
    headers = {"Origin": "http://testserver"}
    return world.client.post("/sign-in", data={"token": world.tokens[scope]}, headers=headers, follow_redirects=False)


def items(world, **query):
    answer = world.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def test_a_record_counts_once_however_often_it_comes(world):
    batch = [record(number, world.clock) for number in range(3)]
    first = bring(world, *batch, batch[0]).json()
    assert first == {"stored": 3, "duplicates": 1, "too_old": 0, "too_new": 0}
    again = bring(world, *batch, record(3, world.clock)).json()
    assert (again["stored"], again["duplicates"]) == (1, 3)
    (sums,) = items(world)
    assert (sums["requests"], sums["input_tokens"], sums["cached_tokens"], sums["output_tokens"]) == (4, 40, 16, 28)
    assert sums["cost_usd"] == "0.000008"
    assert (sums["tenant"], sums["model"], sums["day"]) == ("acme", "chat", world.clock.now().date().isoformat())
    assert sums["deployment"] is None
    assert sums["key"] is None


EXAMPLES = count()
SENT = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from(["acme", "globex"]), st.sampled_from(["a", "b"]), st.integers(0, 9)),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(batches=st.lists(SENT, max_size=4), again=st.booleans())
def test_sums_are_those_of_the_distinct_records(world, batches, again):
    before = {(item["tenant"], item["model"]): item["output_tokens"] for item in items(world, group_by="tenant,model")}
    sent, expected, example = {}, Counter(before), next(EXAMPLES)
    for batch in batches * (2 if again else 1):
        records = []
        for number, tenant, model, tokens in batch:
            number += 100 * example
            made = record(number, world.clock, tenant=tenant, model=model, output_tokens=tokens)
            if sent.setdefault(number, made) is made:
                expected[tenant, model] += tokens
            records.append(made)
        assert bring(world, *records).status_code == 200
    found = {(item["tenant"], item["model"]): item["output_tokens"] for item in items(world, group_by="tenant,model")}
    assert {key: n for key, n in found.items() if n} == {key: n for key, n in expected.items() if n}


def test_records_of_days_whose_ids_are_forgotten_are_never_counted_twice(world):
    old = record(1, world.clock)
    assert bring(world, old).json()["stored"] == 1
    world.clock.moment = world.clock.now() + timedelta(days=15)
    late = bring(world, old, record(2, world.clock)).json()
    assert late == {"stored": 1, "duplicates": 0, "too_old": 1, "too_new": 0}
    with world.assembly.store.read() as unit:
        assert unit.usage.known([old["id"], "record-000000000002"]) == {"record-000000000002"}
    assert sum(item["requests"] for item in items(world)) == 2


def test_a_gateway_whose_clock_is_wrong_is_told(world):
    ahead = record(1, world.clock, admitted_unix_seconds=world.clock.now().timestamp() + 3 * DAY_SECONDS)
    assert bring(world, ahead).json()["too_new"] == 1
    assert items(world) == []


def test_only_a_gateway_brings_records_and_a_gateway_does_nothing_else(world):
    for scope in (Scope.READER, Scope.OPERATOR, Scope.SECURITY_ADMIN):
        refused = bring(world, record(1, world.clock), scope=scope)
        assert refused.status_code == 403
        assert "'gateway'" in refused.json()["detail"]
    assert world.get("/v1/gateway/snapshot", scope=Scope.GATEWAY).status_code == 200
    for path in (PATH, "/v1/usage.csv", "/v1/deployments", "/v1/keys", "/v1/audit-events"):
        assert world.get(path, scope=Scope.GATEWAY).status_code == 403
    assert world.call("PUT", "/v1/tenants/acme", scope=Scope.GATEWAY, json={}).status_code == 403
    assert signed_in(world, Scope.GATEWAY).status_code == 401


def test_usage_is_told_apart_by_what_is_asked(world):
    yesterday = world.clock.now().timestamp() - DAY_SECONDS
    bring(
        world,
        record(1, world.clock, tenant="acme", key="k1"),
        record(2, world.clock, tenant="acme", key="k2", deployment="chat-b", basis="counted", end="client_left"),
        record(3, world.clock, tenant="globex", cost_picodollars=None, basis="failed", status=500),
        record(4, world.clock, tenant="globex", admitted_unix_seconds=yesterday),
    )
    assert [item["requests"] for item in items(world, group_by="tenant")] == [2, 2]
    assert [item["requests"] for item in items(world, group_by="key,deployment")] == [3, 1]
    assert [item["requests"] for item in items(world, group_by="day")] == [1, 3]
    globex = items(world, tenant="globex", group_by="model")[0]
    assert (globex["requests"], globex["unanswered_requests"], globex["unpriced_requests"]) == (2, 1, 1)
    assert items(world, tenant="acme", group_by="model")[0]["estimated_requests"] == 1
    today = world.clock.now().date().isoformat()
    assert sum(item["requests"] for item in items(world, **{"from": today})) == 3
    day_before = (world.clock.now().date() - timedelta(days=1)).isoformat()
    assert sum(item["requests"] for item in items(world, to=day_before)) == 1
    assert items(world, model="other") == []


def test_every_group_is_on_exactly_one_page(world):
    bring(world, *(record(n, world.clock, tenant=f"t{n % 5}", model=f"m{n % 3}") for n in range(60)))
    seen, token = [], None
    while True:
        query = {"page_size": 4} | ({"page_token": token} if token else {})
        page = world.get(PATH, params=query).json()
        seen += [(item["tenant"], item["model"]) for item in page["items"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert seen == sorted({(f"t{n % 5}", f"m{n % 3}") for n in range(60)})


@pytest.mark.parametrize("is_named", [True, False])
def test_a_table_holds_everything_and_is_exact(world, is_named):
    bring(world, *(record(n, world.clock, tenant=f"t{n}", model='m,"=1', cost_picodollars=n) for n in range(700)))
    answer = world.get("/v1/usage.csv") if is_named else world.get(PATH, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 700
    assert {row["model"] for row in rows} == {'m,"=1'}
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal(sum(range(700))) / 10**12


@pytest.mark.parametrize(
    "query",
    [
        {"group_by": "nothing"},
        {"group_by": ""},
        {"from": "2026-02-30"},
        {"from": "yesterday"},
        {"from": "2026-03-02", "to": "2026-03-01"},
        {"tenants": "acme"},
        {"page_token": "x"},
    ],
)
def test_what_can_not_be_asked_is_told(world, query):
    assert world.get(PATH, params=query).status_code in (400, 422)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "short"},
        {"tenant": "No Name"},
        {"output_tokens": -1},
        {"prompt": "content"},
        {"cost_picodollars": -1},
        {"model": "a\nb"},
        {"admitted_unix_seconds": 1e300},
    ],
)
def test_a_wrong_record_is_refused_and_nothing_of_its_batch_counts(world, wrong):
    assert bring(world, record(1, world.clock), record(2, world.clock, **wrong)).status_code == 422
    assert items(world) == []


@given(costs=st.lists(st.integers(0, 10**24), min_size=1, max_size=20))
def test_no_picodollar_is_lost_in_a_sum(costs):
    class Now:
        def now(self):
            return datetime(2030, 1, 1, tzinfo=UTC)

    records = [UsageRecord(**record(n, Now(), cost_picodollars=cost)) for n, cost in enumerate(costs)]
    (amounts,) = summed(records).values()
    assert amounts.cost_picodollars < 10**12
    assert amounts.cost_usd * 10**12 + amounts.cost_picodollars == sum(costs)
    assert Decimal(amounts.cost) * 10**12 == sum(costs)


def test_stored_costs_are_carried_into_dollars(world):
    for number in range(3):
        bring(world, record(number, world.clock, cost_picodollars=7 * 10**11))
    (sums,) = items(world)
    assert sums["cost_usd"] == "2.1"
    assert Amounts(cost_picodollars=5).plus(Amounts(cost_picodollars=10**12 - 1)).cost == "1.000000000004"
    assert {dimension.value for dimension in Dimension} <= sums.keys()


def test_a_page_shows_what_tenants_used_in_this_month(world):
    bring(
        world,
        record(1, world.clock, tenant="acme", model="<b>chat", input_tokens=1234567),
        record(2, world.clock, tenant="globex", cost_picodollars=None),
    )
    assert signed_in(world, Scope.READER).status_code == 303
    page = world.client.get("/usage").text
    assert "1,234,567" in page
    assert "&lt;b&gt;chat" in page
    assert "globex" in page
    assert "no price" in page
    world.client.cookies.clear()
    assert world.client.get("/usage").status_code == 401
