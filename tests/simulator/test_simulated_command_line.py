"""The real engines' command lines, read by the simulator."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.command_line import read_command_line
from simulator.engine_flags import CommandLineError, read_engine_flags
from simulator.settings import Dialect

GOLDEN = Path(__file__).parents[1] / "engines" / "golden"
LINES = [
    path for path in sorted(GOLDEN.glob("*.json")) if path.stem.startswith(tuple(Dialect)) and "triton" not in path.stem
]
WORDS = st.text(alphabet="abcdefgh", min_size=1, max_size=8)


def read(dialect, argv, *own):
    return read_command_line(["--dialect", dialect, "--engine-version", "1.0", *own, "--", *argv.split()])


@given(st.dictionaries(WORDS, WORDS, max_size=6))
def test_a_flag_with_a_space_and_with_an_equals_sign_mean_the_same(values):
    spaced = [word for name, value in values.items() for word in (f"--{name}", value)]
    joined = [f"--{name}={value}" for name, value in values.items()]
    assert read_engine_flags(spaced).values == read_engine_flags(joined).values


def test_a_vllm_command_line_sets_limits_names_and_cache():
    settings = read(
        "vllm",
        "vllm serve Qwen/Qwen3-32B --revision 9216db5781bf --host 127.0.0.1 --port 8001 --served-model-name chat other "
        "--max-model-len 32k --max-num-seqs=128 --max-num-batched-tokens 8192 --block-size 32 --tensor-parallel-size 2 "
        "--num-gpu-blocks-override 2000 --max-num-queued-reqs 9 --sse-keep-alive-interval 5 --api-key sk-1 sk-2 "
        "--enable-prefix-caching --enable-prompt-tokens-details --enable-force-include-usage --shutdown-timeout 12 "
        "--limit-mm-per-prompt {\"image\":2} --enable-auto-tool-choice --tool-call-parser hermes",
    )  # fmt: skip
    assert (settings.model, settings.host, settings.port) == ("Qwen/Qwen3-32B", "127.0.0.1", 8001)
    api, limits, cache = settings.api, settings.limits, settings.cache
    assert api.served_names == ("chat", "other")
    assert api.api_keys == ("sk-1", "sk-2")
    assert "sk-1" not in repr(settings)
    assert (api.reports_cached_tokens, api.always_sends_usage, api.image_limit) == (True, True, 2)
    assert (api.has_tool_parser, api.has_auto_tools, api.keep_alive_seconds) == (True, True, 5.0)
    assert (limits.max_model_len, limits.max_num_seqs, limits.max_queued_requests) == (32_000, 128, 9)
    assert (cache.block_size, cache.num_blocks, cache.prefix_caching) == (32, 2_000, True)
    assert settings.pace.drain_seconds == 12


@pytest.mark.parametrize(
    "argv",
    [
        "python -m vllm.entrypoints.openai.api_server --model model/tiny --port 9",
        "python3 -m vllm.entrypoints.openai.api_server --model=model/tiny --port=9",
        "/opt/bin/vllm serve model/tiny --port 9",
        "vllm serve --model model/tiny --port 9",
    ],
)
def test_a_vllm_is_started_in_more_than_one_way(argv):
    settings = read("vllm", argv)
    assert (settings.model, settings.port, settings.api.served_names) == ("model/tiny", 9, ("model/tiny",))


def test_an_sglang_command_line_uses_its_own_names():
    settings = read(
        "sglang",
        "python3 -m sglang.launch_server --model-path model/tiny --served-model-name chat --host 127.0.0.1 --port 9 "
        "--context-length 8192 --max-running-requests 4 --max-queued-requests 6 --page-size 64 --enable-cache-report "
        "--max-total-tokens 64000 --chunked-prefill-size 2048 --disable-radix-cache --enable-metrics",
    )
    limits, cache = settings.limits, settings.cache
    assert (settings.model, settings.api.served_names) == ("model/tiny", ("chat",))
    assert (limits.max_model_len, limits.max_num_seqs, limits.max_queued_requests) == (8192, 4, 6)
    assert (limits.max_num_batched_tokens, limits.queue_limit_counts_running) == (2048, False)
    assert (cache.block_size, cache.num_blocks, cache.prefix_caching) == (64, 1_000, False)
    assert (settings.api.metrics_are_on, settings.api.reports_cached_tokens) == (True, True)


def test_the_underscores_of_trtllm_and_the_names_of_lmdeploy_are_read():
    trt = read(
        "tensorrt-llm",
        "trtllm-serve serve model/tiny --host 127.0.0.1 --port 9 --max_batch_size 3 --max_seq_len 2048",
    )
    lmd = read(
        "lmdeploy",
        "lmdeploy serve api_server model/tiny --server-name 127.0.0.1 --server-port 9 --model-name chat "
        "--session-len 2048 --max-batch-size 3 --cache-block-seq-len 64 --api-keys sk-1",
    )
    for settings in (trt, lmd):
        assert (settings.model, settings.host, settings.port) == ("model/tiny", "127.0.0.1", 9)
        assert (settings.limits.max_num_seqs, settings.limits.max_model_len) == (3, 2048)
    assert lmd.api.served_names == ("chat",)
    assert lmd.api.api_keys == ("sk-1",)
    assert trt.dialect is Dialect.TENSORRT_LLM


@pytest.mark.parametrize(
    ("argv", "own", "limit"),
    [
        ("vllm serve Qwen/Qwen3-32B", (), None),
        ("vllm serve Qwen/Qwen3-32B", ("--multimodal",), 999),
        ("vllm serve Qwen/Qwen3-VL-8B", (), 999),
        ('vllm serve Qwen/Qwen3-VL-8B --limit-mm-per-prompt {"image":0,"video":0}', (), 0),
        ('vllm serve Qwen/Qwen3-32B --limit-mm-per-prompt {"image":0}', (), None),
        ('vllm serve acme/own --limit-mm-per-prompt {"image":{"count":3}}', (), 3),
    ],
)
def test_what_a_model_sees_comes_from_its_name_its_limit_or_the_option(argv, own, limit):
    assert read("vllm", argv, *own).api.image_limit == limit


@pytest.mark.parametrize("golden", LINES, ids=lambda path: path.stem)
def test_every_command_line_of_the_catalogue_is_read(golden):
    argv = json.loads(golden.read_text(encoding="utf-8"))["argv"]
    dialect = next(dialect for dialect in Dialect if golden.stem.startswith(dialect))
    own = ["--dialect", dialect, "--engine-version", "1.0", "--kv-tokens", "4000000"]
    settings = read_command_line([*own, "--", *argv])
    assert str(settings.port) in argv
    assert settings.model in argv
    assert str(settings.limits.max_model_len) in argv
    assert set(settings.api.served_names) <= set(argv)


def test_negated_flags_switch_off():
    off = read("vllm", "vllm serve m --no-enable-prefix-caching --no-enable-prompt-tokens-details")
    assert not off.cache.prefix_caching
    assert not off.api.reports_cached_tokens


def test_flags_that_the_simulator_does_not_know_are_let_through():
    settings = read("vllm", "vllm serve m --kv-transfer-config {} --no-such-thing --gpu-memory-utilization 0.9")
    assert settings.model == "m"


def test_a_default_cache_holds_the_longest_request():
    settings = read("vllm", "vllm serve m --max-model-len 1M")
    assert settings.cache.num_blocks * settings.cache.block_size >= settings.limits.max_model_len
    small = read("vllm", "vllm serve m --num-gpu-blocks-override 10")
    assert small.limits.max_model_len == 160


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("vllm serve", "names no model"),
        ("vllm serve m --port x", "--port is 'x'"),
        ("vllm serve m --max-model-len 4096 --num-gpu-blocks-override 10", "give at least 256 blocks"),
        ("vllm serve m --limit-mm-per-prompt {", "--limit-mm-per-prompt"),
        ("vllm serve m --limit-mm-per-prompt []", "--limit-mm-per-prompt"),
        ('vllm serve m --limit-mm-per-prompt {"image":"x"}', "image limit is 'x'"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(argv, message):
    with pytest.raises(CommandLineError, match=message):
        read("vllm", argv)


@pytest.mark.parametrize("own", [("--speed", "0"), ("--speed", "fast"), ("--dialect", "tgi")])
def test_a_wrong_option_of_the_simulator_is_a_usage_error(own, capsys):
    with pytest.raises(SystemExit, match="2"):
        read("vllm", "vllm serve m", *own)
    assert own[0] in capsys.readouterr().err
