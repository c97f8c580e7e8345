"""The metrics of every dialect: names, types, labels, and which version has them."""

import math
import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.command_line import read_command_line
from simulator.dialects import metrics_for
from simulator.engine_state import state_of
from simulator.exposition import Family, number, one_two_five, render
from simulator.scheduler import Scheduler
from simulator.signals import Count, Measure

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
PLAIN = "vllm serve model/tiny --served-model-name tiny --max-model-len 4096"
TOOLS = f"{PLAIN} --block-size 32 --enable-auto-tool-choice --tool-call-parser hermes"
SGLANG = "python3 -m sglang.launch_server --model-path model/tiny --served-model-name tiny --enable-metrics"


def exposition(lines):
    """Return types by family, label names by family, and the series themselves."""
    types, labels, series = {}, defaultdict(set), set()
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            types[name] = kind
        elif line and not line.startswith("#"):
            name, _, rest = line.partition("{")
            name = name.partition(" ")[0]
            labels[name].add(tuple(re.findall(r'(\w+)="', rest)))
            series.add(line)
    return types, dict(labels), series


@pytest.mark.parametrize(
    ("capture", "argv", "version"),
    [
        ("vllm31_metrics", f"{PLAIN} --block-size 32", "0.31.0"),
        ("vllm32_metrics_cold", f"{PLAIN} --block-size 128", "0.32.0"),
        ("vllm32b_metrics_lora_kv", f"{TOOLS} --lora-modules lora-a=/a lora-b=/b", "0.32.0"),
    ],
)
async def test_metric_names_types_labels_and_series_are_the_captured_ones(start_engine, capture, argv, version):
    theirs = exposition((CAPTURES / f"{capture}.series.txt").read_text(encoding="utf-8").splitlines())
    engine = await start_engine(argv, version=version, own=("--kv-tokens", "1048576", "--time-scale", "0"))
    await engine.client.get("/v1/models")
    text = (await engine.client.get("/metrics")).text
    ours = exposition(re.sub(r" \S+$", "", line) if not line.startswith("#") else line for line in text.splitlines())
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
    changing = ("vllm:cache_config_info", "vllm:lora_requests_info", "http_", "python_info")
    assert {line for line in ours[2] if not line.startswith(changing)} == {
        line for line in theirs[2] if not line.startswith(changing)
    }


def book_of(dialect, version, argv):
    settings = read_command_line(["--dialect", dialect, "--engine-version", version, "--", *argv.split()])
    book = metrics_for(settings)
    return book, state_of(Scheduler(settings.limits, settings.cache, book))


def text_of(dialect, version, argv):
    book, state = book_of(dialect, version, argv)
    for count in Count:
        book.count(count, 3)
    for measure in Measure:
        book.measure(measure, 0.5, streams=True)
    return book.text(state)


def families(text):
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ("0.17.1", ["prompt_tokens_recomputed_total"], ["num_requests_waiting_by_reason"]),
        ("0.18.1", ["prompt_tokens_recomputed_total"], ["num_requests_waiting_by_reason"]),
        ("0.19.1", ["prompt_tokens_recomputed_total"], ["num_requests_waiting_by_reason"]),
        ("0.20.2", ["num_requests_waiting_by_reason"], ["prompt_tokens_recomputed_total", "request_num_preemptions"]),
        ("0.29.0", ["kv_cache_usage_perc"], ["request_num_preemptions", "admission_rejections_total"]),
        ("0.30.0", ["request_num_preemptions"], ["admission_rejections_total"]),
        ("0.31.0", ["request_num_preemptions"], ["prompt_tokens_cached_by_source_total"]),
        ("0.33.0", ["admission_rejections_total", "prompt_tokens_cached_by_source_total"], []),
        ("1.4.0", ["admission_rejections_total"], []),
        ("nightly", ["prompt_tokens_recomputed_total"], ["num_requests_waiting_by_reason"]),
    ],
)
def test_a_vllm_version_has_the_families_of_the_nearest_older_known_one(version, present, absent):
    names = families(text_of("vllm", version, PLAIN))
    assert {f"vllm:{name}" for name in present} <= names
    assert not {f"vllm:{name}" for name in absent} & names
    assert "vllm:gpu_cache_usage_perc" not in names


@pytest.mark.parametrize(
    ("version", "present", "absent", "labels"),
    [
        ("0.4.3", ["time_per_output_token_seconds"], ["inter_token_latency_seconds"], 'model_name="tiny"'),
        ("0.4.10.post2", ["inter_token_latency_seconds"], ["time_per_output_token_seconds"], 'pp_rank="0"'),
        ("0.5.10.post1", ["queue_time_seconds"], ["kv_used_tokens"], 'moe_ep_rank="0"'),
        ("0.5.23", ["kv_used_tokens", "uncached_prompt_tokens_histogram"], [], 'engine_type="unified"'),
    ],
)
def test_an_sglang_version_has_its_own_families_and_labels(version, present, absent, labels):
    text = text_of("sglang", version, SGLANG)
    names = families(text)
    basics = {"token_usage", "num_running_reqs", "num_queue_reqs", "cache_hit_rate", "time_to_first_token_seconds"}
    assert {f"sglang:{name}" for name in (*present, *basics)} <= names
    assert not {f"sglang:{name}" for name in absent} & names
    assert labels in next(line for line in text.splitlines() if line.startswith("sglang:token_usage"))
    assert ('is_streaming="true"' in text) == (version == "0.5.23")
    assert not [name for name in names if name.endswith("_created")]


@pytest.mark.parametrize(
    ("dialect", "argv", "names"),
    [
        ("tensorrt-llm", "trtllm-serve m", ["trtllm_num_requests_running", "trtllm_kv_cache_utilization"]),
        ("lmdeploy", "lmdeploy serve api_server m", ["lmdeploy:num_requests_waiting", "lmdeploy:gpu_cache_usage_perc"]),
    ],
)
def test_the_small_dialects_show_load_and_kv_usage(dialect, argv, names):
    assert set(names) <= families(text_of(dialect, "1.0.0", argv))


@pytest.mark.parametrize(("dialect", "argv"), [("vllm", PLAIN), ("sglang", SGLANG), ("tensorrt-llm", "trtllm-serve m")])
def test_every_line_is_a_type_or_a_sample_and_no_series_comes_twice(dialect, argv):
    lines = text_of(dialect, "0.32.0", argv).splitlines()
    sample = re.compile(r'[a-zA-Z_:]\w*(:\w+)?(\{(\w+="[^"]*",?)*\})? (\+Inf|-?[\d.]+(e[+-]\d+)?)')
    assert [line for line in lines if not line.startswith("# TYPE ") and not sample.fullmatch(line)] == []
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))


@given(st.lists(st.floats(0, 1e6), max_size=30))
def test_histogram_buckets_grow_to_the_count(values):
    family = Family("seconds", "histogram", (0.1, 1.0, 10.0))
    family.at({"model": "m"})
    for value in values:
        family.observe({"model": "m"}, value)
    lines = render([family], with_created=False).splitlines()
    buckets = [float(line.rpartition(" ")[2]) for line in lines if "_bucket" in line]
    assert buckets == sorted(buckets)
    assert buckets[-1] == len(values)
    assert buckets[0] == sum(1 for value in values if value <= 0.1)


@given(st.floats(0, 1e15))
def test_a_number_reads_back_as_itself(value):
    assert float(number(value)) == value


def test_numbers_and_bounds_are_written_as_clients_write_them():
    assert [number(value) for value in (0, 0.25, 34, 6.44517888e8, math.inf)] == [
        "0.0", "0.25", "34.0", "6.44517888e+08", "+Inf",
    ]  # fmt: skip
    assert one_two_five(25) == (1, 2, 5, 10, 20)


def test_label_values_are_escaped():
    family = Family("up", "gauge")
    family.set({"model": 'a"b\\c\nd'}, 1)
    assert render([family], with_created=False) == '# TYPE up gauge\nup{model="a\\"b\\\\c\\nd"} 1.0\n'


async def test_sglang_has_metrics_only_when_they_are_enabled(start_engine):
    for argv, status in ((SGLANG, 200), (SGLANG.removesuffix(" --enable-metrics"), 404)):
        engine = await start_engine(argv, dialect="sglang", version="0.5.23")
        assert (await engine.client.get("/metrics")).status_code == status


async def test_sglang_counts_what_it_served(start_engine):
    engine = await start_engine(f"{SGLANG} --enable-cache-report", dialect="sglang", version="0.5.23")
    for _ in range(2):
        answer = await engine.chat(max_tokens=5, ignore_eos=True)
    cached = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == answer.json()["usage"]["prompt_tokens"] - 1
    assert await engine.metric("sglang:generation_tokens_total") == 10
    assert await engine.metric("sglang:cached_tokens_total") == cached
    assert 0 < await engine.metric("sglang:cache_hit_rate") <= 0.5
    assert await engine.metric("sglang:token_usage") == 0
