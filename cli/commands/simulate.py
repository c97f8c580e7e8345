"""``enginehouse simulate``: what a routing policy makes of a trace, replayed on the gateway's own router."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cli.exits import UsageError
from cli.output import Format, Output, emit, tell
from simulator.replay import PolicyName, ReplayResult, ReplaySettings, Sharing, replay
from simulator.trace_file import Trace, TraceError, TraceSummary, trace_at

PROGRESS_SECONDS = 5.0
_LOAD_RANGE = (0.001, 1000.0)
_DISTURB, _MODEL = "What goes wrong", "The engines"


def simulate(
    trace: Annotated[
        Path, typer.Option("--trace", metavar="FILE", help="Requests as JSON lines, .jsonl or .jsonl.gz, as above.")
    ],
    replicas: Annotated[int, typer.Option(min=1, max=4096, help="Engines behind the gateway.")],
    cache_blocks: Annotated[int, typer.Option(min=0, max=2**40, help="Blocks that each engine can keep.")],
    policy: Annotated[PolicyName, typer.Option(help="How the router chooses.")] = PolicyName.ESTIMATED_TTFT,
    load: Annotated[
        float, typer.Option(help="Prompt work per engine without any cache; the trace's times are stretched to it.")
    ] = 0.7,
    seed: Annotated[int, typer.Option(help="For everything that is left to chance.")] = 0,
    block_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of one block of the trace.", rich_help_panel=_MODEL)
    ] = 512,
    prefill_rate: Annotated[
        float, typer.Option(help="Prompt tokens that an engine computes per second.", rich_help_panel=_MODEL)
    ] = 10_000.0,
    token_seconds: Annotated[
        float, typer.Option(help="Seconds per token of an answer.", rich_help_panel=_MODEL)
    ] = 0.03,
    gateways: Annotated[
        int, typer.Option(min=1, max=64, help="Gateways; each request comes to any.", rich_help_panel=_DISTURB)
    ] = 1,
    sharing: Annotated[
        Sharing, typer.Option(help="What gateways know of each other.", rich_help_panel=_DISTURB)
    ] = Sharing.NONE,
    metrics_interval: Annotated[
        float, typer.Option(help="Seconds between two readings of metrics.", rich_help_panel=_DISTURB)
    ] = 0.5,
    metrics_delay: Annotated[
        float, typer.Option(help="Seconds that metrics arrive late.", rich_help_panel=_DISTURB)
    ] = 0.0,
    restart_at: Annotated[
        float | None, typer.Option(help="Second of the replay when one engine restarts.", rich_help_panel=_DISTURB)
    ] = None,
    restart_seconds: Annotated[float, typer.Option(help="How long it is away.", rich_help_panel=_DISTURB)] = 30.0,
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
    settings = ReplaySettings(
        policy=policy,
        replicas=replicas,
        cache_blocks=cache_blocks,
        load=_within("--load", load, *_LOAD_RANGE),
        seed=seed,
        block_tokens=block_tokens,
        prefill_tokens_per_second=_within("--prefill-rate", prefill_rate, 1.0, 1e9),
        seconds_per_output_token=_within("--token-seconds", token_seconds, 0.0, 1e3),
        gateways=gateways,
        sharing=sharing,
        metrics_interval_seconds=_within("--metrics-interval", metrics_interval, 0.05, 1e4),
        metrics_delay_seconds=_within("--metrics-delay", metrics_delay, 0.0, 1e4),
        restart_at_seconds=None if restart_at is None else _within("--restart-at", restart_at, 0.0, 1e9),
        restart_seconds=_within("--restart-seconds", restart_seconds, 0.0, 1e9),
    )
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


def _within(option: str, value: float, least: float, most: float) -> float:
    if not math.isfinite(value) or not least <= value <= most:
        raise UsageError(f"{option} {value:g} is out of range; give a number from {least:g} to {most:g}")
    return value


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
