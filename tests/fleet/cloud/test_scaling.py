"""Each mistake in a trigger is one finding, and a scaler without mistakes has none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.cloud import scaling
from fleet.cloud.definitions import Bundle, bundle_findings, order_findings
from fleet.cloud.scaling import (
    Claim,
    Scaler,
    Trigger,
    Workload,
    owner_findings,
    scaler_findings,
)
from fleet.cloud.trigger_metrics import names_of
from fleet.spec import EngineName

KV = Trigger("kv", metric_type="Value", query="avg(vllm:kv_cache_usage_perc)", ignores_null=False)
QUEUE = Trigger("queue", query="sum(vllm:num_requests_waiting)", ignores_null=False)
GATEWAY = Trigger("gateway", query='sum(enginehouse_gateway_requests_waiting{model="m"})', ignores_null=False)
VLLM = load().metrics(EngineName.VLLM, "0.33.0")
GOOD = Scaler("chat", (KV, QUEUE, GATEWAY), smallest=1, largest=8, fallback_replicas=1, dialects=(VLLM,))
GOOD = replace(GOOD, fallback_behaviour="currentReplicasIfHigher")
TARGET = "inference/Deployment/chat"
CLAIM = Claim("inference/ScaledObject/chat", TARGET)


def rules(scaler: Scaler) -> list[str]:
    return [item.rule.id for item in scaler_findings(scaler)]


def with_query(query: str, metric_type: str = "AverageValue") -> Scaler:
    return replace(GOOD, triggers=(Trigger("one", metric_type=metric_type, query=query, ignores_null=False),))


def test_a_scaler_without_mistakes_has_no_finding() -> None:
    assert rules(GOOD) == []


MISTAKES = {
    "keda-metric-type": replace(GOOD, triggers=(replace(KV, metric_type="AverageValue"), GATEWAY)),
    "keda-one-series": with_query('vllm:num_requests_waiting{model_name="m"}'),
    "keda-null-values": replace(GOOD, triggers=(replace(KV, ignores_null=True),)),
    "keda-metric-known": with_query("avg(vllm:gpu_cache_usage_perc)", "Value"),
    "keda-metric-name": replace(GOOD, triggers=(replace(KV, metric_name="vllm:kv"),)),
    "keda-fallback": replace(GOOD, fallback_replicas=None),
    "keda-wake-up": replace(GOOD, triggers=(KV, QUEUE), smallest=0),
    "keda-name-length": replace(GOOD, name="a" * 55),
    "keda-range": replace(GOOD, smallest=9),
}


@pytest.mark.parametrize("rule", MISTAKES)
def test_each_mistake_is_found_and_no_other(rule: str) -> None:
    assert rules(MISTAKES[rule]) == [rule]


def test_every_rule_of_a_scaler_has_its_mistake() -> None:
    others = {scaling.ONE_OWNER.id}
    assert set(MISTAKES) | others == {rule.id for rule in scaling.RULES}


def test_the_autoscaler_may_have_a_shorter_name_of_its_own() -> None:
    assert rules(replace(GOOD, name="a" * 54)) == []
    assert rules(replace(GOOD, name="a" * 63, hpa_name="short")) == []


def test_a_sum_as_value_multiplies_what_runs() -> None:
    found = list(scaler_findings(with_query("sum(vllm:num_requests_waiting)", "Value")))
    assert [item.rule.id for item in found] == ["keda-metric-type"]
    assert "AverageValue" in found[0].sentence


def test_keda_s_defaults_are_the_mistakes() -> None:
    bare = Scaler("chat", (Trigger("kv", query="avg(vllm:kv_cache_usage_perc)"),))
    assert set(rules(bare)) == {"keda-metric-type", "keda-null-values", "keda-fallback", "keda-wake-up"}


def test_an_idle_count_of_zero_needs_a_wake_up_too() -> None:
    assert rules(replace(GOOD, triggers=(KV,), idle=0)) == ["keda-wake-up"]
    assert rules(replace(GOOD, idle=0)) == []


def test_a_fallback_to_nothing_is_none() -> None:
    assert rules(replace(GOOD, fallback_replicas=0)) == ["keda-fallback"]


def test_a_metric_written_with_an_underscore_is_unknown_and_the_right_one_is_named() -> None:
    found = list(scaler_findings(with_query("sum(vllm_num_requests_waiting)")))
    assert [item.rule.id for item in found] == ["keda-metric-known"]
    assert "vllm:num_requests_waiting" in found[0].sentence


def test_an_old_name_beside_the_new_one_is_fine() -> None:
    query = "avg(vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc)"
    assert rules(with_query(query, "Value")) == []


def test_metrics_of_others_and_of_unknown_engines_are_not_judged() -> None:
    assert rules(with_query("sum(nginx_requests_waiting)")) == []
    assert rules(replace(with_query("avg(vllm:gpu_cache_usage_perc)", "Value"), dialects=())) == []


def test_triggers_that_ask_no_prometheus_need_neither_query_nor_fallback() -> None:
    cron = Trigger("day", type="cron")
    assert rules(replace(GOOD, triggers=(cron,), fallback_replicas=None)) == []


def test_a_query_that_can_t_be_read_is_a_finding_with_its_place() -> None:
    found = list(scaler_findings(with_query("sum(vllm:num_requests_waiting")))
    assert [item.rule.id for item in found] == ["keda-one-series"]
    assert "can't be read" in found[0].message


@pytest.mark.parametrize("name", list(EngineName))
def test_the_names_of_a_dialect_are_known_to_it(name: EngineName) -> None:
    catalogue = load()
    versions = catalogue.versions(name) or ("1.0.0",)
    dialect = catalogue.metrics(name, versions[-1])
    for metric in names_of(dialect):
        scaler = replace(with_query(f"sum({metric})"), dialects=(dialect,))
        assert rules(scaler) == []


def test_replicas_beside_a_scaler_have_two_owners() -> None:
    found = list(owner_findings([Workload(TARGET, 3)], [CLAIM]))
    assert [item.rule.id for item in found] == ["replicas-one-owner"]
    assert "3 replicas" in found[0].message


@pytest.mark.parametrize("workload", [Workload(TARGET, None), Workload(TARGET, 3, ignores_replicas=True)])
def test_replicas_left_out_or_ignored_have_one_owner(workload: Workload) -> None:
    assert list(owner_findings([workload], [CLAIM])) == []


def test_replicas_without_a_scaler_belong_to_the_program() -> None:
    assert list(owner_findings([Workload(TARGET, 3)], [])) == []
    assert list(owner_findings([Workload("other/Deployment/chat", 3)], [CLAIM])) == []


@pytest.mark.parametrize("replicas", ["two", "2", 1.5, True, {}, []])
@pytest.mark.parametrize("claims", [[], [CLAIM]])
def test_replicas_that_are_no_number_are_told_with_and_without_a_scaler(replicas: object, claims: list[Claim]) -> None:
    (found,) = owner_findings([Workload(TARGET, replicas)], claims)
    assert found.rule.id == "replicas-one-owner"
    assert TARGET in found.message
    assert str(replicas) in found.message


def test_two_scalers_of_one_workload_are_named() -> None:
    other = Claim("inference/HorizontalPodAutoscaler/chat", TARGET)
    found = list(owner_findings([], [CLAIM, other]))
    assert [item.rule.id for item in found] == ["replicas-one-owner"]
    assert CLAIM.scaler in found[0].message
    assert other.scaler in found[0].message


KINDS = st.frozensets(st.sampled_from(["keda.sh/ScaledObject", "kueue.x-k8s.io/ClusterQueue", "acme.dev/Thing"]))


@given(KINDS, KINDS)
def test_a_bundle_is_fine_as_long_as_it_does_not_use_what_it_defines(defines: frozenset, uses: frozenset) -> None:
    found = [item.rule.id for item in bundle_findings(Bundle("chart", defines, uses))]
    assert found == (["crd-apart"] if defines & uses else [])


@given(early=st.lists(st.sampled_from(["one", "two"]), unique=True))
def test_objects_that_wait_for_nothing_are_named_with_what_they_need(early):
    found = [item.message for item in order_findings("a.b/C", definition="c", early=early)]
    assert len(found) == bool(early)
    assert all(name in found[0] for name in early)
