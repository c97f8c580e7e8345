"""What a plan says beside the planner's own notes, and the options that a plan of a fleet does not take."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import typer

from cli.exits import UsageError
from fleet.hardware import gpu_models, instance_types
from fleet.nearest import spelled
from fleet.plan_answer import PlanAnswer
from fleet.plan_wish import gpus_in_words
from fleet.spec import KV_CACHE_DTYPES, QUANTIZATIONS, EngineName

OF_A_FLEET = frozenset({"fleet", "model", "prices", "output"})
"""Options that ``--fleet`` takes, or that its caller judges."""


def with_unused_gpus(answer: PlanAnswer, offered: object) -> PlanAnswer:
    """The answer with a note where it leaves offered GPUs unused."""
    used = answer.plan.gpus
    if not isinstance(offered, int) or used >= offered:
        return answer
    why = {
        "yes": f"{answer.plan} is the plan of the fewest GPUs that fits; --tp, --pp, --ep and --dp judge one that "
        "takes more",
        "no": f"no proposed plan fits, and {answer.plan} comes nearest",
        "unknown": f"what more GPUs would change is not known for {answer.plan}",
    }[answer.fits]
    given = any((answer.wish.tensor, answer.wish.pipeline, answer.wish.expert, answer.wish.data))
    why = f"{answer.plan} was asked for" if given or answer.wish.context_parallel else why
    note = f"{gpus_in_words(offered)} are offered, {used} {'is' if used == 1 else 'are'} used: {why}"
    return replace(answer, notes=(note, *answer.notes))


def refuse_beside_fleet(context: typer.Context) -> None:
    """A fleet's manifests say everything else; an option that would be ignored is refused.

    Raises:
        UsageError: an option that only a plan of one model takes.
    """
    by_hand = context.get_parameter_source("fleet")
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in OF_A_FLEET and context.get_parameter_source(parameter.name or "") is by_hand
    ]
    if given:
        raise UsageError(
            f"--fleet plans the manifests of an environment, which say the rest; leave {', '.join(given)} out"
        )


def refuse_a_manifest(name: str) -> None:
    """A plan is about a model; raises `UsageError` for a YAML file, which can't be a model's configuration."""
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        raise UsageError(
            f"{path} is YAML, not a model's config.json; give --model the id under spec.model of the manifest, plan "
            "an environment's folder with --fleet, or place the manifest with 'enginehouse pin'"
        )


def refuse_nothing(wished: Mapping[str, object]) -> None:
    """An option whose value is empty, as a variable that is not set leaves it, is not one that was left out.

    Raises:
        UsageError: the option.
    """
    for name, value in wished.items():
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"--{name.replace('_', '-')} is empty; give a value or leave it out")


def in_known_capitals(wished: Mapping[str, object]) -> dict[str, object]:
    """The words of a wish as the planner spells them: ``h100`` is H100."""
    known: dict[str, Iterable[str]] = {
        "gpu": gpu_models(),
        "instance": instance_types(),
        "engine": EngineName,
        "quantization": QUANTIZATIONS,
        "kv_dtype": KV_CACHE_DTYPES,
    }
    return {name: spelled(value, names) for name, names in known.items() if isinstance(value := wished.get(name), str)}
