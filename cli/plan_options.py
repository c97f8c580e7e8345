"""The options of ``enginehouse plan``, as other tools script against them."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from fleet.hardware import SharingMode, gpu_models
from fleet.spec import KV_CACHE_DTYPES, PURCHASES, QUANTIZATIONS, EngineName

_LOAD, _HARDWARE, _SPLIT, _ENGINE = "Load", "Hardware", "Exactly this plan", "Engine"


def tokens(text: str | int) -> int:
    """A number of tokens; ``32k`` may mean 32,000 or 32,768, so it is asked back."""
    try:
        return int(text)
    except ValueError:
        match = re.fullmatch(r"(\d{1,6})[kK]", str(text).strip())
        hint = f"; {text} may be {int(match[1]) * 1000} or {int(match[1]) * 1024}" if match else ", such as 32768"
        raise typer.BadParameter(f"'{text}' is not a number of tokens; write a whole number{hint}") from None


ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="FILE|ID",
        help="A Hugging Face config.json, or an id of the catalogue.",
        autocompletion=completion.models,
    ),
]
FleetFolder = Annotated[
    Path | None, typer.Option("--fleet", metavar="DIR", help="Plan all manifests of an environment's folder instead.")
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context",
        parser=tokens,
        metavar="INTEGER",
        help="Tokens of a request, input and output together; without it input + output, else 8192.",
        rich_help_panel=_LOAD,
    ),
]
InputTokens = Annotated[
    int | None,
    typer.Option(
        "--input-tokens",
        parser=tokens,
        metavar="INTEGER",
        help="Tokens of a prompt; without it what the context leaves, else 1024.",
        rich_help_panel=_LOAD,
    ),
]
OutputTokens = Annotated[
    int | None,
    typer.Option(
        "--output-tokens",
        parser=tokens,
        metavar="INTEGER",
        help="Tokens of an answer; without it 1024, or half of a shorter context.",
        rich_help_panel=_LOAD,
    ),
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", help="Requests in flight over the whole plan.", rich_help_panel=_LOAD)
]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        help=f"{', '.join(gpu_models())}; without it the cheapest that fits.",
        autocompletion=completion.gpus,
        rich_help_panel=_HARDWARE,
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--gpus",
        help="All GPUs of the plan, over several nodes if need be; without it as few as fit.",
        rich_help_panel=_HARDWARE,
    ),
]
Instance = Annotated[
    str | None,
    typer.Option(
        "--instance",
        help="An instance type, such as p5.48xlarge; without it any that carries the GPU.",
        autocompletion=completion.instances,
        rich_help_panel=_HARDWARE,
    ),
]
Sharing = Annotated[
    SharingMode, typer.Option("--sharing", help="How the GPU is shared with others.", rich_help_panel=_HARDWARE)
]
MigProfile = Annotated[
    str | None,
    typer.Option(
        "--mig-profile", help="A MIG slice, such as 1g.10gb; without it the whole GPU.", rich_help_panel=_HARDWARE
    ),
]
Purchase = Annotated[
    str,
    typer.Option("--purchase", help=f"How it is bought: {', '.join(PURCHASES)}.", rich_help_panel=_HARDWARE),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Prices of your own, each with as_of and source; they count before the bundled ones.",
        rich_help_panel=_HARDWARE,
    ),
]
Tensor = Annotated[
    int | None,
    typer.Option("--tp", help="Ranks of tensor parallelism; 1 once any size is given.", rich_help_panel=_SPLIT),
]
Pipeline = Annotated[
    int | None,
    typer.Option("--pp", help="Stages of pipeline parallelism; 1 once any size is given.", rich_help_panel=_SPLIT),
]
Expert = Annotated[
    int | None,
    typer.Option(
        "--ep", help="Whole experts over so many ranks; else split by tensor parallelism.", rich_help_panel=_SPLIT
    ),
]
Data = Annotated[
    int | None,
    typer.Option("--dp", help="Ranks of data parallelism; 1 once any size is given.", rich_help_panel=_SPLIT),
]
ContextParallel = Annotated[
    int | None,
    typer.Option("--cp", help="Ranks of context parallelism; 1 once any size is given.", rich_help_panel=_SPLIT),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", help=f"{', '.join(EngineName)}.", autocompletion=completion.engines, rich_help_panel=_ENGINE
    ),
]
EngineVersion = Annotated[
    str | None,
    typer.Option(
        "--engine-version",
        help="Its version; without it the most careful of the measured constants.",
        rich_help_panel=_ENGINE,
    ),
]
Quantization = Annotated[
    str | None,
    typer.Option(
        "--quantization",
        help=f"{', '.join(QUANTIZATIONS)}; else as stored.",
        rich_help_panel=_ENGINE,
    ),
]
KvDtype = Annotated[
    str,
    typer.Option("--kv-dtype", help=f"Type of the KV cache: {', '.join(KV_CACHE_DTYPES)}.", rich_help_panel=_ENGINE),
]
MaxNumSeqs = Annotated[
    int | None,
    typer.Option(
        "--max-num-seqs", help="Sequences that run at once; without it the engine's default.", rich_help_panel=_ENGINE
    ),
]
MaxNumBatchedTokens = Annotated[
    int | None,
    typer.Option(
        "--max-num-batched-tokens", help="Tokens of one step; without it the engine's default.", rich_help_panel=_ENGINE
    ),
]
GpuMemoryUtilization = Annotated[
    float | None,
    typer.Option(
        "--gpu-memory-utilization",
        help="The share of a GPU's memory that the engine takes, above 0 and up to 1; without it the engine's default.",
        rich_help_panel=_ENGINE,
    ),
]
