"""When replicas are made, kept and let go."""

import pytest

from fleet.cloud.promql import shape_of
from workloads import RenderGround


def scaler(objects, manifest, ground=None):
    return objects(manifest, ground)["ScaledObject"]["spec"]


def triggers(objects, manifest):
    return {item["name"]: item for item in scaler(objects, manifest)["triggers"]}


@pytest.mark.parametrize(
    ("scaling", "replicas"),
    [({}, 1), ({"min": 0, "max": 1}, 1), ({"min": 3, "max": 3}, 3)],
)
def test_a_fixed_number_needs_no_scaler(make, objects, scaling, replicas):
    found = objects(make(scaling=scaling))
    assert "ScaledObject" not in found
    assert found["Deployment"]["spec"]["replicas"] == replicas


@pytest.mark.parametrize(
    ("scaling", "smallest", "largest", "idle"),
    [
        ({"min": 1, "max": 8}, 1, 8, None),
        ({"min": 0, "max": 8}, 1, 8, None),
        ({"min": 2, "max": 8, "idle": "scale-to-zero"}, 2, 8, 0),
        ({"min": 0, "max": 1, "idle": "scale-to-zero"}, 1, 1, 0),
    ],
)
def test_never_idle_keeps_one_and_scale_to_zero_lets_all_go(make, objects, scaling, smallest, largest, idle):
    found = scaler(objects, make(scaling=scaling))
    assert (found["minReplicaCount"], found["maxReplicaCount"]) == (smallest, largest)
    assert found.get("idleReplicaCount") == idle
    assert found["fallback"]["replicas"] == smallest


def test_averages_are_values_and_sums_are_average_values(make, objects):
    found = triggers(objects, make(scaling={"max": 8, "idle": "scale-to-zero"}))
    kinds = {name: (shape_of(item["metadata"]["query"]).kind, item["metricType"]) for name, item in found.items()}
    assert kinds == {
        "kv-cache": ("average", "Value"),
        "engine-queue": ("sum", "AverageValue"),
        "running": ("sum", "AverageValue"),
        "gateway": ("sum", "AverageValue"),
    }


def test_a_missing_metric_is_zero_only_where_nothing_may_run(make, objects):
    kept = triggers(objects, make(scaling={"max": 8}))
    assert "up{" not in kept["kv-cache"]["metadata"]["query"]
    sleeping = triggers(objects, make(scaling={"max": 8, "idle": "scale-to-zero"}))
    assert "unless on() count(up{" in sleeping["kv-cache"]["metadata"]["query"]
    assert "up{" not in sleeping["gateway"]["metadata"]["query"]


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm"])
def test_queries_have_the_engine_s_own_names(make, objects, catalogue, name):
    manifest = make("chat", name, scaling={"max": 2})
    dialect = catalogue.metrics(name, manifest.spec.engine.version)
    found = triggers(objects, manifest)
    assert dialect.kv_usage in found["kv-cache"]["metadata"]["query"]
    assert dialect.waiting in found["engine-queue"]["metadata"]["query"]


def test_the_public_name_is_quoted(make, objects):
    query = triggers(objects, make(served_name='a"b\\c', scaling={"max": 2}))["gateway"]["metadata"]["query"]
    assert query == 'sum(enginehouse_gateway_requests_waiting{model="a\\"b\\\\c"})'
    assert shape_of(query).is_single


def test_the_ground_says_whom_to_ask_and_where(make, objects):
    ground = RenderGround(namespace="prod", prometheus_url="http://prometheus.invalid")
    (kv, *_) = scaler(objects, make(scaling={"max": 2}), ground)["triggers"]
    assert kv["metadata"]["serverAddress"] == "http://prometheus.invalid"
    assert 'namespace="prod",enginehouse_dev_deployment="support-chat"' in kv["metadata"]["query"]


def scheduled(objects, make, *entries):
    schedule = [{"timezone": "Europe/Berlin", "min": 2, **entry} for entry in entries]
    found = triggers(objects, make(scaling={"max": 8, "schedule": schedule}))
    return [(item["metadata"]["start"], item["metadata"]["end"]) for item in found.values() if item["type"] == "cron"]


def test_an_entry_holds_to_the_next_of_its_day_else_to_the_end_of_it(make, objects):
    day = "* * 1-5"
    found = scheduled(objects, make, {"cron": f"0 8 {day}"}, {"cron": f"30 17 {day}"}, {"cron": f"0 12 {day}"})
    assert found == [
        (f"0 8 {day}", f"0 12 {day}"),
        (f"30 17 {day}", f"59 23 {day}"),
        (f"0 12 {day}", f"30 17 {day}"),
    ]


def test_other_days_and_zones_end_nothing(make, objects):
    found = scheduled(
        objects, make, {"cron": "0 8 * * 1-5"}, {"cron": "0 9 * * 6"}, {"cron": "0 10 * * 1-5", "timezone": "UTC"}
    )
    assert [end for _, end in found] == ["59 23 * * 1-5", "59 23 * * 6", "59 23 * * 1-5"]


def test_clocks_that_name_no_minute_hold_to_the_end_of_the_day(make, objects):
    assert scheduled(objects, make, {"cron": "*/5 8-17 * * *"}) == [("*/5 8-17 * * *", "59 23 * * *")]


def test_a_schedule_alone_makes_a_scaler(make, objects):
    found = scaler(objects, make(scaling={"schedule": [{"cron": "0 8 * * *", "min": 1}]}))
    assert (found["minReplicaCount"], found["maxReplicaCount"]) == (1, 1)
