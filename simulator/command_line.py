"""The simulator's command line: its own options, then `--`, then the argv of the real engine."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from simulator.engine_flags import CommandLineError, EngineFlags, image_limit, read_engine_flags
from simulator.settings import ApiSettings, CacheSettings, Dialect, EngineSettings, Limits, Pace, Task

DEFAULT_KV_TOKENS = 262_144
"""KV tokens of an engine that is not told its number of blocks: a mid-size model on one large GPU."""

_START_WORDS = {
    Dialect.VLLM: ("vllm", "serve"),
    Dialect.SGLANG: ("sglang", "serve"),
    Dialect.TENSORRT_LLM: ("trtllm-serve", "serve"),
    Dialect.LMDEPLOY: ("lmdeploy", "serve", "api_server"),
}
_DEFAULT_PORT = {Dialect.VLLM: 8000, Dialect.SGLANG: 30_000, Dialect.TENSORRT_LLM: 8000, Dialect.LMDEPLOY: 23_333}
_DEFAULT_BLOCK = {Dialect.VLLM: 16, Dialect.SGLANG: 1, Dialect.TENSORRT_LLM: 32, Dialect.LMDEPLOY: 64}


def read_command_line(argv: Sequence[str]) -> EngineSettings:
    """Return the settings that the whole command line asks for, or raise `CommandLineError`."""
    own, engine_argv = _split(list(argv))
    options = _parser().parse_args(own)
    flags = read_engine_flags(engine_argv)
    dialect = Dialect(options.dialect)
    model = _model(dialect, flags)
    cache = _cache(dialect, flags, options.kv_tokens)
    return EngineSettings(
        dialect=dialect,
        version=options.engine_version,
        model=model,
        host=flags.text("host", "server-name", "http-address") or "127.0.0.1",
        port=flags.number("port", "server-port", "http-port") or _DEFAULT_PORT[dialect],
        api=replace(_api(dialect, flags, model, options.multimodal), task=Task(options.task)),
        limits=_limits(dialect, flags, cache),
        cache=cache,
        pace=_pace(options, flags),
    )


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in argv:
        return argv, []
    cut = argv.index("--")
    return argv[:cut], argv[cut + 1 :]


def _parser() -> argparse.ArgumentParser:
    defaults = Pace()
    parser = argparse.ArgumentParser(
        prog="python -m simulator.engine",
        description="A simulated inference engine. After -- comes the command line of the real one.",
        usage="python -m simulator.engine --dialect ENGINE --engine-version VERSION [options] -- ENGINE_ARGV...",
    )
    parser.add_argument("--dialect", required=True, choices=[dialect.value for dialect in Dialect])
    parser.add_argument("--engine-version", required=True, metavar="VERSION")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="seed of texts and latencies")
    parser.add_argument("--speed", type=_above_zero, default=1.0, help="2 computes tokens twice as fast")
    parser.add_argument("--time-scale", type=float, default=1.0, help="0.1 makes every wait ten times shorter")
    parser.add_argument("--startup-seconds", type=float, default=defaults.startup_seconds)
    parser.add_argument("--drain-seconds", type=float, default=defaults.drain_seconds)
    parser.add_argument("--prefill-tokens-per-second", type=_above_zero, default=defaults.prefill_tokens_per_second)
    parser.add_argument("--decode-seconds", type=float, default=defaults.decode_seconds, help="seconds a token")
    parser.add_argument("--kv-tokens", type=int, default=None, help="KV tokens when the engine argv names no blocks")
    parser.add_argument(
        "--task", choices=[task.value for task in Task], default=Task.GENERATE.value, help="of the model"
    )
    parser.add_argument("--multimodal", action="store_true", help="take image parts")
    return parser


def _above_zero(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def _model(dialect: Dialect, flags: EngineFlags) -> str:
    named = flags.text("model-path", "model")
    if named:
        return named
    words = [word for word in flags.words if not word.rpartition("/")[2].startswith("python") and word != "-m"]
    start = _START_WORDS[dialect]
    while words and (words[0].rpartition("/")[2] in start or words[0].endswith("launch_server")):
        words.pop(0)
    if not words:
        raise CommandLineError(f"the engine argv names no model; for {dialect} it starts with {' '.join(start)} MODEL")
    return words[0]


def _api(dialect: Dialect, flags: EngineFlags, model: str, multimodal: bool) -> ApiSettings:
    keep_alive = flags.seconds("sse-keep-alive-interval")
    adapters = flags.many("lora-modules", "lora-paths", "adapters")
    has_tool_parser = flags.has("tool-call-parser", "tool-parser")
    return ApiSettings(
        served_names=flags.many("served-model-name", "model-name") or (model,),
        adapters=tuple(adapter.partition("=")[0] for adapter in adapters),
        api_keys=flags.many("api-key", "api-keys"),
        reports_cached_tokens=flags.has("enable-prompt-tokens-details", "enable-cache-report")
        or dialect is Dialect.TENSORRT_LLM,
        always_sends_usage=flags.has("enable-force-include-usage"),
        reports_request_metrics=flags.has("enable-per-request-metrics"),
        metrics_are_on=dialect is not Dialect.SGLANG or flags.has("enable-metrics"),
        image_limit=image_limit(flags, model, sees_images=multimodal),
        has_tool_parser=has_tool_parser or dialect is not Dialect.VLLM,
        has_auto_tools=flags.has("enable-auto-tool-choice") or dialect is not Dialect.VLLM,
        returns_request_ids=flags.has("enable-request-id-headers"),
        keep_alive_seconds=keep_alive or None,
    )


def _cache(dialect: Dialect, flags: EngineFlags, kv_tokens: int | None) -> CacheSettings:
    block_size = flags.number("block-size", "page-size", "cache-block-seq-len") or _DEFAULT_BLOCK[dialect]
    given = flags.number("num-gpu-blocks-override")
    if given is None and (total := flags.number("max-total-tokens")):
        given = total // block_size
    tokens = kv_tokens or max(DEFAULT_KV_TOKENS, 4 * (_max_model_len(flags) or 0))
    return CacheSettings(
        block_size=block_size,
        num_blocks=given or max(1, tokens // block_size),
        prefix_caching=_keeps_prefixes(dialect, flags),
        blocks_were_given=flags.has("num-gpu-blocks-override"),
        block_size_was_given=flags.has("block-size"),
    )


def _keeps_prefixes(dialect: Dialect, flags: EngineFlags) -> bool:
    if dialect is Dialect.LMDEPLOY:
        return flags.has("enable-prefix-caching")
    return flags.text("enable-prefix-caching") != "false" and not flags.has("disable-radix-cache")


def _max_model_len(flags: EngineFlags) -> int | None:
    return flags.number("max-model-len", "context-length", "max-seq-len", "session-len")


def _limits(dialect: Dialect, flags: EngineFlags, cache: CacheSettings) -> Limits:
    defaults = Limits()
    room = cache.num_blocks * cache.block_size
    asked = _max_model_len(flags)
    if asked and asked > room:
        raise CommandLineError(
            f"the maximum model length is {asked} tokens, but the KV cache holds {room} "
            f"({cache.num_blocks} blocks of {cache.block_size}); give at least {-(-asked // cache.block_size)} blocks"
        )
    return Limits(
        max_model_len=asked or min(defaults.max_model_len, room),
        max_num_seqs=flags.number("max-num-seqs", "max-running-requests", "max-batch-size") or defaults.max_num_seqs,
        max_num_batched_tokens=flags.number("max-num-batched-tokens", "chunked-prefill-size", "max-num-tokens")
        or defaults.max_num_batched_tokens,
        max_queued_requests=flags.number("max-num-queued-reqs", "max-queued-requests"),
        max_queued_tokens=flags.number("max-num-queued-tokens"),
        queue_limit_counts_running=dialect is not Dialect.SGLANG,
    )


def _pace(options: argparse.Namespace, flags: EngineFlags) -> Pace:
    pace = Pace(
        seed=options.seed,
        prefill_tokens_per_second=options.prefill_tokens_per_second,
        decode_seconds=options.decode_seconds,
        speed=options.speed,
        time_scale=options.time_scale,
        startup_seconds=options.startup_seconds,
        drain_seconds=options.drain_seconds,
    )
    shutdown = flags.seconds("shutdown-timeout")
    return pace if shutdown is None else replace(pace, drain_seconds=shutdown)
