"""``enginehouse plan``: does a model fit, how is it split, how fast is it, what does it cost, and why not otherwise."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli import plan_options as asked
from cli.exits import UsageError
from cli.output import Format, Output, emit, tell
from fleet.hardware import SharingMode, UnknownHardware
from fleet.plan_wish import PlanWish, WishError
from fleet.spec import PURCHASES, EngineName

if TYPE_CHECKING:
    from fleet.plan_speed import SpeedWish
    from fleet.prices import Price

OPTIONS = {
    "tensor": "--tp",
    "pipeline": "--pp",
    "expert": "--ep",
    "data": "--dp",
    "context_parallel": "--cp",
    "context_tokens": "--context",
} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "gpus",
        "input_tokens",
        "output_tokens",
        "concurrency",
        "quantization",
        "kv_dtype",
        "max_num_seqs",
        "max_num_batched_tokens",
        "mig_profile",
        "engine_version",
        "gpu_memory_utilization",
    )
}
"""What the planner calls a wish -> the option that people gave."""


def plan(
    shell: typer.Context,
    model: asked.ModelName = None,
    fleet: asked.FleetFolder = None,
    context: asked.Context = None,
    input_tokens: asked.InputTokens = None,
    output_tokens: asked.OutputTokens = None,
    concurrency: asked.Concurrency = 1,
    gpu: asked.Gpu = None,
    gpus: asked.Gpus = None,
    instance: asked.Instance = None,
    sharing: asked.Sharing = SharingMode.EXCLUSIVE,
    mig_profile: asked.MigProfile = None,
    purchase: asked.Purchase = "on-demand",
    prices: asked.Prices = None,
    tensor: asked.Tensor = None,
    pipeline: asked.Pipeline = None,
    expert: asked.Expert = None,
    data: asked.Data = None,
    context_parallel: asked.ContextParallel = None,
    engine: asked.Engine = "vllm",
    engine_version: asked.EngineVersion = None,
    quantization: asked.Quantization = None,
    kv_dtype: asked.KvDtype = "auto",
    max_num_seqs: asked.MaxNumSeqs = None,
    max_num_batched_tokens: asked.MaxNumBatchedTokens = None,
    gpu_memory_utilization: asked.GpuMemoryUtilization = None,
    output: Output = Format.TABLE,
) -> None:
    """Say whether a model fits, how it is split, how fast it is and what it costs; "does not fit" is an answer too.

    [dim]Example:[/dim] enginehouse plan --model Qwen/Qwen3-32B --gpu H100 --context 32768 --concurrency 16
    """
    wished = {name: value for name, value in locals().items() if name in PlanWish.__dataclass_fields__}
    own = _own_prices(prices)
    if fleet is not None:
        _plan_fleet(shell, model, fleet, own, output)
    else:
        _plan_model(model, wished | {"context_tokens": context}, _speed_wish(purchase, own), output)


def _own_prices(path: Path | None) -> "tuple[Price, ...]":
    if path is None:
        return ()
    from sources.environment import read_prices
    from sources.errors import SourceError

    try:
        return read_prices(path)
    except SourceError as error:
        raise UsageError(str(error)) from None


def _speed_wish(purchase: str, own: "tuple[Price, ...]") -> "SpeedWish":
    from fleet.nearest import did_you_mean
    from fleet.plan_speed import SpeedWish
    from fleet.prices import with_own

    if purchase not in PURCHASES:
        known = ", ".join(PURCHASES)
        raise UsageError(f"--purchase is '{purchase}'; it is one of {known}{did_you_mean(purchase, PURCHASES)}")
    return SpeedWish(prices=with_own(own), purchase=purchase)


def _plan_model(name: str | None, wished: dict[str, object], speed: "SpeedWish", output: Format) -> None:
    from cli.model_at_hand import model_at_hand
    from cli.plan_card import show_plan
    from cli.plan_notes import in_known_capitals, refuse_a_manifest, refuse_nothing, with_unused_gpus
    from fleet.nearest import did_you_mean
    from fleet.planner import plan as answer_to

    if name is None:
        raise UsageError("give --model a config.json or an id of the catalogue, or --fleet an environment's folder")
    refuse_nothing({"model": name, **wished})
    refuse_a_manifest(name)
    wished |= in_known_capitals(wished)
    engine = str(wished["engine"])
    if engine not in list(EngineName):
        known = ", ".join(EngineName)
        raise UsageError(f"--engine is '{engine}'; it is one of {known}{did_you_mean(engine, EngineName)}")
    found = model_at_hand(name)
    if wished["quantization"] is None:
        wished["quantization"] = found.quantization
    try:
        answer = answer_to(found.model, PlanWish(**wished), speed=speed)  # type: ignore[arg-type]
    except WishError as error:
        raise UsageError(_in_options(str(error))) from None
    except UnknownHardware as error:
        raise UsageError(str(error)) from None
    answer = with_unused_gpus(answer, wished["gpus"])
    if output is Format.TABLE:
        show_plan(answer)
        tell(f"model from {found.origin}")
    else:
        emit(answer.to_document(), output=output, names=[str(answer.plan)])


def _in_options(message: str) -> str:
    """The planner's message with its words for wishes as options; one without an underscore only as the first word."""
    name, _, rest = message.partition(" ")
    for wish, option in OPTIONS.items():
        rest = rest.replace(wish, option) if "_" in wish else rest
    return f"{OPTIONS.get(name, name)} {rest}"


def _plan_fleet(
    shell: typer.Context, model: str | None, folder: Path, own: "tuple[Price, ...]", output: Format
) -> None:
    from cli.fleet_at_hand import environment_at_hand
    from cli.fleet_card import show_fleet
    from cli.plan_notes import refuse_beside_fleet
    from engines.catalogue import load
    from fleet.fleet_plan import plan_fleet
    from fleet.placement.fleet_wishes import deployment_of
    from fleet.prices import bundled

    if model is not None:
        raise UsageError("--fleet plans the manifests of an environment; leave --model out")
    refuse_beside_fleet(shell)
    catalogue = load()
    found = environment_at_hand(folder, catalogue.digest, own)
    facts = found.facts
    wishes = []
    for manifest in found.manifests:
        tell(f"placing {manifest.name}")
        wishes.append(deployment_of(manifest, facts, catalogue))
    plan = plan_fleet(wishes, facts.pools, prices=facts.prices or bundled(), today=facts.today)
    if output is Format.TABLE:
        show_fleet(plan)
    else:
        emit(plan.to_document(), output=output, names=[item.deployment for item in plan.placed])
