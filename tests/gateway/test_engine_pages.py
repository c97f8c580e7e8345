"""What an engine's page says: pages of real and simulated engines, any bytes, restarts."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.request_side import metrics_by_engine
from gateway.engine_pages import MOST, PageNames, page_names, read_page

CAPTURES = Path(__file__).parents[3] / "shared" / "engines" / "captures"
NAMES = {engine: page_names(dialects) for engine, dialects in metrics_by_engine().items()}
VLLM = NAMES["vllm"]
WORDS = st.sampled_from(
    [
        "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:cache_config_info",
        "process_start_time_seconds", "vllm:prefix_cache_hits_total", "{", "}", 'engine="0"', 'num_gpu_blocks="256"',
        'block_size="32"', 'block_size="0"', 'tp_rank="1"', ",", " ", "\n", "# ", "1.0", "-3", "NaN", "+Inf", "1e308",
        '\\"', '"', "\r", "é",
    ]
)  # fmt: skip
PAGES = st.binary(max_size=400) | st.lists(WORDS | st.text(max_size=3), max_size=60).map(
    lambda words: "".join(words).encode("utf-8", "surrogatepass")
)


def page(running=3, waiting=7, usage=0.5, *more):
    lines = [
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        f'vllm:num_requests_running{{engine="0",model_name="a b}}"}} {running}',
        f'vllm:num_requests_waiting{{engine="0",model_name="a b}}"}} {waiting}',
        f'vllm:num_requests_waiting_by_reason{{engine="0",reason="capacity"}} {waiting}',
        f'vllm:kv_cache_usage_perc{{engine="0"}} {usage}',
        *more,
    ]
    return ("\n".join(lines) + "\n").encode()


@given(PAGES, st.sampled_from([names for names in NAMES.values() if names]))
def test_any_bytes_are_a_page_or_none(data, names):
    found = read_page(data, names)
    if found is not None:
        assert 0 <= found.running <= MOST
        assert 0 <= found.waiting <= MOST
        assert 0 <= found.kv_usage <= 1
        assert found.cache_tokens is None or 0 < found.cache_tokens <= MOST
        assert found.is_after_restart(found) is False


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.floats(0, 1),
    st.lists(st.text(alphabet='abc:_{} "\\#', max_size=30)),
)
def test_other_lines_change_nothing(running, waiting, usage, others):
    found = read_page(page(running, waiting, usage, *(f"x{other}" for other in others)), VLLM)
    assert (found.running, found.waiting, found.kv_usage) == (running, waiting, usage)


@pytest.mark.parametrize(
    ("name", "running", "waiting", "tokens"),
    [("vllm32_metrics_saturated", 3, 7, 8192), ("vllm31_metrics", 0, 0, 2**20)],
)
def test_pages_of_real_engines(name, running, waiting, tokens):
    path = CAPTURES / f"{name}.body"
    if not path.exists():
        pytest.skip("the captures of real engines are not beside this checkout")
    found = read_page(path.read_bytes(), VLLM)
    assert (found.running, found.waiting, found.block_tokens) == (running, waiting, 32)
    assert found.cache_tokens == tokens
    assert found.started_at > 1.7e9
    assert None not in found.counted


def test_engines_of_one_server_are_added_and_ranks_that_share_a_request_are_not():
    more = ['vllm:num_requests_waiting{engine="1",model_name="m"} 2', 'vllm:kv_cache_usage_perc{engine="1"} 0.75']
    more += [f'vllm:cache_config_info{{block_size="16",engine="{n}",num_gpu_blocks="100"}} 1.0' for n in "01"]
    found = read_page(page(3, 7, 0.5, *more), VLLM)
    assert (found.waiting, found.kv_usage, found.cache_tokens, found.block_tokens) == (9, 0.75, 3200, 16)
    ranks = "".join(
        f'sglang:{name}{{tp_rank="{rank}",pp_rank="0"}} 4.0\n'
        for name in ("num_running_reqs", "num_queue_reqs", "max_total_num_tokens")
        for rank in "01"
    )
    found = read_page(ranks.encode(), NAMES["sglang"])
    assert (found.running, found.waiting, found.cache_tokens) == (4, 4, 4)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "", "many", "1.0 1.0 1.0"])
def test_a_figure_that_is_none_is_not_there(value):
    assert read_page(page(value), VLLM) is None or value.startswith("1.0")


@pytest.mark.parametrize("text", [b"", b"<html></html>", b"vllm:num_requests_running 1\n", b"\n\n# TYPE x gauge\n"])
def test_a_page_without_requests_is_no_page(text):
    assert read_page(text, VLLM) is None


def test_another_start_or_a_counter_that_fell_is_another_process():
    started = ["process_start_time_seconds 1.7e9"]
    before = read_page(page(1, 1, 0, *started, "vllm:prefix_cache_hits_total 9"), VLLM)
    same = read_page(page(1, 1, 0, *started, "vllm:prefix_cache_hits_total 8"), VLLM)
    other = read_page(page(1, 1, 0, "process_start_time_seconds 1.8e9", "vllm:prefix_cache_hits_total 10"), VLLM)
    assert (same.is_after_restart(before), other.is_after_restart(before)) == (False, True)
    before, grown, fallen, silent = (
        read_page(page(1, 1, 0, *(f"vllm:prefix_cache_hits_total {hits}" for hits in each)), VLLM)
        for each in ([9], [10], [8], [])
    )
    assert [one.is_after_restart(before) for one in (grown, fallen, silent)] == [False, True, False]


def test_the_question_names_what_is_read():
    assert "name%5B%5D=vllm:num_requests_waiting" in VLLM.query
    assert NAMES["tensorrt-llm"].path == "/prometheus/metrics"
    assert NAMES["deepspeed"] is None
    assert isinstance(VLLM, PageNames)


def test_a_usage_above_one_is_full():
    assert read_page(page(usage=1.2), VLLM).kv_usage == 1.0
    assert math.isclose(read_page(page(usage=-1), VLLM).kv_usage, 0.0)
