"""``enginehouse simulate``: what a routing policy makes of a trace, replayed on the gateway's own router."""

import time
from collections.abc import Callable

from cli import simulate_options as asked
from cli.exits import UsageError
from cli.output import Format, Output, emit, tell
from simulator.replay import PolicyName, ReplayResult, ReplaySettings, Sharing, replay
from simulator.trace_file import Trace, TraceError, TraceSummary, trace_at

PROGRESS_SECONDS = 5.0


def simulate(
    trace: asked.TraceFile,
    replicas: asked.Replicas,
    cache_blocks: asked.CacheBlocks,
    policy: asked.Policy = PolicyName.ESTIMATED_TTFT,
    load: asked.Load = 0.7,
    seed: asked.Seed = 0,
    block_tokens: asked.BlockTokens = 512,
    prefill_rate: asked.PrefillRate = 10_000.0,
    token_seconds: asked.TokenSeconds = 0.03,
    gateways: asked.Gateways = 1,
    sharing: asked.SharingKind = Sharing.NONE,
    metrics_interval: asked.MetricsInterval = 0.5,
    metrics_delay: asked.MetricsDelay = 0.0,
    restart_at: asked.RestartAt = None,
    restart_seconds: asked.RestartSeconds = 30.0,
    output: Output = Format.TABLE,
) -> None:
    """Replay a trace of requests on the gateway's own router and a model of engines with prefix caches.

    Each line of a trace is an object with timestamp (milliseconds), input_length, output_length (tokens) and hash_ids
    (chained ids of the blocks of the prompt). Engines keep the least recently used blocks, compute prompts one after
    the other and decode without a limit: right for comparing policies, no forecast of an engine's own latency.

    Compare with --policy round_robin; see what a disturbance costs with --gateways 2, --metrics-delay 5 or
    --restart-at 1000.

    [dim]Example:[/dim] enginehouse simulate --trace trace.jsonl.gz --replicas 8 --cache-blocks 3000 -o json
    """
    settings = asked.settings_of(locals())
    try:
        with trace_at(trace) as found:
            result = _replay(found, settings)
    except TraceError as error:
        raise UsageError(str(error)) from None
    emit(result.to_document(), output=output, rows=_rows(result), title=f"{policy}, {replicas} engines")


def _replay(trace: Trace, settings: ReplaySettings) -> ReplayResult:
    summary = trace.summary(settings.block_tokens)
    _warn_of_other_blocks(trace, summary, settings.block_tokens)
    return replay(trace, settings, _progress(), summary)


def _warn_of_other_blocks(trace: Trace, summary: TraceSummary, block_tokens: int) -> None:
    if summary.odd_prompts * 2 <= summary.requests:
        return
    fitting = f"; blocks of about {round(summary.input_tokens / summary.block_ids)} fit" if summary.block_ids else ""
    tell(
        f"note: {summary.odd_prompts} of {summary.requests} prompts of {trace} have other numbers of hash_ids than "
        f"blocks of {block_tokens} tokens{fitting} (--block-tokens)"
    )


def _progress() -> Callable[[int, int], None]:
    """Says how far a long replay is, on stderr."""
    told_at = time.monotonic()

    def progress(done: int, count: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at >= PROGRESS_SECONDS:
            told_at = time.monotonic()
            tell(f"{done} of {count} requests replayed")

    return progress


def _rows(result: ReplayResult) -> list[dict[str, object]]:
    document = result.to_document()
    ttft = document["ttft_seconds"]
    figures: dict[str, object] = {
        "requests": document["requests"],
        "hit ratio": f"{result.hit_ratio:.4f}",
        "busiest engine, requests over mean": _ratio(document["busiest_over_mean_requests"]),
        "busiest engine, computed tokens over mean": _ratio(document["busiest_over_mean_tokens"]),
    }
    if isinstance(ttft, dict):
        figures |= {f"time to first token, {name}": f"{seconds:.3f} s" for name, seconds in ttft.items()}
    return [{"figure": name, "value": value} for name, value in figures.items()]


def _ratio(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "-"
