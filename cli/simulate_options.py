"""The options of ``enginehouse simulate``, as other tools script against them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.exits import UsageError
from simulator.replay import PolicyName, ReplaySettings, Sharing

_MODEL, _DISTURB = "The engines", "What goes wrong"

TraceFile = Annotated[
    Path, typer.Option("--trace", metavar="FILE", help="Requests as JSON lines, .jsonl or .jsonl.gz, as above.")
]
Replicas = Annotated[int, typer.Option(min=1, max=4096, help="Engines behind the gateway.")]
CacheBlocks = Annotated[int, typer.Option(min=0, max=2**40, help="Blocks that each engine can keep.")]
Policy = Annotated[PolicyName, typer.Option(help="How the router chooses.")]
Load = Annotated[
    float, typer.Option(help="Prompt work per engine without any cache; the trace's times are stretched to it.")
]
Seed = Annotated[int, typer.Option(help="For everything that is left to chance.")]
BlockTokens = Annotated[int, typer.Option(min=1, help="Tokens of one block of the trace.", rich_help_panel=_MODEL)]
PrefillRate = Annotated[
    float, typer.Option(help="Prompt tokens that an engine computes per second.", rich_help_panel=_MODEL)
]
TokenSeconds = Annotated[float, typer.Option(help="Seconds per token of an answer.", rich_help_panel=_MODEL)]
Gateways = Annotated[
    int, typer.Option(min=1, max=64, help="Gateways; each request comes to any.", rich_help_panel=_DISTURB)
]
SharingKind = Annotated[Sharing, typer.Option(help="What gateways know of each other.", rich_help_panel=_DISTURB)]
MetricsInterval = Annotated[
    float, typer.Option(help="Seconds between two readings of metrics.", rich_help_panel=_DISTURB)
]
MetricsDelay = Annotated[float, typer.Option(help="Seconds that metrics arrive late.", rich_help_panel=_DISTURB)]
RestartAt = Annotated[
    float | None, typer.Option(help="Second of the replay when one engine restarts.", rich_help_panel=_DISTURB)
]
RestartSeconds = Annotated[float, typer.Option(help="How long it is away.", rich_help_panel=_DISTURB)]

_RANGES = {
    "load": ("load", 0.001, 1000.0),
    "prefill_rate": ("prefill_tokens_per_second", 1.0, 1e9),
    "token_seconds": ("seconds_per_output_token", 0.0, 1e3),
    "metrics_interval": ("metrics_interval_seconds", 0.05, 1e4),
    "metrics_delay": ("metrics_delay_seconds", 0.0, 1e4),
    "restart_at": ("restart_at_seconds", 0.0, 1e9),
    "restart_seconds": ("restart_seconds", 0.0, 1e9),
}
"""Option -> what the replay calls it, and the least and the most that it takes."""
_AS_GIVEN = ("policy", "replicas", "cache_blocks", "seed", "block_tokens", "gateways", "sharing")


def settings_of(options: Mapping[str, Any]) -> ReplaySettings:
    """The settings that the options ask for."""
    found: dict[str, Any] = {name: options[name] for name in _AS_GIVEN}
    for option, (name, least, most) in _RANGES.items():
        found[name] = _within(option, options[option], least, most)
    return ReplaySettings(**found)


def _within(option: str, value: float | None, least: float, most: float) -> float | None:
    if value is not None and not (math.isfinite(value) and least <= value <= most):
        name = option.replace("_", "-")
        raise UsageError(f"--{name} {value:g} is out of range; give a number from {least:g} to {most:g}")
    return value
