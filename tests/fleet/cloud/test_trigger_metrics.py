"""A metric is refused where an engine is known not to have it, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.cloud.promql import shape_of
from fleet.cloud.trigger_metrics import EXPOSED, SUFFIXES, metric_findings
from fleet.spec import EngineName

VLLM = load().metrics(EngineName.VLLM, "0.33.0")
SGLANG = load().metrics(EngineName.SGLANG, load().versions(EngineName.SGLANG)[-1])


def said(query, *dialects):
    return [item.sentence for item in metric_findings("it", shape_of(query), dialects)]


@given(st.sampled_from(sorted(EXPOSED["vllm"].names)), st.sampled_from(["", *SUFFIXES]))
def test_what_servers_expose_and_the_parts_of_it_are_known(name, suffix):
    assert said(f"sum(rate({name}{suffix}[5m]))", VLLM) == []


@given(st.sampled_from(sorted(EXPOSED["vllm"].names)))
def test_a_name_with_an_underscore_for_the_colon_is_refused_and_the_right_one_told(name):
    (sentence,) = said(f"sum({name.replace(':', '_')})", VLLM)
    assert name in sentence


@pytest.mark.parametrize("name", ["vllm:gpu_cache_usage_perc", "vllm:num_requests_swapped", "vllm:no_such_thing"])
def test_what_no_server_of_vllm_exposed_is_refused(name):
    assert len(said(f"sum({name})", VLLM)) == 1


@pytest.mark.parametrize("name", ["vllm:spec_decode_num_drafts_total", "nginx_requests", "up"])
def test_metrics_of_settings_and_of_others_are_not_refused(name):
    assert said(f"sum({name})", VLLM) == []


def test_of_other_engines_only_what_is_misspelt_is_refused():
    assert said("sum(sglang:gen_throughput)", SGLANG) == []
    assert said("sum(rate(sglang:time_to_first_token_seconds_sum[1m]))", SGLANG) == []
    assert "sglang:num_queue_reqs" in said("sum(sglang_num_queue_reqs)", SGLANG)[0]
    assert "sglang:num_queue_reqs" in said("sum(sglang:num_queue_req)", SGLANG)[0]


def test_series_by_label_can_t_be_judged_and_it_is_said():
    assert "can't be judged" in said('sum({job="x"})', VLLM)[0]
